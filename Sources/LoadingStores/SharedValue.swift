//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Synchronization
import SystemThreads

/// A value that the threads of this process share, and the processes of this user through a file.
///
/// Every change is seen at once in this process and goes to the file soon after, on the disk queue: a change wakes it, changes that
/// come while it writes are written together, a second later at the earliest. Before it writes, what other processes wrote is read
/// and the changes made here are replayed on it. The file is read when the value is first asked for: by ``prepare(_:)`` on the disk
/// queue, or else by whoever asks, on its own thread. It is read again when a look at it, which a lookup has made on the disk queue
/// at most every 250 ms, shows another one. Nothing that is wrong with the file ever fails a caller: a damaged file is set aside, and
/// where none can be written the value lives in memory.
///
/// The lock of `turn` is held while the file is read or written, that of `state` for a look or a change; the second may be taken
/// inside the first. Neither is held while another process has the file's lock. No hook is called under either.
final class SharedValue<Content: SharedContent>: Sendable {
    struct State {
        var content = Content()
        /// Made here and not yet in the file, oldest first.
        var pending: [Content.Change] = []
        /// How many of them, from the first, are being merged or written: these stay as they are meanwhile.
        var settledCount = 0
        /// How many of the others there may be before those that later ones make void are left out.
        var condensedAt = SharedValue.pendingLimit
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
        /// The file was looked at since, and need not be again.
        var wasJustSeen = false
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
    /// A disk that does not answer must not have changes gather without end.
    fileprivate static var pendingLimit: Int { 10_000 }

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

    /// Whether the file was read: then a lookup never waits.
    var isReady: Bool { state.withLock { $0.isLoaded } }

    /// Reads the file on the disk queue if that never happened, and calls back there.
    func prepare(_ done: @escaping @Sendable () -> Void) {
        queue.run(on: .answers) {
            self.load()
            done()
        }
    }

    /// Looks at the value, or at what a lookup notes in it that need not be written.
    func look<Answer>(now: Double, _ work: (inout Content) -> Answer) -> Answer {
        while true {
            var mayHaveChanged = false
            let answer: Answer? = state.withLock { state in
                guard state.isLoaded else { return nil }
                state.now = now
                // Also when the clock was set back.
                if !state.isMemoryOnly, !state.isReloadScheduled, abs(now - state.lastLook) >= lookInterval {
                    state.lastLook = now
                    mayHaveChanged = !state.wasJustSeen
                    state.isReloadScheduled = mayHaveChanged
                    state.wasJustSeen = false
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
    /// `work` says what it changed.
    func change(now: Double?, _ work: (inout Content) -> [Content.Change]) {
        load()
        var saveDelay: Double?
        let hooks: [@Sendable () -> Void] = state.withLock { state in
            if let now { state.now = now }
            let changes = work(&state.content)
            if !state.isMemoryOnly, !changes.isEmpty {
                state.pending += changes
                state.boundPending()
                if !state.isSaveScheduled { saveDelay = max(state.nextSave - Monitor.clock, 0) }
                state.isSaveScheduled = true
            }
            return changes.contains(where: Content.isVisible) ? state.hooks : []
        }
        if let saveDelay { queue.run(on: .values, after: saveDelay) { self.save() } }
        for hook in hooks { hook() }
    }

    /// The time that a caller said last.
    var lastSeenTime: Double { state.withLock { $0.now } }

    func onChange(_ hook: @escaping @Sendable () -> Void) {
        state.withLock { $0.hooks.append(hook) }
    }

    /// Calls back on another thread when what was changed before is durable, or will not be, or the disk does not answer.
    func flush(completion: @escaping @Sendable () -> Void) {
        if state.withLock({ $0.isMemoryOnly }) {
            queue.run(on: .values, queue.orWhenStuck(on: [.values], completion))
            return
        }
        let completion = queue.orWhenStuck(on: [.values], completion)
        queue.run(on: .values) {
            self.save()
            completion()
        }
    }

    /// Writes what was changed before, waits for it, and answers whether it is durable.
    func flushAndWait() -> Bool {
        queue.runAndWait(on: .values) { self.save() }
        return state.withLock { !$0.isMemoryOnly && $0.pending.isEmpty }
    }
}

extension SharedValue.State {
    /// The first so many changes are in the file, or nothing that goes there.
    mutating func wrote(_ count: Int) {
        pending.removeFirst(count)
        settledCount = 0
        condensedAt = SharedValue.pendingLimit
    }

    /// Leaves out changes that later ones make void, where there are too many to keep them all.
    mutating func boundPending() {
        guard pending.count - settledCount >= condensedAt else { return }
        let condensed = Content.condensed(Array(pending[settledCount...])).suffix(50_000)
        pending.replaceSubrange(settledCount..., with: condensed)
        condensedAt = max(SharedValue.pendingLimit, 2 * condensed.count)
    }
}
