// SPDX-License-Identifier: Apache-2.0

import Synchronization
import SystemThreads

/// A value that is shared by the threads of this process and, through a file, by the user's processes.
///
/// Every change is visible in this process immediately and is written to the file soon after, on the disk queue. Writes start at
/// least one second apart, except for a flush and at exit; the changes made in between are written together. Before a write, the
/// file is read and the changes made here are applied to what other processes wrote. The file is first read when the value is
/// needed: by ``prepare(_:)`` on the disk queue, or by the first caller on its own thread. Lookups cause the file to be checked on
/// the disk queue, at most every 250 ms, and read again if it has changed. Problems with the file never fail a caller: a damaged
/// file is set aside, and if no file can be written, the value is kept in memory only.
///
/// The lock of `fileState` is held while the file is read or written, the lock of `state` during a lookup or change. The lock of
/// `state` may be taken while that of `fileState` is held. Neither lock is held while a thread waits for another process to
/// release the file's lock. No hook is called while a lock is held.
final class SharedValue<Content: SharedContent>: Sendable {
    struct State {
        var content = Content()
        /// Changes that are not in the file yet, oldest first.
        var pending: [Content.Change] = []
        /// How many of the oldest pending changes are being merged or written, and must not be condensed.
        var frozenCount = 0
        /// When this many changes besides the frozen ones are pending, those that later changes override are dropped.
        var condensedAt = SharedValue.pendingLimit
        /// Whether the file was read; never reset.
        var isLoaded: Bool
        /// The value has no file, or the file cannot be used.
        var isMemoryOnly: Bool
        var isSaveScheduled = false
        /// The earliest time of the next write, on the clock of ``Monitor``.
        var nextSave = -Double.infinity
        var isReloadScheduled = false
        /// The file as last read or written.
        var seen = SharedFile.Look.missing
        var lastCheck = -Double.infinity
        /// Whether the file was just checked, so that the next lookup need not have it checked again.
        var wasJustChecked = false
        /// The latest time passed by a caller.
        var now = -Double.infinity
        var hooks: [@Sendable () -> Void] = []
    }

    /// State that only the reader or writer of the file uses.
    struct FileState {
        /// The header of the file that `State.content` is based on; nil if there was no file.
        var base: StoreEnvelope.Header?
        var failures = 0
        var hasRemovedLeftovers = false
        var warned: Set<String> = []
    }

    let file: SharedFile?
    let state: Mutex<State>
    let fileState = Mutex(FileState())
    let queue: DiskQueue
    let pause: Double
    private let checkInterval = 0.25
    /// The limit on pending changes, in case the disk does not respond.
    fileprivate static var pendingLimit: Int { 10_000 }

    /// Without a `file`, the value is in memory only.
    ///
    /// `pause` is the minimum time between two writes, in seconds.
    init(file: SharedFile?, content: Content = Content(), queue: DiskQueue, pause: Double = 1) {
        self.file = file
        self.queue = queue
        self.pause = pause
        var state = State(isLoaded: file == nil, isMemoryOnly: file == nil)
        state.content = content
        self.state = Mutex(state)
    }

    /// Whether the file was read: from then on, lookups never wait.
    var isReady: Bool { state.withLock { $0.isLoaded } }

    /// Reads the file on the disk queue, unless it was already read, and calls back there.
    func prepare(_ done: @escaping @Sendable () -> Void) {
        queue.run(on: .answers) {
            self.load()
            done()
        }
    }

    /// Reads the value; `work` may change only data that is never written.
    func look<Answer>(now: Double, _ work: (inout Content) -> Answer) -> Answer {
        while true {
            var mayHaveChanged = false
            let answer: Answer? = state.withLock { state in
                guard state.isLoaded else { return nil }
                state.now = now
                // `abs`: the clock may have been set back.
                if !state.isMemoryOnly, !state.isReloadScheduled, abs(now - state.lastCheck) >= checkInterval {
                    state.lastCheck = now
                    mayHaveChanged = !state.wasJustChecked
                    state.isReloadScheduled = mayHaveChanged
                    state.wasJustChecked = false
                }
                return work(&state.content)
            }
            if mayHaveChanged { queue.run(on: .values) { self.refresh() } }
            if let answer { return answer }
            load()
        }
    }

    /// Changes the value.
    ///
    /// `work` returns the changes that it made.
    func change(now: Double?, _ work: (inout Content) -> [Content.Change]) {
        load()
        var saveDelay: Double?
        let hooks: [@Sendable () -> Void] = state.withLock { state in
            if let now { state.now = now }
            let changes = work(&state.content)
            if !state.isMemoryOnly, !changes.isEmpty {
                state.pending += changes
                state.condensePending()
                if !state.isSaveScheduled { saveDelay = max(state.nextSave - Monitor.clock, 0) }
                state.isSaveScheduled = true
            }
            return changes.contains(where: Content.isVisible) ? state.hooks : []
        }
        if let saveDelay { queue.run(on: .values, after: saveDelay) { self.save() } }
        for hook in hooks { hook() }
    }

    /// The latest time passed by a caller.
    var lastSeenTime: Double { state.withLock { $0.now } }

    func onChange(_ hook: @escaping @Sendable () -> Void) {
        state.withLock { $0.hooks.append(hook) }
    }

    /// Calls back on another thread when earlier changes are durable or have failed, or if the disk does not respond.
    func flush(completion: @escaping @Sendable () -> Void) {
        if state.withLock({ $0.isMemoryOnly }) {
            queue.run(on: .values, queue.calledEvenIfStuck(on: [.values], completion))
            return
        }
        let completion = queue.calledEvenIfStuck(on: [.values], completion)
        queue.run(on: .values) {
            self.save()
            completion()
        }
    }

    /// Writes earlier changes and waits for them; returns whether they are durable.
    func flushAndWait() -> Bool {
        queue.runAndWait(on: .values) { self.save() }
        return state.withLock { !$0.isMemoryOnly && $0.pending.isEmpty }
    }
}

extension SharedValue.State {
    /// Removes the first `count` changes, which were written or have no effect on the file.
    mutating func wrote(_ count: Int) {
        pending.removeFirst(count)
        frozenCount = 0
        condensedAt = SharedValue.pendingLimit
    }

    /// If there are too many changes, drops those that later ones override.
    mutating func condensePending() {
        guard pending.count - frozenCount >= condensedAt else { return }
        let condensed = Content.condensed(Array(pending[frozenCount...])).suffix(50_000)
        pending.replaceSubrange(frozenCount..., with: condensed)
        condensedAt = max(SharedValue.pendingLimit, 2 * condensed.count)
    }
}
