//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import CLoadingSystem
package import LoadingModel
package import NIOCore
import Synchronization

/// The temporary file that a download is written to.
///
/// Writing never occupies the event loop: bytes are gathered and written on one of ``FileWork``'s threads, in order, at least
/// ``batchSize`` at a time, with at most about ``outstandingLimit`` waiting. One caller uses it, one call at a time; it ends with
/// exactly one of ``finish()``, ``keep()`` and ``abort()``. A file whose writing failed is deleted at once, and so is one whose
/// sink is dropped without an end.
package final class FileSink: Sendable {
    /// Bytes accepted but not yet written beyond which the caller waits.
    package static let outstandingLimit = 2 << 20
    /// Below this, bytes are gathered rather than written.
    package static let batchSize = 256 << 10

    fileprivate struct State {
        var pieces = CircularBuffer<ByteBuffer>()
        /// Bytes in ``pieces`` and in the batch that is being written.
        var outstanding = 0
        var isWriting = false
        /// Small batches are written too.
        var isFlushing = false
        var isClosed = false
        var written: Int64
        /// Blocks are reserved as far as this.
        var reserved: Int64
        /// The file system reserves none.
        var isUnreservable = false
        var failure: LoadError?
        var waiters: [(outstanding: Int, continuation: UnsafeContinuation<Void, Never>)] = []
    }

    package let path: String
    /// For ``SplicePump``; nobody else writes to it.
    let descriptor: CInt
    let place: FilePlace
    /// What the server announced; nil where that is not known, or too little to reserve blocks for it.
    private let expectedLength: Int64?
    private let state: Mutex<State>

    /// Takes over an open file whose position is at its end.
    package init(path: String, descriptor: CInt, written: Int64, expectedLength: Int64? = nil) {
        self.path = path
        self.descriptor = descriptor
        self.expectedLength = expectedLength
        var facts = cls_file_facts()
        place = cls_file_facts(descriptor, &facts) == 0 ? FilePlace(device: facts.device, path: path) : FilePlace(opening: path)
        state = Mutex(State(written: written, reserved: written))
    }

    deinit {
        if !state.withLock({ $0.isClosed }) {
            _ = cls_unlink(path)
            _ = cls_close(descriptor)
        }
    }

    /// The file's length so far, as far as it is on its way to the disk.
    package var bytesWritten: Int64 { state.withLock { $0.written } }

    // MARK: Writing

    /// Takes the bytes; answers false when the caller should wait for ``room()`` before it brings more.
    package func enqueue(_ buffer: ByteBuffer) throws(LoadError) -> Bool {
        let (failure, outstanding) = state.withLock { state -> (LoadError?, Int) in
            if state.failure == nil, buffer.readableBytes > 0 {
                state.outstanding += buffer.readableBytes
                state.append(buffer)
                if state.outstanding >= Self.batchSize { startWriting(&state) }
            }
            return (state.failure, state.outstanding)
        }
        if let failure { throw failure }
        return outstanding < Self.outstandingLimit
    }

    /// Returns when a good part of what was outstanding is written.
    package func room() async throws(LoadError) {
        try await wait(untilOutstanding: Self.outstandingLimit / 2)
    }

    /// Takes the bytes, and returns at once unless too many are outstanding.
    package func write(_ buffer: ByteBuffer) async throws(LoadError) {
        guard try !enqueue(buffer) else { return }
        try await room()
    }

    /// Returns when everything is handed to the system.
    package func flush() async throws(LoadError) {
        state.withLock { state in
            guard state.outstanding > 0 else { return }
            state.isFlushing = true
            startWriting(&state)
        }
        try await wait(untilOutstanding: 0)
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
            guard !state.isUnreservable, state.written + count > state.reserved else { return nil }
            let end = Self.reservationEnd(written: state.written + count, expected: expectedLength)
            return end > start ? (start, end) : nil
        }
    }

    /// Blocks are reserved so far; nil says that there is no reserving.
    func noteReservation(_ end: Int64?) {
        state.withLock { state in
            if let end { state.reserved = end } else { state.isUnreservable = true }
        }
    }

    // MARK: Ending

    /// Completes the file and returns its length; it now belongs to the caller.
    package func finish() async throws(LoadError) -> Int64 {
        try await close()
    }

    /// Closes the file for a later resume and returns the length that it really has.
    package func keep() async throws(LoadError) -> Int64 {
        try await close()
    }

    /// Removes a file that was kept, and that nobody could go on with.
    package func removeKept() async {
        try? await FileWork.run(at: place) { () throws(LoadError) in _ = cls_unlink(self.path) }
    }

    /// Drops what is outstanding, closes the file and deletes it; does nothing after another end.
    package func abort() async {
        fail(.cancelled)
        _ = try? await wait(untilOutstanding: 0)
        try? await FileWork.run(at: place) { () throws(LoadError) in self.discard() }
    }

    private func close() async throws(LoadError) -> Int64 {
        if state.withLock({ $0.isWriting }) { try await flush() }
        return try await FileWork.run(at: place) { () throws(LoadError) in
            self.state.withLock { $0.isFlushing = true }
            self.writeBatches()
            return try self.closeNow()
        }
    }

    private func closeNow() throws(LoadError) -> Int64 {
        let (failure, written, reserved) = state.withLock { ($0.failure, $0.written, $0.reserved) }
        if let failure {
            discard()
            throw failure
        }
        let truncated = reserved > written ? cls_truncate(descriptor, written) : 0
        let wasClosed = state.withLock { state in
            defer { state.isClosed = true }
            return state.isClosed
        }
        guard !wasClosed else { return written }
        let closed = cls_close(descriptor)
        guard truncated == 0, closed == 0 else {
            _ = cls_unlink(path)
            throw Self.writingFailed(path, truncated < 0 ? truncated : closed)
        }
        return written
    }

    private func discard() {
        let wasClosed = state.withLock { state in
            defer { state.isClosed = true }
            return state.isClosed
        }
        guard !wasClosed else { return }
        _ = cls_unlink(path)
        _ = cls_close(descriptor)
    }

    // MARK: The writing thread

    private func startWriting(_ state: inout State) {
        guard !state.isWriting else { return }
        state.isWriting = true
        FileWork.submit(at: place) { self.writeBatches() }
    }

    /// Writes until too little is left to be worth it.
    private func writeBatches() {
        while let batch = takeBatch() {
            let size = batch.reduce(0) { $0 + $1.readableBytes }
            let reserved = reserve(Int64(size))
            let (status, count) = reserved < 0 ? (reserved, 0) : DescriptorWriter.write(batch, to: descriptor)
            let waiters = state.withLock { state -> [UnsafeContinuation<Void, Never>] in
                state.outstanding -= size
                state.written += count
                if status < 0, state.failure == nil { state.fail(Self.writingFailed(path, status)) }
                return state.waitersToResume()
            }
            for waiter in waiters { waiter.resume() }
            // Nobody should find a broken file; the descriptor is closed at the end.
            if status < 0 { _ = cls_unlink(path) }
        }
    }

    private func takeBatch() -> [ByteBuffer]? {
        state.withLock { state in
            guard state.failure == nil, !state.pieces.isEmpty, state.isFlushing || state.outstanding >= Self.batchSize else {
                state.isWriting = false
                state.isFlushing = false
                return nil
            }
            var batch: [ByteBuffer] = []
            while batch.count < DescriptorWriter.maximumPieces, let piece = state.pieces.popFirst() { batch.append(piece) }
            return batch
        }
    }

    private func fail(_ error: LoadError) {
        let waiters = state.withLock { state in
            if state.failure == nil { state.fail(error) }
            return state.waitersToResume()
        }
        for waiter in waiters { waiter.resume() }
    }

    /// The one place where a caller waits.
    private func wait(untilOutstanding limit: Int) async throws(LoadError) {
        await withUnsafeContinuation { continuation in
            let isThere = state.withLock { state in
                if state.outstanding <= limit { return true }
                state.waiters.append((limit, continuation))
                return false
            }
            if isThere { continuation.resume() }
        }
        if let failure = state.withLock({ $0.failure }) { throw failure }
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

    fileprivate mutating func fail(_ error: LoadError) {
        failure = error
        outstanding -= pieces.reduce(0) { $0 + $1.readableBytes }
        pieces.removeAll()
    }

    fileprivate mutating func waitersToResume() -> [UnsafeContinuation<Void, Never>] {
        let ready = waiters.filter { outstanding <= $0.outstanding }.map(\.continuation)
        waiters.removeAll { outstanding <= $0.outstanding }
        return ready
    }
}
