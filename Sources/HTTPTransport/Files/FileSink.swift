// SPDX-License-Identifier: Apache-2.0

import CLoadingSystem
import HTTPWire
package import LoadingModel
package import NIOCore
import Synchronization
package import SystemThreads
import TransportMachines

/// The temporary file that a download is written to.
///
/// Writing never blocks the event loop: bytes are gathered and written in order on one of ``FileWork``'s threads, at least
/// ``FileSinkMachine/batchSize`` at a time, while at most about ``outstandingLimit`` bytes wait. A sink has one caller, which makes
/// one call at a time and is called back on any thread. The caller finishes with ``close(_:)``, ``keep(_:)`` or ``abort(_:)``. A
/// caller that stops waiting for any step must abort; the file is deleted when the writing thread returns. If writing fails, the
/// file is deleted at once (but see ``keepWhenFull()``). If the sink is released unfinished, the file is deleted unless it contains
/// only the bytes of an earlier load.
package final class FileSink: Sendable {
    package typealias Done<Value: Sendable> = @Sendable (Result<Value, LoadError>) -> Void

    /// The number of bytes, accepted but not yet written, at which the caller starts to wait.
    package static let outstandingLimit = 1 << 20

    fileprivate struct State: Sendable {
        var machine: FileSinkMachine
        var pieces = GatheredPieces()
        var reservation: BlockReservation
        /// The reason why the file is deleted, or about to be.
        var failure: LoadError?
        /// The instant until which a failed or cancelled load waits for the file.
        var endDeadline: NIODeadline?
        var closing: Done<Int64>?
        var aborting: [Done<Void>] = []
        var waiters: [(outstanding: Int, done: Done<Void>)] = []
    }

    package let path: String
    /// The descriptor of the file; ``SplicePump``, the only other writer, uses it, too.
    let descriptor: CInt
    let place: FilePlace
    /// The number of bytes that an earlier load left.
    private let startLength: Int64
    private let state: Mutex<State>
    /// The reservation of the descriptor, which is released when the file is closed.
    private let room: Mutex<FileReservation?>

    /// Takes over an open file whose position is at its end.
    ///
    /// `expectedLength` is the length that the server announced; nil if it is unknown, or too small to reserve blocks for.
    package init(path: String, descriptor: CInt, written: Int64, expectedLength: Int64? = nil, room: FileReservation? = nil) {
        self.path = path
        self.room = Mutex(room)
        self.descriptor = descriptor
        startLength = written
        var facts = cls_file_facts()
        place = cls_file_facts(descriptor, &facts) == 0 ? FilePlace(device: facts.device, path: path) : FilePlace(opening: path)
        state = Mutex(
            State(
                machine: FileSinkMachine(written: written),
                reservation: BlockReservation(expected: expectedLength, written: written)))
    }

    deinit {
        let (isOpen, written) = state.withLock { ($0.machine.isOpen, $0.machine.written) }
        guard isOpen else { return }
        // The bytes that an earlier load left are unchanged.
        let isUntouched = startLength > 0 && written == startLength
        let room = room.withLock { $0.take() }
        FileWork.submit(at: place) { [path, descriptor] in
            if !isUntouched { _ = cls_unlink(path) }
            withExtendedLifetime(room) { _ = cls_close(descriptor) }
        }
    }

    /// The length of the file so far, as handed to the system.
    package var bytesWritten: Int64 { state.withLock { $0.machine.written } }

    /// Whether writing failed, or the sink was aborted: the file is deleted, or about to be.
    package var hasFailed: Bool { state.withLock { $0.failure != nil } }

    /// Passes an event to the machine, performs the resulting step, and calls back the waiters that need not wait any longer.
    ///
    /// The writing thread uses `nextTurn()` instead.
    @discardableResult
    private func handle(
        _ event: FileSinkMachine.Event, _ error: LoadError? = nil, change: (inout State) -> Void = { _ in }
    ) -> FileSinkMachine.Step {
        let (step, ready, failure) = state.withLock { state in
            change(&state)
            if let error { state.fail(error) }
            let step = state.machine.handle(event)
            return (step, state.waitersToResume(), state.failure)
        }
        // The work is submitted outside the lock: if the system cannot create a thread, the work runs on this thread.
        if step == .start { FileWork.submit(at: place) { self.work() } }
        for done in ready { done(failure.map { .failure($0) } ?? .success(())) }
        return step
    }

    // MARK: Writing

    /// Queues the bytes; returns false if the caller should wait for ``room(_:)`` before it queues more.
    package func enqueue(_ buffer: ByteBuffer) throws(LoadError) -> Bool {
        var (failure, outstanding): (LoadError?, Int) = (nil, 0)
        handle(.queued(buffer.readableBytes)) { state in
            failure = state.failure
            outstanding = state.machine.outstanding + buffer.readableBytes
            if failure == nil { state.pieces.append(buffer) }
        }
        if let failure { throw failure }
        return outstanding < Self.outstandingLimit
    }

    /// Calls back when at most half of ``outstandingLimit`` still has to be written.
    package func room(_ done: @escaping Done<Void>) { wait(untilOutstanding: Self.outstandingLimit / 2, done) }

    /// Calls back when all bytes have been handed to the system.
    package func flush(_ done: @escaping Done<Void>) {
        handle(.flush)
        wait(untilOutstanding: 0, done)
    }

    /// Notes that a pump writes to the file, until ``pumpLeft()``.
    func pumpEntered() { handle(.pumpEntered) }

    func pumpLeft() { handle(.pumpLeft) }

    /// Counts bytes that a pump wrote to the file directly; the sink was flushed before.
    func advance(by count: Int64) { handle(.moved(count)) }

    /// Fails the sink, because the pump could not write.
    func pumpFailed(_ error: LoadError) { handle(.failed(isFull: error.isOutOfSpace), error) }

    /// Reserves blocks for bytes that are about to be written.
    ///
    /// Call it on the thread that writes.
    ///
    /// - Returns: 0, or a negative error code if the bytes cannot be written.
    func reserve(_ count: Int64) -> CInt {
        guard let blocks = state.withLock({ $0.reservation.next(count, written: $0.machine.written) }) else { return 0 }
        let status = cls_preallocate(descriptor, blocks.lowerBound, blocks.upperBound - blocks.lowerBound)
        switch -status {
        case 0: state.withLock { $0.reservation.note(end: blocks.upperBound) }
        case SystemFailure.noSpace, SystemFailure.overQuota, SystemFailure.inputOutput: return status
        // Reserving is optional; not every file system supports it.
        default: state.withLock { $0.reservation.stop() }
        }
        return 0
    }

    /// Keeps the bytes written so far if the disk fills up, until ``keep(_:)`` or ``abort(_:)``.
    package func keepWhenFull() { state.withLock { $0.machine.keepWhenFull() } }

    // MARK: Ending

    /// Completes the file and reports its actual length; from then on, the caller owns the file.
    package func close(_ done: @escaping Done<Int64>) { handle(.end(.close)) { $0.closing = done } }

    /// Closes an incomplete file for another load to continue, even if the disk is full, and reports its length.
    package func keep(_ done: @escaping Done<Int64>) { handle(.end(.keep)) { $0.closing = done } }

    /// Drops outstanding bytes, closes the file if it is open, and deletes it, even if it was closed.
    package func abort(_ done: @escaping Done<Void> = { _ in }) { handle(.abort, .cancelled) { $0.aborting.append(done) } }

    /// Returns the deadline for the end of the file: `patience` after the first call.
    func endDeadline(after patience: TimeAmount) -> NIODeadline {
        state.withLock { state in
            let deadline = state.endDeadline ?? .now() + patience
            state.endDeadline = deadline
            return deadline
        }
    }

    /// Closes the file after releasing the blocks beyond its end, and the last bytes of a file that filled the disk.
    private func close(isFull: Bool) throws(LoadError) -> Int64 {
        let (failure, written, reserved) = state.withLock { ($0.failure, $0.machine.written, $0.reservation.end) }
        let length = isFull ? written - BlockReservation.bytesToRelease(of: written, since: startLength) : written
        let truncated = isFull || reserved > written ? cls_truncate(descriptor, length) : 0
        let closed = closeDescriptor()
        if truncated == 0, closed == 0 { return length }
        let error = failure ?? Self.writingFailed(path, truncated < 0 ? truncated : closed)
        fail(error)
        throw error
    }

    private func closeDescriptor() -> CInt {
        defer { _ = room.withLock { $0.take() } }
        return cls_close(descriptor)
    }

    // MARK: The thread that writes

    fileprivate enum Turn {
        case write([ByteBuffer])
        case close(isFull: Bool, Done<Int64>?)
        case tell(Result<Int64, LoadError>, Done<Int64>?)
        case discard(isOpen: Bool)
        case leave([Done<Void>])
    }

    /// Performs steps until too few bytes are left to be worth writing.
    private func work() {
        while true {
            switch state.withLock({ $0.nextTurn() }) {
            case .write(let batch): write(batch)
            case .close(let isFull, let done): done?(Result { () throws(LoadError) in try close(isFull: isFull) })
            case .tell(let end, let done): done?(end)
            case .discard(let isOpen):
                _ = cls_unlink(path)
                if isOpen { _ = closeDescriptor() }
            case .leave(let aborted):
                for done in aborted { done(.success(())) }
                return
            }
        }
    }

    private func write(_ batch: [ByteBuffer]) {
        let size = batch.reduce(0) { $0 + $1.readableBytes }
        let reserved = reserve(Int64(size))
        let (status, count) = reserved < 0 ? (reserved, 0) : DescriptorWriter.write(batch, to: descriptor)
        guard status < 0 else {
            _ = handle(.wrote(count, of: size))
            return
        }
        fail(Self.writingFailed(path, status)) { _ = $0.machine.handle(.wrote(count, of: size)) }
    }

    /// Fails the sink, and deletes its file before other programs can open it, unless the file is kept (``keepWhenFull()``).
    private func fail(_ error: LoadError, change: (inout State) -> Void = { _ in }) {
        if handle(.failed(isFull: error.isOutOfSpace), error, change: change) == .unlink { _ = cls_unlink(path) }
    }

    /// Calls `done` when at most `limit` bytes are outstanding, or the sink has failed.
    private func wait(untilOutstanding limit: Int, _ done: @escaping Done<Void>) {
        let result = state.withLock { state -> Result<Void, LoadError>? in
            if let failure = state.failure { return .failure(failure) }
            if state.machine.outstanding <= limit { return .success(()) }
            state.waiters.append((limit, done))
            return nil
        }
        if let result { done(result) }
    }

    static func writingFailed(_ path: String, _ status: CInt) -> LoadError {
        let error = SystemFailure(status)
        return LoadError(.cannotWriteToFile, "writing \(path): \(error)", cause: error)
    }
}

extension FileSink.State {
    fileprivate mutating func fail(_ error: LoadError) {
        guard failure == nil else { return }
        failure = error
        pieces = GatheredPieces()
    }

    fileprivate mutating func waitersToResume() -> [FileSink.Done<Void>] {
        guard !waiters.isEmpty else { return [] }
        let (outstanding, hasFailed) = (machine.outstanding, failure != nil)
        defer { waiters.removeAll { outstanding <= $0.outstanding || hasFailed } }
        return waiters.filter { outstanding <= $0.outstanding || hasFailed }.map(\.done)
    }

    fileprivate mutating func nextTurn() -> FileSink.Turn {
        switch machine.handle(.threadIsFree) {
        case .write: return .write(pieces.takeBatch())
        case .close(let isFull): return .close(isFull: isFull, closing.take())
        case .tell: return .tell(failure.map { .failure($0) } ?? .success(machine.written), closing.take())
        case .discard(let isOpen): return .discard(isOpen: isOpen)
        case .leave, .nothing, .start, .unlink:
            guard machine.isGone else { return .leave([]) }
            defer { aborting = [] }
            return .leave(aborting)
        }
    }
}

/// Bytes that are waiting to be written; small buffers are copied into shared ones.
private struct GatheredPieces: Sendable {
    private static let smallPiece = 4_096
    private static let gatheredSize = 65_536

    private var pieces = CircularBuffer<ByteBuffer>()

    mutating func append(_ buffer: ByteBuffer) {
        guard buffer.readableBytes > 0 else { return }
        guard buffer.readableBytes < Self.smallPiece else { return pieces.append(buffer) }
        if let last = pieces.indices.last, pieces[last].writableBytes >= buffer.readableBytes,
            pieces[last].capacity == Self.gatheredSize
        {
            pieces[last].writeImmutableBuffer(buffer)
        } else {
            var gathered = ByteBufferAllocator().buffer(capacity: Self.gatheredSize)
            gathered.writeImmutableBuffer(buffer)
            pieces.append(gathered)
        }
    }

    /// Returns as many buffers as can be written at once.
    mutating func takeBatch() -> [ByteBuffer] {
        var batch: [ByteBuffer] = []
        while batch.count < DescriptorWriter.maximumPieces, let piece = pieces.popFirst() { batch.append(piece) }
        return batch
    }
}
