// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// Decodes one coding of a body, a piece at a time.
final class CodingStage {
    private enum State {
        /// The bytes received so far are too few to recognize the coding.
        case unopened
        case decoding(LibraryCoding.Decode)
        /// A frame has ended; another may follow.
        case betweenFrames(LibraryCoding.Decode)
        /// The coding has ended; all further input is ignored.
        case over
        /// The data are damaged: the caller has the output before the damage, and the next call of ``produce(upTo:)`` throws.
        case damaged(DecodingFailure)
    }

    private let coding: LibraryCoding
    private var state = State.unopened
    private var input = CodedInput()
    /// Whether ``produce(upTo:)`` may take longer than a turn of an event loop.
    private(set) var isSlow = false

    var consumed: Int64 { input.count }
    private(set) var produced: Int64 = 0

    init(_ coding: LibraryCoding) { self.coding = coding }

    /// Whether all further input is ignored.
    var isOver: Bool { if case .over = state { true } else { false } }

    /// Whether the body is complete if it ends after the input received so far.
    var mayEndHere: Bool {
        switch state {
        case .unopened: consumed == 0
        case .decoding, .damaged: false
        case .betweenFrames, .over: true
        }
    }

    /// Adds input; call it only after ``produce(upTo:)`` has returned nil.
    func feed(_ more: ByteBuffer) { input.add(more) }

    /// Decodes up to `count` bytes; returns nil if the stage needs more input, or has ended.
    ///
    /// Returns an empty buffer before slow decoding, and after a long step without output; the caller then calls this method again.
    func produce(upTo count: Int) throws(DecodingFailure) -> ByteBuffer? {
        while true {
            switch state {
            case .unopened:
                guard try open() else { return nil }
                // The empty buffer lets the caller make the next call on another thread.
                if isSlow { return ByteBuffer() }
            case .betweenFrames(let decode):
                switch coding.next(input.bytes.readableBytesView) {
                case .isTooShort: return nil
                case .frame: state = .decoding(decode)
                case .other: end()
                }
            case .over:
                return nil
            case .damaged(let failure):
                throw failure
            case .decoding(let decode):
                guard !input.isExhausted else { return nil }
                let piece = self.decode(decode, upTo: count)
                if piece.readableBytes > 0 { return piece }
                // The library stopped early because decoding takes a long time.
                if case .decoding = state, input.bytes.readableBytes > 0 { return piece }
            }
        }
    }

    private func open() throws(DecodingFailure) -> Bool {
        let start = input.bytes.readableBytesView
        guard let first = start.first else { return false }
        switch coding.first(start) {
        case .isTooShort: return false
        case .frame: break
        case .other: throw .corrupt("it does not start like \(coding.name) data")
        }
        guard let decode = coding.makeDecoder(start) else { throw .outOfMemory }
        isSlow = coding.isSlow(first)
        state = .decoding(decode)
        return true
    }

    private func end() {
        state = .over
        input.bytes.clear()
    }

    private func decode(_ decode: @escaping LibraryCoding.Decode, upTo count: Int) -> ByteBuffer {
        let capacity = input.room(upTo: count)
        var output = ByteBufferAllocator().buffer(capacity: capacity)
        var step = LibraryCoding.Step(read: 0, written: 0, outcome: .continues)
        output.writeWithUnsafeMutableBytes(minimumWritableBytes: capacity) { room in
            let room = UnsafeMutableRawBufferPointer(rebasing: room.prefix(count))
            input.bytes.readWithUnsafeReadableBytes { source in
                step = decode(source, room)
                return step.read
            }
            input.hasMore = step.written == room.count
            return step.written
        }
        produced += Int64(output.readableBytes)
        switch step.outcome {
        case .continues: break
        case .isOver:
            input.hasMore = false
            state = .betweenFrames(decode)
        // The output decoded so far is returned first; after that, `produce(upTo:)` throws the failure.
        case .failed(let failure): state = .damaged(failure)
        }
        return output
    }
}
