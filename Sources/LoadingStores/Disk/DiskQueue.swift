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

#if canImport(Glibc)
import Glibc
#else
import Musl
#endif

/// A few threads for what would make others wait for the disk.
///
/// No file of a store is touched on an event loop.
///
/// Each ``Lane`` is a thread that starts with its first work, and runs its work in the order in which it came; where none is to be
/// had, work runs on that of whoever gives it. Of the ``shared`` queue, what is left when the process exits is run before it does,
/// delayed work too. Nothing that runs here may wait for a lock that is held while something waits for this queue, or is given to it.
package final class DiskQueue: Sendable {
    /// What waits for a disk, or for another process, apart from each other: no lane waits for another.
    package enum Lane: Int, CaseIterable, Sendable {
        /// What a load waits for: look-ups, bodies that are read, files that are read for the first time.
        case answers
        /// Changes to what is stored: all of them here, in order.
        case changes
        /// What nobody waits for: scans, and the syncs of a flush.
        case upkeep
        /// Small files that processes change in turn: another one may have their lock.
        case values
    }

    /// How long a load waits for the disk before it continues without, in seconds: far beyond what a disk takes that works.
    package static let patience = 3.0

    /// For how long one piece of work may keep a flush waiting.
    package static let flushPatience = 15.0

    package static let shared = DiskQueue(drainsAtExit: true)
    /// Nothing runs here that may wait.
    private static let clock = DiskQueue()

    private let workers: [DiskWorker]
    /// What the bodies take that wait to be written.
    let writeBudget = WriteBudget()
    private let flushPatience: Double
    /// Lanes that somebody waited for in vain, and that have not done since what they were given before.
    private let full = Mutex<Set<Lane>>([])
    private let watched = Mutex<[PendingCompletion]>([])

    /// A queue of its own, as another process would have: for tests.
    ///
    /// Its threads end with it, after the work they were given. Without threads it is as where the system has none to give.
    package convenience init(hasThread: Bool = true, flushPatience: Double = DiskQueue.flushPatience) {
        self.init(drainsAtExit: false, hasThread: hasThread, flushPatience: flushPatience)
    }

    private init(drainsAtExit: Bool, hasThread: Bool = true, flushPatience: Double = DiskQueue.flushPatience) {
        self.flushPatience = flushPatience
        workers = Lane.allCases.map { _ in DiskWorker(mayStart: hasThread) }
        if drainsAtExit {
            atexit { DiskQueue.shared.drain(seconds: 10) }
        }
    }

    deinit {
        for worker in workers { worker.close() }
    }

    /// Runs `work` after all that was given to the lane before.
    ///
    /// May be called from anywhere, and does not wait.
    package func run(on lane: Lane = .changes, _ work: @escaping @Sendable () -> Void) {
        workers[lane.rawValue].add(work, delay: 0)
    }

    /// Runs `work` when so many seconds have passed, earlier if the process exits.
    package func run(on lane: Lane = .changes, after seconds: Double, _ work: @escaping @Sendable () -> Void) {
        workers[lane.rawValue].add(work, delay: seconds)
    }

    /// Runs `work` after all that was given to the lane before, and waits for it.
    ///
    /// On the lane's own thread it runs at once.
    package func runAndWait<Value: Sendable>(on lane: Lane = .changes, _ work: @escaping @Sendable () -> Value) -> Value {
        if workers[lane.rawValue].isCurrent { return work() }
        let answer = Answer<Value>()
        run(on: lane) { answer.give(work()) }
        return answer.wait()
    }

    /// Waits until all is done that was given to the lane before, or the lane is stuck.
    package func wait(for lane: Lane) {
        guard !workers[lane.rawValue].isCurrent else { return }
        let answer = Answer<Bool>()
        run(on: lane) { answer.give(true) }
        while answer.wait(seconds: 0.5) == nil, !isStuck(lane) {}
    }

    /// Whether what a lane does takes longer than anybody should wait: the disk does not answer.
    package func isStuck(_ lane: Lane) -> Bool { workers[lane.rawValue].isBusy(longerThan: Self.patience) }

    /// Somebody waited for a lane in vain: it is full until it has done what it was given so far.
    package func noteFull(_ lane: Lane) {
        guard full.withLock({ $0.insert(lane).inserted }) else { return }
        run(on: lane) { [weak self] in _ = self?.full.withLock { $0.remove(lane) } }
    }

    /// Whether nobody should wait for a lane, as it is stuck or others waited in vain.
    package func isFull(_ lane: Lane) -> Bool { full.withLock { $0.contains(lane) } || isStuck(lane) }

    /// A completion that is called once: by whoever it is given to, or from another thread when a lane has been at one piece of work
    /// for so long that the disk, or a keyring that asks its user, will hardly answer.
    package func orWhenStuck(on lanes: [Lane], _ completion: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
        let pending = PendingCompletion(lanes, completion)
        let mustWatch = watched.withLock { watched in
            watched.append(pending)
            return watched.count == 1
        }
        if mustWatch { watch() }
        return { pending.complete() }
    }

    /// One look for all that wait, until nobody does.
    private func watch() {
        // Of a queue that is gone, what was given to it is done.
        Self.clock.run(on: .upkeep, after: min(1, flushPatience / 4)) { [weak self] in
            guard let self else { return }
            let stuck = Set(Lane.allCases.filter { workers[$0.rawValue].isBusy(longerThan: flushPatience) })
            let (given, mustGoOn) = watched.withLock { watched in
                watched.removeAll { !$0.isPending }
                let given = watched.filter { !stuck.isDisjoint(with: $0.lanes) }
                watched.removeAll { !stuck.isDisjoint(with: $0.lanes) }
                return (given, !watched.isEmpty)
            }
            for pending in given { pending.complete() }
            if mustGoOn { watch() }
        }
    }

    /// Whether the calling thread is one of the queue's, where no code of an app may run.
    package var isCurrent: Bool { workers.contains { $0.isCurrent } }

    /// Runs all there is, delayed work too, and waits for it, for so many seconds at most.
    package func drain(seconds: Double) {
        let deadline = Monitor.clock + seconds
        for worker in workers { worker.beginDraining() }
        // One lane gives work to another.
        while workers.contains(where: { $0.finish(until: deadline) }), Monitor.clock < deadline {}
        for worker in workers { worker.endDraining() }
    }
}

/// What is called once.
private final class PendingCompletion: Sendable {
    let lanes: [DiskQueue.Lane]
    private let completion: Mutex<(@Sendable () -> Void)?>

    init(_ lanes: [DiskQueue.Lane], _ completion: @escaping @Sendable () -> Void) {
        self.lanes = lanes
        self.completion = Mutex(completion)
    }

    var isPending: Bool { completion.withLock { $0 != nil } }

    func complete() {
        let completion = completion.withLock { completion in
            defer { completion = nil }
            return completion
        }
        completion?()
    }
}
