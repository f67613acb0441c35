// SPDX-License-Identifier: Apache-2.0

import LibC
import Synchronization
import SystemThreads

/// A few threads for work that may wait for the disk.
///
/// No store file is accessed on an event loop.
///
/// Each ``Lane`` has a thread, which starts with its first work item and runs the work in order. If the system cannot start a
/// thread, the caller's thread runs the work. When the process exits, it first runs the remaining work of the ``shared`` queue,
/// including delayed work. Work on the queue must not take a lock that a thread holds while it waits for the queue or adds work
/// to it.
package final class DiskQueue: Sendable {
    /// Separates work that waits for different things: no lane waits for another.
    package enum Lane: Int, CaseIterable, Sendable {
        /// Work that a load waits for: lookups, reads of bodies, first reads of files.
        case answers
        /// All changes of stored entries, in order.
        case changes
        /// Work that no load waits for: scans, and the syncs of a flush.
        case upkeep
        /// Small files that processes change in turn: another process may hold their lock.
        case values
    }

    /// The timeout, in seconds, after which a load continues without the disk: far more than a healthy disk needs.
    package static let patience = 3.0

    /// The maximum time, in seconds, that one work item may delay a flush.
    package static let flushTimeout = 15.0

    package static let shared = DiskQueue(drainsAtExit: true)
    /// Runs only timers: its work never waits.
    private static let clock = DiskQueue()

    private let workers: [DiskWorker]
    /// Limits the memory of bodies that wait to be written.
    let writeBudget = WriteBudget()
    private let flushTimeout: Double
    /// The lanes for which a wait timed out, until they finish their earlier work.
    private let full = Mutex<Set<Lane>>([])
    private let watched = Mutex<[PendingCompletion]>([])

    /// For tests: a separate queue, as another process would have.
    ///
    /// Its threads end after their remaining work when the queue is released. Without threads, it behaves as if the system could
    /// not start one.
    package convenience init(hasThread: Bool = true, flushTimeout: Double = DiskQueue.flushTimeout) {
        self.init(drainsAtExit: false, hasThread: hasThread, flushTimeout: flushTimeout)
    }

    private init(drainsAtExit: Bool, hasThread: Bool = true, flushTimeout: Double = DiskQueue.flushTimeout) {
        self.flushTimeout = flushTimeout
        workers = Lane.allCases.map { _ in DiskWorker(mayStart: hasThread) }
        if drainsAtExit {
            atexit { DiskQueue.shared.drain(seconds: 10) }
        }
    }

    deinit {
        for worker in workers { worker.close() }
    }

    /// Runs `work` after all earlier work of the lane.
    ///
    /// May be called from any thread, and does not wait.
    package func run(on lane: Lane = .changes, _ work: @escaping @Sendable () -> Void) {
        workers[lane.rawValue].add(work, delay: 0)
    }

    /// Runs `work` after a delay in seconds, earlier if the process exits.
    package func run(on lane: Lane = .changes, after seconds: Double, _ work: @escaping @Sendable () -> Void) {
        workers[lane.rawValue].add(work, delay: seconds)
    }

    /// Runs `work` after all earlier work of the lane, and waits for it.
    ///
    /// On the lane's own thread, it runs immediately.
    package func runAndWait<Value: Sendable>(on lane: Lane = .changes, _ work: @escaping @Sendable () -> Value) -> Value {
        if workers[lane.rawValue].isCurrent { return work() }
        let answer = Answer<Value>()
        run(on: lane) { answer.fulfill(work()) }
        return answer.wait()
    }

    /// Waits until all earlier work of the lane is done, or until the lane is stuck.
    package func wait(for lane: Lane) {
        guard !workers[lane.rawValue].isCurrent else { return }
        let answer = Answer<Bool>()
        run(on: lane) { answer.fulfill(true) }
        while answer.wait(seconds: 0.5) == nil, !isStuck(lane) {}
    }

    /// Whether the lane's current work has exceeded the timeout: the disk does not respond.
    package func isStuck(_ lane: Lane) -> Bool { workers[lane.rawValue].isBusy(longerThan: Self.patience) }

    /// Marks a lane as full after a wait timed out, until it has finished its earlier work.
    package func noteFull(_ lane: Lane) {
        guard full.withLock({ $0.insert(lane).inserted }) else { return }
        run(on: lane) { [weak self] in _ = self?.full.withLock { $0.remove(lane) } }
    }

    /// Whether callers should not wait for a lane, because it is stuck or an earlier wait timed out.
    package func isFull(_ lane: Lane) -> Bool { full.withLock { $0.contains(lane) } || isStuck(lane) }

    /// Wraps a completion handler so that it is called once: by the caller, or from another thread if a lane is stuck.
    ///
    /// Here, a lane is stuck if one work item takes longer than the flush timeout: the disk, or a keyring that waits for its
    /// user, is then unlikely to respond.
    package func calledEvenIfStuck(on lanes: [Lane], _ completion: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
        let pending = PendingCompletion(lanes, completion)
        let mustWatch = watched.withLock { watched in
            watched.append(pending)
            return watched.count == 1
        }
        if mustWatch { watch() }
        return { pending.complete() }
    }

    /// Checks all pending completion handlers periodically, until none is left.
    private func watch() {
        // If the queue is released, all its work is done.
        Self.clock.run(on: .upkeep, after: min(1, flushTimeout / 4)) { [weak self] in
            guard let self else { return }
            let stuck = Set(Lane.allCases.filter { workers[$0.rawValue].isBusy(longerThan: flushTimeout) })
            let (given, hasPending) = watched.withLock { watched in
                watched.removeAll { !$0.isPending }
                let given = watched.filter { !stuck.isDisjoint(with: $0.lanes) }
                watched.removeAll { !stuck.isDisjoint(with: $0.lanes) }
                return (given, !watched.isEmpty)
            }
            for pending in given { pending.complete() }
            if hasPending { watch() }
        }
    }

    /// Whether the calling thread belongs to the queue, where app code must not run.
    package var isCurrent: Bool { workers.contains { $0.isCurrent } }

    /// Runs all work, including delayed work, and waits at most `seconds` for it.
    package func drain(seconds: Double) {
        let deadline = Monitor.clock + seconds
        for worker in workers { worker.beginDraining() }
        // Work of one lane may add work to another.
        while workers.contains(where: { $0.finish(until: deadline) }), Monitor.clock < deadline {}
        for worker in workers { worker.endDraining() }
    }
}

/// A completion handler that is called once.
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
