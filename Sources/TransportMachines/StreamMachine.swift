// SPDX-License-Identifier: Apache-2.0

import DequeModule

/// Determines the order of the reads and writes of a byte stream, the closing of its sides, and the operations that wait for all of
/// them.
///
/// Reads run one at a time, and so do writes; reads and writes are independent. Starting TLS and capturing the stream wait for all
/// earlier reads and writes, and all later reads and writes wait for these two operations. The machine does not handle bytes, only
/// the number of bytes that can be read.
package struct StreamMachine: Sendable {
    package enum Command: Hashable, Sendable {
        case read(Int, minimum: Int, maximum: Int)
        case write(Int)
        case closeRead, closeWrite
        /// Closes the reading side without waiting for queued reads.
        case stopReading
        case secure, capture
    }

    package enum Event: Hashable, Sendable {
        case asked(Command)
        /// The connection is established; no operation starts before this event.
        case opened
        /// The app suspended or resumed the task.
        case held(Bool)
        /// This many bytes arrived.
        case received(Int)
        /// The peer has closed its side.
        case inputEnded
        /// The system has accepted all bytes of the current write.
        case written
        /// The system was told to close the writing side.
        case outputClosed
        /// TLS is established; precedes ``opened`` if the stream starts with TLS.
        case secured
        case timedOut(Int)
    }

    /// Why a read or write is refused.
    package enum Refusal: Hashable, Sendable {
        /// The lengths of the read are invalid.
        case lengths
        /// The side of the stream that the read or write needs is closed.
        case closed
        case timeout
    }

    package enum Action: Hashable, Sendable {
        /// Delivers this many of the received bytes to a read.
        case deliver(Int, count: Int, isAtEnd: Bool)
        case write(Int)
        case refuse(Int, Refusal)
        case closeOutput
        /// Received bytes are no longer needed.
        case discardInput
        case secure, capture
        case tellReadClosed, tellWriteClosed
        /// Both sides are closed, and all received bytes were read.
        case end
        /// The stream cannot continue: a write timed out in the middle, cleartext bytes arrived that would be mistaken for bytes
        /// received over TLS, or a side was closed before TLS started.
        case fail(Failure)
    }

    package enum Failure: Hashable, Sendable { case partialWrite, unreadBytes, endedBeforeTLS }

    /// An operation that waits for both reads and writes.
    private enum Barrier: Hashable, Sendable { case secure, capture }

    private enum Reading: Hashable, Sendable {
        case read(Int, minimum: Int, maximum: Int)
        case close
        case barrier(Barrier)
    }

    private enum Writing: Hashable, Sendable {
        case write(Int)
        case close
        case barrier(Barrier)
    }

    private var reads = Deque<Reading>()
    private var writes = Deque<Writing>()
    private var isOpen = false
    private var isHeld = false
    private var available = 0
    private var inputHasEnded = false
    private var readIsClosed = false
    /// Whether the current write, or the close of the writing side, is in progress.
    private var isWriting = false
    private var writeIsClosed = false
    private var isSecuring = false
    private var isSecured = false
    package private(set) var isOver = false

    package init() {}

    /// Whether the bytes that arrived before the connection was lost are kept for the app, until the app requests more bytes than
    /// these.
    package var hasUnread: Bool { available > 0 && !readIsClosed && (isHeld || reads.isEmpty && writes.isEmpty) }

    /// The minimum number of bytes that the next read needs.
    package var wanted: Int { if case .read(_, let minimum, _)? = reads.first { minimum } else { 0 } }

    package mutating func handle(_ event: Event) -> [Action] {
        guard !isOver else { return [] }
        var actions: [Action] = []
        switch event {
        case .asked(let command): ask(command, &actions)
        case .opened: isOpen = true
        case .held(let isHeld): self.isHeld = isHeld
        case .received(let count): if !readIsClosed { available += count }
        case .inputEnded:
            guard !inputHasEnded else { return [] }
            inputHasEnded = true
            if !readIsClosed { actions.append(.tellReadClosed) }
        case .written:
            isWriting = false
            writes.removeFirst()
        case .outputClosed:
            isWriting = false
            writeIsClosed = true
            writes.removeFirst()
            actions.append(.tellWriteClosed)
        case .secured:
            isSecured = true
            guard isSecuring else { break }
            isSecuring = false
            reads.removeFirst()
            writes.removeFirst()
        case .timedOut(let number): timeOut(number, &actions)
        }
        advance(&actions)
        return actions
    }

    private mutating func ask(_ command: Command, _ actions: inout [Action]) {
        switch command {
        case .read(let number, let minimum, let maximum):
            guard minimum >= 0, maximum >= 1, minimum <= maximum else { return actions.append(.refuse(number, .lengths)) }
            reads.append(.read(number, minimum: max(1, minimum), maximum: maximum))
        case .write(let number): writes.append(.write(number))
        case .closeRead: reads.append(.close)
        case .closeWrite: writes.append(.close)
        case .stopReading:
            for case .read(let number, _, _) in reads { actions.append(.refuse(number, .closed)) }
            reads.removeAll { if case .read = $0 { true } else { false } }
            reads.append(.close)
        case .secure:
            reads.append(.barrier(.secure))
            writes.append(.barrier(.secure))
        case .capture:
            reads.append(.barrier(.capture))
            writes.append(.barrier(.capture))
        }
    }

    private mutating func timeOut(_ number: Int, _ actions: inout [Action]) {
        if let index = reads.firstIndex(where: { if case .read(number, _, _) = $0 { true } else { false } }) {
            reads.remove(at: index)
            return actions.append(.refuse(number, .timeout))
        }
        guard let index = writes.firstIndex(of: .write(number)) else { return }
        actions.append(.refuse(number, .timeout))
        guard index == 0, isWriting else {
            _ = writes.remove(at: index)
            return
        }
        isOver = true
        actions.append(.fail(.partialWrite))
    }

    /// Performs all operations that are ready.
    private mutating func advance(_ actions: inout [Action]) {
        while isOpen, !isHeld, !isSecuring, !isOver, step(&actions) {}
        guard !isOver, writeIsClosed, readIsClosed || inputHasEnded && available == 0, reads.isEmpty, writes.isEmpty else {
            return
        }
        isOver = true
        actions.append(.end)
    }

    private mutating func step(_ actions: inout [Action]) -> Bool {
        let hasRead = read(&actions)
        let hasWritten = write(&actions)
        return hasRead || hasWritten || pass(&actions)
    }

    private mutating func read(_ actions: inout [Action]) -> Bool {
        switch reads.first {
        case .read(let number, let minimum, let maximum)?:
            if readIsClosed {
                actions.append(.refuse(number, .closed))
            } else {
                guard available >= minimum || inputHasEnded else { return false }
                let count = min(available, maximum)
                available -= count
                actions.append(.deliver(number, count: count, isAtEnd: inputHasEnded && available == 0))
            }
        case .close?:
            if !readIsClosed {
                readIsClosed = true
                available = 0
                actions.append(.discardInput)
                if !inputHasEnded { actions.append(.tellReadClosed) }
            }
        case .barrier?, nil: return false
        }
        reads.removeFirst()
        return true
    }

    private mutating func write(_ actions: inout [Action]) -> Bool {
        guard !isWriting else { return false }
        switch writes.first {
        case .write(let number)? where writeIsClosed: actions.append(.refuse(number, .closed))
        case .close? where writeIsClosed: break
        case .write(let number)?:
            isWriting = true
            actions.append(.write(number))
            return false
        case .close?:
            isWriting = true
            actions.append(.closeOutput)
            return false
        case .barrier?, nil: return false
        }
        writes.removeFirst()
        return true
    }

    /// Starts an operation that waits for both sides, if it is the next operation on both sides.
    private mutating func pass(_ actions: inout [Action]) -> Bool {
        guard case .barrier(let barrier)? = reads.first, writes.first == .barrier(barrier) else { return false }
        switch barrier {
        case .capture:
            reads.removeFirst()
            writes.removeFirst()
            actions.append(.capture)
            return true
        case .secure where isSecured:
            reads.removeFirst()
            writes.removeFirst()
            return true
        case .secure:
            if available > 0 || inputHasEnded || readIsClosed || writeIsClosed {
                isOver = true
                actions.append(.fail(available > 0 ? .unreadBytes : .endedBeforeTLS))
            } else {
                isSecuring = true
                actions.append(.secure)
            }
            return false
        }
    }
}
