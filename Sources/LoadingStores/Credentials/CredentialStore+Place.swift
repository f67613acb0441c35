// SPDX-License-Identifier: Apache-2.0

import Synchronization
import SystemThreads

/// Loads and saves permanent credentials; both may wait for the disk or a keyring.
extension CredentialStore {
    private static let pause = 5.0

    /// Whether the permanent credentials have to be loaded, for the first time or again.
    private var needsLoad: Bool {
        let isDue = state.withLock { state -> Bool? in
            if state.isMemoryOnly { return false }
            if state.nextLoad > Monitor.clock { return false }
            return state.isLoaded ? nil : true
        }
        return isDue ?? place?.mayHaveChanged() ?? false
    }

    /// Whether credentials are only in memory, so that there is nothing to wait for.
    package var isMemoryOnly: Bool { state.withLock { $0.isMemoryOnly } }

    /// Calls `completion` on the queue when the permanent credentials are loaded.
    ///
    /// This is for threads that must not even access a file.
    package func prepareOnQueue(completion: @escaping @Sendable () -> Void) {
        // If they are loaded already, the callback does not wait for a keyring.
        queue.run(on: .answers) { self.prepare(completion: completion) }
    }

    /// Calls `completion` when the permanent credentials are loaded: immediately if they already are, otherwise on the queue.
    package func prepare(completion: @escaping @Sendable () -> Void) {
        guard needsLoad else { return completion() }
        queue.run {
            self.load()
            completion()
        }
    }

    /// Returns when the permanent credentials are loaded.
    package func prepare() async {
        guard needsLoad else { return }
        await withCheckedContinuation { continuation in
            prepare { continuation.resume() }
        }
    }

    /// Blocks the thread until the permanent credentials are loaded.
    package func prepareAndWait() {
        guard needsLoad else { return }
        queue.runAndWait { self.load() }
    }

    /// Calls `completion` when earlier changes are durable or have failed, or if the backing store does not respond.
    package func flush(completion: @escaping @Sendable () -> Void) {
        let completion = queue.calledEvenIfStuck(on: [.changes], completion)
        queue.run {
            self.save()
            completion()
        }
    }

    /// Saves earlier changes and waits until that is done; returns whether they are durable.
    package func flushAndWait() -> Bool {
        queue.runAndWait { self.save() }
        return state.withLock { !$0.isMemoryOnly && $0.pending.isEmpty }
    }

    /// Runs on the queue.
    private func load() {
        guard let place, needsLoad else { return }
        do throws(StoreFailure) {
            if let kept = try place.load() {
                take(kept)
            } else {
                try recover(place)
            }
        } catch {
            handle(error)
            state.withLock { $0.nextLoad = Monitor.clock + Self.pause }
        }
    }

    private func take(_ kept: [StoredCredential]) {
        let loaded = CredentialBook(kept)
        let hooks: [@Sendable () -> Void] = state.withLock { state in
            state.reconsiderDefaults(knowing: loaded)
            var book = loaded
            book.apply(state.pending)
            let hasChanged = state.isLoaded && book != state.permanent
            state.permanent = book
            state.isLoaded = true
            state.failures = 0
            return hasChanged ? state.hooks : []
        }
        for hook in hooks { hook() }
    }

    /// Writes the credentials that this process has in memory, because the stored ones are lost.
    private func recover(_ place: any PermanentCredentials) throws(StoreFailure) {
        let known = state.withLock { state in
            state.isLoaded = true
            state.provisionalDefaults = [:]
            return state.permanent.kept
        }
        if !known.isEmpty { try place.apply(known.map { .store($0) }, knowing: known) }
    }

    /// Makes pending changes durable; runs on the queue, or at exit.
    func save() {
        state.withLock { $0.isSaveScheduled = false }
        if !state.withLock({ $0.isLoaded }) { load() }
        guard let place else { return }
        // The changes stay pending while they are written. They are copied and counted under one lock.
        let (changes, known, mayWrite) = state.withLock { state in
            let mayWrite = state.isLoaded && !state.isMemoryOnly
            state.frozenCount = mayWrite ? state.pending.count : 0
            return (state.pending, state.permanent.kept, mayWrite)
        }
        guard !changes.isEmpty else { return }
        guard mayWrite else { return scheduleSave(after: Self.pause) }
        do throws(StoreFailure) {
            try place.apply(changes, knowing: known)
            state.withLock { state in
                state.pending.removeFirst(min(changes.count, state.pending.count))
                state.frozenCount = 0
                state.failures = 0
            }
        } catch {
            handle(error)
            let failures = state.withLock { state in
                state.frozenCount = 0
                state.failures += 1
                return state.failures
            }
            scheduleSave(after: min(Self.pause * Double(failures), 60))
        }
    }

    private func scheduleSave(after seconds: Double) {
        let shouldSave = state.withLock { state in
            guard !state.isMemoryOnly, !state.isSaveScheduled else { return false }
            state.isSaveScheduled = true
            return true
        }
        if shouldSave { queue.run(after: seconds) { self.save() } }
    }

    private func handle(_ failure: StoreFailure) {
        let isFirst = state.withLock { state in
            if failure.isPermanent {
                state.isMemoryOnly = true
                state.isLoaded = true
                state.pending = []
            }
            return state.warned.insert(failure.reason).inserted
        }
        guard isFirst, failure != .killed, let place else { return }
        let outcome = failure.isPermanent ? "they are kept in memory only" : "it will be retried"
        StoreWarnings.warn("credentials in \(place.place): \(failure.reason); \(outcome)")
    }
}
