//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import CLoadingSystem
import HTTPWire
package import LoadingModel
package import NIOCore
import Synchronization

/// The temporary file that a download is written to.
///
/// Writing never occupies the event loop: bytes are gathered and written on one of ``FileWork``'s threads, in order, at least
/// ``batchSize`` at a time, with at most about ``outstandingLimit`` waiting. One caller uses it, one call at a time, and is called back
/// on any thread; it ends with ``close(_:)`` or ``abort(_:)``. A caller that no longer waits for an end, or for anything else, aborts:
/// the file is deleted when the thread that is at it returns. A file whose writing failed is deleted at once, and so is one whose sink
/// is dropped without an end, unless nothing was added to what an earlier load left.
package final class FileSink: Sendable {
    package typealias Done<Value: Sendable> = @Sendable (Result<Value, LoadError>) -> Void

    /// Bytes accepted but not yet written beyond which the caller waits.
    package static let outstandingLimit = 1 << 20
    /// Below this, bytes are gathered rather than written.
    package static let batchSize = 256 << 10

    fileprivate struct State {
        var pieces = CircularBuffer<ByteBuffer>()
        /// Bytes in ``pieces`` and in the batch that is being written.
        var outstanding = 0
        /// A thread is at the file, and looks what there is to do before it leaves.
        var isWorking = false
        /// A ``SplicePump`` is at the file.
        var isPumped = false
        /// Small batches are written too.
        var isFlushing = false
        var isClosed = false
        var closing: Done<Int64>?
        var isAborted = false
        var isGone = false
        var aborting: [Done<Void>] = []
        var written: Int64
        /// Blocks are reserved as far as this.
        var reserved: Int64
        /// The file system reserves none.
        var isUnreservable = false
        var failure: LoadError?
        /// What is there outlasts a disk that has no more room.
        var isKeptWhenFull = false
        /// The end is ``FileSink/keep(_:)``.
        var isKeeping = false
        /// Until when a load that has to end waits for the file.
        var endDeadline: NIODeadline?
        var waiters: [(outstanding: Int, done: Done<Void>)] = []
    }

    fileprivate enum Step {
        case write([ByteBuffer])
        case close(Done<Int64>)
        case discard
        case leave([Done<Void>])
    }

    package let path: String
    /// For ``SplicePump``; nobody else writes to it.
    let descriptor: CInt
    let place: FilePlace
    /// What the server announced; nil where that is not known, or too little to reserve blocks for it.
    private let expectedLength: Int64?
    /// What an earlier load left.
    let startLength: Int64
    private let state: Mutex<State>

    /// Takes over an open file whose position is at its end.
    package init(path: String, descriptor: CInt, written: Int64, expectedLength: Int64? = nil) {
        self.path = path
        self.descriptor = descriptor
        self.expectedLength = expectedLength
        startLength = written
        var facts = cls_file_facts()
        place = cls_file_facts(descriptor, &facts) == 0 ? FilePlace(device: facts.device, path: path) : FilePlace(opening: path)
        state = Mutex(State(written: written, reserved: written))
    }

    deinit {
        let (isClosed, written) = state.withLock { ($0.isClosed, $0.written) }
        guard !isClosed else { return }
        // What an earlier load left is as it was.
        let isUntouched = startLength > 0 && written == startLength
        FileWork.submit(at: place) { [path, descriptor] in
            if !isUntouched { _ = cls_unlink(path) }
            _ = cls_close(descriptor)
        }
    }

    /// The file's length so far, as far as it is on its way to the disk.
    package var bytesWritten: Int64 { state.withLock { $0.written } }

    /// Whether writing failed, or the sink was aborted: then there is no file, or soon none.
    package var hasFailed: Bool { state.withLock { $0.failure != nil } }

    // MARK: Writing

    /// Takes the bytes; answers false when the caller should wait for ``room(_:)`` before it brings more.
    package func enqueue(_ buffer: ByteBuffer) throws(LoadError) -> Bool {
        let (failure, outstanding, mustStart) = state.withLock { state -> (LoadError?, Int, Bool) in
            var mustStart = false
            if state.failure == nil, buffer.readableBytes > 0 {
                state.outstanding += buffer.readableBytes
                state.append(buffer)
                mustStart = state.outstanding >= Self.batchSize && state.beginWork()
            }
            return (state.failure, state.outstanding, mustStart)
        }
        if mustStart { startWorking() }
        if let failure { throw failure }
        return outstanding < Self.outstandingLimit
    }

    /// Calls back when a good part of what was outstanding is written.
    package func room(_ done: @escaping Done<Void>) { wait(untilOutstanding: Self.outstandingLimit / 2, done) }

    /// Calls back when everything is handed to the system.
    package func flush(_ done: @escaping Done<Void>) {
        let mustStart = state.withLock { state in
            guard state.outstanding > 0 else { return false }
            state.isFlushing = true
            return state.beginWork()
        }
        if mustStart { startWorking() }
        wait(untilOutstanding: 0, done)
    }

    /// A pump is at the file from now on, until ``pumpLeft()``.
    func pumpEntered() {
        state.withLock { $0.isPumped = true }
    }

    func pumpLeft() {
        let mustStart = state.withLock { state in
            state.isPumped = false
            return (state.isAborted || state.closing != nil) && state.beginWork()
        }
        if mustStart { startWorking() }
    }

    /// Counts bytes that were put into the file past the sink, which was flushed before.
    func advance(by count: Int64) {
        state.withLock { $0.written += count }
    }

    /// From where to where blocks are to be reserved before so many bytes are written; nil where they are, or need not be.
    func nextReservation(_ count: Int64) -> (start: Int64, end: Int64)? {
        guard let expectedLength else { return nil }
        return state.withLock { state in
            let start = max(state.reserved, state.written)
            let written = state.written.addingSaturating(count)
            guard !state.isUnreservable, written > state.reserved else { return nil }
            let end = Self.reservationEnd(written: written, expected: expectedLength)
            return end > start ? (start, end) : nil
        }
    }

    /// Blocks are reserved so far; nil says that there is no reserving.
    func noteReservation(_ end: Int64?) {
        state.withLock { state in
            if let end { state.reserved = end } else { state.isUnreservable = true }
        }
    }

    /// Has what is there stay when the disk has no more room, for ``keep(_:)`` or ``abort(_:)``.
    package func keepWhenFull() { state.withLock { $0.isKeptWhenFull = true } }

    /// The pump could not write.
    func pumpFailed(_ error: LoadError) {
        state.withLock { if $0.failure == nil { $0.fail(error) } }
    }

    // MARK: Ending

    /// Completes the file and tells the length that it really has; it now belongs to the caller.
    package func close(_ done: @escaping Done<Int64>) {
        let mustStart = state.withLock { state in
            state.closing = done
            return state.beginWork()
        }
        if mustStart { startWorking() }
    }

    /// Closes a file that is not whole, for another load to go on with, also where the disk has no more room, and tells its length.
    package func keep(_ done: @escaping Done<Int64>) {
        state.withLock { $0.isKeeping = true }
        close(done)
    }

    /// Drops what is outstanding, closes the file if need be and deletes it, also one that was closed.
    package func abort(_ done: @escaping Done<Void> = { _ in }) {
        let (waiters, mustStart) = state.withLock { state in
            if state.failure == nil { state.fail(.cancelled) }
            state.isAborted = true
            state.aborting.append(done)
            return (state.waitersToResume(), state.beginWork())
        }
        if mustStart { startWorking() }
        for waiter in waiters { waiter(.failure(.cancelled)) }
    }

    /// Until when is waited for the file's end: so long after this was first asked.
    func endDeadline(after patience: TimeAmount) -> NIODeadline {
        state.withLock { state in
            let deadline = state.endDeadline ?? .now() + patience
            state.endDeadline = deadline
            return deadline
        }
    }

    private func closeNow() throws(LoadError) -> Int64 {
        let (failure, written, reserved, isKept, isKeeping) = state.withLock { state in
            (state.failure, state.written, state.reserved, state.isKeptWhenFull, state.isKeeping)
        }
        if let failure {
            guard isKept, failure.isForWantOfSpace else {
                discard()
                throw failure
            }
            guard isKeeping else { throw failure }
            return try keepNow(written, after: failure)
        }
        // The number of a closed descriptor may be another file's.
        guard markClosed() else { return written }
        let truncated = reserved > written ? cls_truncate(descriptor, written) : 0
        let closed = cls_close(descriptor)
        guard truncated == 0, closed == 0 else {
            _ = cls_unlink(path)
            let error = Self.writingFailed(path, truncated < 0 ? truncated : closed)
            state.withLock { $0.failure = error }
            throw error
        }
        return written
    }

    /// Closes what there is of a file for which the disk had no room.
    private func keepNow(_ written: Int64, after failure: LoadError) throws(LoadError) -> Int64 {
        guard markClosed() else { throw failure }
        let kept = written - Self.givenBack(of: written, since: startLength)
        let truncated = cls_truncate(descriptor, kept)
        let closed = cls_close(descriptor)
        guard truncated == 0, closed == 0 else {
            _ = cls_unlink(path)
            throw failure
        }
        return kept
    }

    /// Deletes the file, and closes it if it is open.
    private func discard() {
        _ = cls_unlink(path)
        if markClosed() { _ = cls_close(descriptor) }
    }

    private func markClosed() -> Bool {
        state.withLock { state in
            defer { state.isClosed = true }
            return !state.isClosed
        }
    }

    // MARK: The thread that is at the file

    /// After ``State/beginWork()``, and not under the lock: where the system has no thread to give, the work is done on this one.
    private func startWorking() { FileWork.submit(at: place) { self.work() } }

    /// Does what there is to do, until too little is left to be worth it.
    private func work() {
        while true {
            switch state.withLock({ $0.nextStep() }) {
            case .write(let batch): write(batch)
            case .close(let done): done(Result { () throws(LoadError) in try closeNow() })
            case .discard: discard()
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
        let (waiters, failure, isKept) = state.withLock { state in
            state.outstanding -= size
            state.written += count
            if status < 0, state.failure == nil { state.fail(Self.writingFailed(path, status)) }
            return (state.waitersToResume(), state.failure, state.isKeptWhenFull && state.failure?.isForWantOfSpace == true)
        }
        for waiter in waiters { waiter(failure.map { .failure($0) } ?? .success(())) }
        // Nobody should find a broken file; the descriptor is closed at the end.
        if status < 0, !isKept { _ = cls_unlink(path) }
    }

    /// The one place where a caller is made to wait.
    private func wait(untilOutstanding limit: Int, _ done: @escaping Done<Void>) {
        let result = state.withLock { state -> Result<Void, LoadError>? in
            if let failure = state.failure { return .failure(failure) }
            if state.outstanding <= limit { return .success(()) }
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
    /// Pieces smaller than this are copied together.
    private static var smallPiece: Int { 4_096 }
    private static var gatheredSize: Int { 65_536 }

    fileprivate mutating func append(_ buffer: ByteBuffer) {
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

    /// Whether a thread has to be sent to the file.
    fileprivate mutating func beginWork() -> Bool {
        guard !isWorking, !isPumped else { return false }
        isWorking = true
        return true
    }

    fileprivate mutating func fail(_ error: LoadError) {
        failure = error
        outstanding -= pieces.reduce(0) { $0 + $1.readableBytes }
        pieces.removeAll()
    }

    fileprivate mutating func waitersToResume() -> [FileSink.Done<Void>] {
        let ready = waiters.filter { outstanding <= $0.outstanding || failure != nil }.map(\.done)
        waiters.removeAll { outstanding <= $0.outstanding || failure != nil }
        return ready
    }

    fileprivate mutating func nextStep() -> FileSink.Step {
        if isAborted, !isGone {
            isGone = true
            return .discard
        }
        if failure == nil, !pieces.isEmpty, isFlushing || closing != nil || outstanding >= FileSink.batchSize {
            var batch: [ByteBuffer] = []
            while batch.count < DescriptorWriter.maximumPieces, let piece = pieces.popFirst() { batch.append(piece) }
            return .write(batch)
        }
        if let done = closing {
            closing = nil
            return .close(done)
        }
        isWorking = false
        isFlushing = false
        defer { aborting = [] }
        return .leave(aborting)
    }
}
