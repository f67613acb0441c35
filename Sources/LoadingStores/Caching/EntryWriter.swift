// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import HTTPWire
import Synchronization
import SystemThreads

/// Receives, in pieces, the body of a response that is to be stored.
///
/// The entry is invisible until ``finish()``; a writer that is released earlier leaves nothing behind. The writer buffers about
/// 256 KiB of the body and writes the rest to a file as it arrives; the caller pauses while the writer ``isBehind``. Bytes that
/// wait to be written count against the queue's ``WriteBudget``; a body that exceeds it is not stored on disk. A writer has one
/// caller at a time. Callbacks run on a thread of the ``DiskQueue``. A failure ends the storing, never the load.
package final class EntryWriter: Sendable {
    /// Bodies up to this size are buffered until they are complete, and written with one call.
    package static let bufferLimit = 256 << 10
    /// The size of the pieces in which larger bodies are written.
    private static let pieceSize = 64 << 10
    /// If more bytes than this wait to be written because the caller does not pause, the response is not stored.
    private static let outstandingLimit = 16 << 20
    /// The approximate memory of a queued entry besides its body and fields.
    private static let entryOverhead = 1024

    private struct State {
        var response: StoredResponse
        var userInfo: [UInt8]?
        var attachment: (any Sendable)?
        var mayGoToDisk: Bool
        var gathered = Data()
        var total: Int64 = 0
        /// Bytes that are queued but not written yet.
        var outstanding = 0
        var aside: TemporaryCacheFile?
        var isOpen = true
        var waiting: [@Sendable () -> Void] = []

        /// Releases everything; returns the previous state.
        mutating func close() -> State {
            isOpen = false
            defer {
                gathered = Data()
                aside = nil
                attachment = nil
                waiting = []
            }
            return self
        }
    }

    private let cache: ResponseCache
    private let disk: DiskTier?
    private let limit: Int64
    private let isLarge: Bool
    private let isLimited: Bool
    private let state: Mutex<State>

    init(
        cache: ResponseCache,
        response: StoredResponse,
        expectedLength: Int64,
        userInfo: [UInt8]?,
        attachment: (any Sendable)?,
        memoryOnly: Bool,
        isLimited: Bool
    ) {
        self.cache = cache
        disk = cache.disk.flatMap { $0.isEnabled ? $0 : nil }
        limit = cache.bodyLimit(memoryOnly: memoryOnly, isLimited: isLimited)
        self.isLimited = isLimited
        isLarge = expectedLength > Int64(Self.bufferLimit)
        var first = State(response: response, userInfo: userInfo, attachment: attachment, mayGoToDisk: !memoryOnly)
        if !isLarge, expectedLength > 0 { first.gathered.reserveCapacity(Int(expectedLength)) }
        state = Mutex(first)
    }

    deinit { abandon() }

    /// Whether the writer accepts more bytes.
    ///
    /// False after the end, and if the body is too large or the disk failed.
    package var isOpen: Bool { state.withLock { $0.isOpen } }

    /// Whether the caller should wait for ``whenCaughtUp(_:)`` before it appends more.
    package var isBehind: Bool {
        state.withLock { $0.isOpen && $0.outstanding > 0 && $0.outstanding + $0.gathered.count >= Self.bufferLimit }
    }

    /// Whether the disk is known not to make progress.
    ///
    /// Callers then do not wait for it, and a body that does not fit into memory is not stored.
    package var isDiskStuck: Bool { disk?.queue.isFull(.changes) ?? false }

    /// Abandons the response after a timeout.
    ///
    /// Until the disk has caught up, other entries are not stored on disk either.
    package func giveUp() {
        disk?.queue.noteFull(.changes)
        abandon()
    }

    /// Calls `ready` when most queued bytes are written: immediately if they already are, otherwise on the queue's thread.
    package func whenCaughtUp(_ ready: @escaping @Sendable () -> Void) {
        let isReady = state.withLock { state in
            guard state.isOpen, state.outstanding > Self.bufferLimit / 2 else { return true }
            state.waiting.append(ready)
            return false
        }
        if isReady { ready() }
    }

    package func append(_ bytes: UnsafeRawBufferPointer) {
        let portion = state.withLock { state -> Portion in
            guard state.isOpen else { return .none }
            state.total += Int64(bytes.count)
            guard state.total <= limit, state.outstanding <= Self.outstandingLimit else { return .tooMuch }
            state.gathered.append(contentsOf: bytes)
            return takePortion(&state)
        }
        switch portion {
        case .none: break
        case .tooMuch: abandon()
        case .piece(let piece, let aside): spill(piece, to: aside)
        }
    }

    /// Replaces the properties that are stored with the body, because the app may have changed them at the end of the load.
    ///
    /// With `memoryOnly`, a body that is too large for memory is not stored.
    package func amend(userInfo: [UInt8]?, attachment: (any Sendable)?, memoryOnly: Bool) {
        state.withLock {
            $0.userInfo = userInfo
            $0.attachment = attachment
            if memoryOnly { $0.mayGoToDisk = false }
        }
    }

    /// Completes the body and makes the entry visible.
    ///
    /// A small entry is in memory when this method returns; lookups that begin later find a larger one, too.
    package func finish() {
        guard var last = state.withLock({ $0.isOpen ? $0.close() : nil }) else { return }
        last.response.bodyLength = last.total
        let key = last.response.url
        let name = disk.map { _ in CacheEntryName(key: key) }
        let hit = ResponseCache.Hit(
            response: last.response,
            body: .bytes(last.gathered),
            attachment: last.attachment,
            userInfo: last.userInfo,
            mayGoToDisk: last.mayGoToDisk,
            storedAt: last.response.responseTime
        )
        cache.storing.withLock { _ in
            cache.memory.withLock { memory in
                if last.aside == nil {
                    memory.insert(key, name, hit, isLimited: isLimited)
                } else {
                    memory.removeReplaced(key, by: last.response)
                }
            }
            if let disk, let name { store(last, name, on: disk) }
        }
        // Callers need not wait any longer: the queue writes the last pieces before the entry.
        tell(last.waiting)
    }

    private func store(_ last: State, _ name: CacheEntryName, on disk: DiskTier) {
        let key = last.response.url
        let head = CacheEntryFile.Head(key: key, response: last.response, userInfo: last.userInfo)
        let count = last.gathered.count + last.response.headers.bytes.count + (last.userInfo?.count ?? 0) + Self.entryOverhead
        let budget = disk.queue.writeBudget
        if last.mayGoToDisk, !isDiskStuck, budget.take(count, isLimited: isLimited) {
            disk.store(name, head, last.aside, rest: last.gathered) { budget.release(count) }
        } else {
            disk.discard(last.aside)
            // Otherwise the replaced entry would reappear after the new one is evicted from memory.
            disk.removeReplaced(name, by: last.response)
        }
    }

    /// Discards everything because the load ended early.
    package func abandon() {
        let last = state.withLock { $0.close() }
        disk?.discard(last.aside)
        tell(last.waiting)
    }

    private func tell(_ waiting: [@Sendable () -> Void]) {
        for ready in waiting { ready() }
    }

    // MARK: Writing

    private enum Portion {
        case none
        case piece(Data, TemporaryCacheFile)
        case tooMuch
    }

    /// Takes the buffered bytes if they are enough for a piece.
    private func takePortion(_ state: inout State) -> Portion {
        let threshold = isLarge || state.aside != nil ? Self.pieceSize : Self.bufferLimit + 1
        guard state.gathered.count >= threshold, state.mayGoToDisk, let disk else { return .none }
        let piece = state.gathered
        guard !isDiskStuck, disk.queue.writeBudget.take(piece.count, isLimited: isLimited) else { return .tooMuch }
        guard
            let aside = state.aside
                ?? FileBudget.shared.take(.half).map({ TemporaryCacheFile(directory: disk.directory, reservation: $0) })
        else {
            disk.queue.writeBudget.release(piece.count)
            return .tooMuch
        }
        state.aside = aside
        state.gathered = Data()
        state.outstanding += piece.count
        return .piece(piece, aside)
    }

    private func spill(_ piece: Data, to aside: TemporaryCacheFile) {
        disk?.queue.run(on: .changes) { [weak self, budget = disk?.queue.writeBudget] in
            // If the writer was abandoned, its file may be closed already; the file then ignores the piece.
            piece.withUnsafeBytes { aside.append($0) }
            budget?.release(piece.count)
            self?.wrote(piece.count, hasFailed: aside.hasFailed)
        }
    }

    private func wrote(_ count: Int, hasFailed: Bool) {
        let ready = state.withLock { state -> [@Sendable () -> Void] in
            state.outstanding -= count
            guard state.outstanding <= Self.bufferLimit / 2 else { return [] }
            defer { state.waiting = [] }
            return state.waiting
        }
        if hasFailed { abandon() }
        tell(ready)
    }
}
