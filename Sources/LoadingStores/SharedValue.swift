//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Synchronization

/// A value that the threads of this process share, and the processes of this user through a file.
///
/// Every change is seen at once in this process and goes to the file soon after, on the disk queue: a change wakes it, changes that
/// come while it writes are written together, a second later at the earliest. Before it writes, what other processes wrote is read
/// and the changes made here are replayed on it. The file is read when the value is first asked for, and again when a look at it (at
/// most every 250 ms) shows another one. Nothing that is wrong with the file ever fails a caller: a damaged file is set aside, and
/// where none can be written the value lives in memory.
///
/// The lock of `turn` is held while the file is read or written, that of `state` for a look or a change; the second may be taken
/// inside the first. No hook is called under either.
final class SharedValue<Content: SharedContent>: Sendable {
    struct State {
        var content = Content()
        /// Made here and not yet in the file, oldest first.
        var pending: [Content.Change] = []
        /// False until the file was read, and from then on true.
        var isLoaded: Bool
        /// No file, or none that can be used.
        var isMemoryOnly: Bool
        var isSaveScheduled = false
        /// Not to be written before that, on the clock of ``Monitor``.
        var nextSave = -Double.infinity
        var isReloadScheduled = false
        /// The file as it was read or written last.
        var seen = SharedFile.Look.missing
        var lastLook = -Double.infinity
        /// The caller's clock, when it last said.
        var now = -Double.infinity
        var hooks: [@Sendable () -> Void] = []
    }

    /// What only the one who reads or writes the file knows.
    struct Turn {
        /// The write that `State.content` builds upon; nil where there was no file.
        var base: StoreEnvelope.Header?
        var failures = 0
        var hasTidied = false
        var warned: Set<String> = []
    }

    let file: SharedFile?
    let state: Mutex<State>
    let turn = Mutex(Turn())
    let queue: DiskQueue
    let pause: Double
    private let lookInterval = 0.25

    /// In memory only without a `file`.
    ///
    /// Between two writes there are `pause` seconds.
    init(file: SharedFile?, content: Content = Content(), queue: DiskQueue, pause: Double = 1) {
        self.file = file
        self.queue = queue
        self.pause = pause
        var state = State(isLoaded: file == nil, isMemoryOnly: file == nil)
        state.content = content
        self.state = Mutex(state)
    }

    /// Looks at the value, or at what a lookup notes in it that need not be written.
    func look<Answer>(now: Double, _ work: (inout Content) -> Answer) -> Answer {
        while true {
            var mayHaveChanged = false
            let answer: Answer? = state.withLock { state in
                guard state.isLoaded else { return nil }
                state.now = now
                // Also when the clock was set back.
                if !state.isMemoryOnly, abs(now - state.lastLook) >= lookInterval {
                    state.lastLook = now
                    mayHaveChanged = true
                }
                return work(&state.content)
            }
            if mayHaveChanged { notice() }
            if let answer { return answer }
            load()
        }
    }

    /// Changes the value.
    ///
    /// `work` says what it changed.
    func change(now: Double?, _ work: (inout Content) -> [Content.Change]) {
        load()
        var saveDelay: Double?
        let hooks: [@Sendable () -> Void] = state.withLock { state in
            if let now { state.now = now }
            let changes = work(&state.content)
            if !state.isMemoryOnly, !changes.isEmpty {
                state.pending += changes
                if !state.isSaveScheduled { saveDelay = max(state.nextSave - Monitor.clock, 0) }
                state.isSaveScheduled = true
            }
            return changes.isEmpty ? [] : state.hooks
        }
        if let saveDelay { queue.run(after: saveDelay) { self.save() } }
        for hook in hooks { hook() }
    }

    /// The time that a caller said last.
    var lastSeenTime: Double { state.withLock { $0.now } }

    func onChange(_ hook: @escaping @Sendable () -> Void) {
        state.withLock { $0.hooks.append(hook) }
    }

    /// Calls back on the disk queue when what was changed before is durable, or will not be.
    func flush(completion: @escaping @Sendable () -> Void) {
        if state.withLock({ $0.isMemoryOnly }) {
            queue.run(completion)
            return
        }
        queue.run {
            self.save()
            completion()
        }
    }

    /// Writes what was changed before, waits for it, and answers whether it is durable.
    func flushAndWait() -> Bool {
        queue.runAndWait { self.save() }
        return state.withLock { !$0.isMemoryOnly && $0.pending.isEmpty }
    }

    private func notice() {
        guard let file else { return }
        let look = file.look()
        let shouldReload = state.withLock { state in
            guard look != .unknown, look != state.seen, !state.isReloadScheduled, !state.isMemoryOnly else { return false }
            state.isReloadScheduled = true
            return true
        }
        if shouldReload { queue.run { self.refresh() } }
    }
}
