// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// An object that is called repeatedly on its loop, without the cost of a closure per call.
package protocol LoopCallee: AnyObject {
    /// Continues with the work for which the object was woken.
    func proceed()
}

/// Runs a session's actor, and the tasks that call it, on one event loop.
///
/// There is one executor per loop, kept for the lifetime of the process, because the runtime references executors unowned. Loads
/// are started with the executor as their task executor preference, so that a continuation resumed on the loop stays there.
///
/// Work that becomes ready during one turn of the loop is passed to NIO as one task, and runs in order.
//
// `@unchecked`: the work and the turns are only accessed on the loop.
package final class LoopExecutor: SerialExecutor, TaskExecutor, @unchecked Sendable {
    private enum Work {
        case job(UnownedJob)
        case guest(UnownedJob, UnownedTaskExecutor)
        case call(() -> Void)
        case callee(any LoopCallee)
    }

    package let loop: any EventLoop
    /// Schedules long work on the loop.
    package let turns: LoopTurns
    // Exclusivity is unchecked, because every job passes through these arrays, and they never call back into this class.
    /// Work that became ready on the loop and has not run yet.
    @exclusivity(unchecked) private var ready: [Work] = []
    /// The work that is running; the array is reused for its capacity.
    @exclusivity(unchecked) private var running: [Work] = []
    private var isRunning = false

    package init(_ loop: any EventLoop) {
        self.loop = loop
        turns = LoopTurns(loop)
    }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        guard loop.inEventLoop else { return loop.execute { self.run(.job(job)) } }
        add(.job(job))
    }

    /// Calls back on the loop, after the work that is already ready; call this method on the loop.
    package func callLater(_ call: @escaping () -> Void) { add(.call(call)) }

    /// Calls `callee` back on the loop, after the work that is already ready; call this method on the loop.
    package func proceed(_ callee: any LoopCallee) { add(.callee(callee)) }

    /// Calls `callee` at once, and runs work that becomes ready meanwhile in the same turn; call this method from a task of the
    /// loop.
    package func enter(_ callee: any LoopCallee) {
        ready.append(.callee(callee))
        if ready.count == 1, !isRunning { runReady() }
    }

    fileprivate func enqueue(_ job: UnownedJob, of guests: LoopGuestExecutor) {
        let executor = guests.asUnownedTaskExecutor()
        guard loop.inEventLoop else { return loop.execute { self.run(.guest(job, executor)) } }
        add(.guest(job, executor))
    }

    private func add(_ work: Work) {
        ready.append(work)
        if ready.count == 1, !isRunning { loop.execute { self.runReady() } }
    }

    /// The maximum number of rounds in which newly ready work runs at once, before the loop's other tasks get their turn.
    private static let rounds = 16

    private func runReady() {
        isRunning = true
        var rounds = 0
        while !ready.isEmpty, rounds < Self.rounds {
            rounds += 1
            swap(&ready, &running)
            for work in running { run(work) }
            // Releases capacity that only a burst needed.
            running.removeAll(keepingCapacity: running.count <= 256)
        }
        isRunning = false
        if !ready.isEmpty { loop.execute { self.runReady() } }
    }

    private func run(_ work: Work) {
        switch work {
        case .job(let job): job.runSynchronously(isolatedTo: asUnownedSerialExecutor(), taskExecutor: asUnownedTaskExecutor())
        case .guest(let job, let executor): job.runSynchronously(on: executor)
        case .call(let call): call()
        case .callee(let callee): callee.proceed()
        }
    }

    package func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }

    package func asUnownedTaskExecutor() -> UnownedTaskExecutor { UnownedTaskExecutor(ordinary: self) }

    package func checkIsolated() { loop.preconditionInEventLoop() }

    package func isIsolatingCurrentContext() -> Bool? { loop.inEventLoop }
}

/// Runs tasks of the app on an event loop.
///
/// There is one executor per loop, kept for the lifetime of the process, like the loads' executor. It is separate because the
/// runtime tracks the isolation of an executor's jobs: loads are isolated to their actor, but the app's tasks are not isolated.
/// With a shared executor, the difference would cause another executor hop at each return from an `async` function.
package final class LoopGuestExecutor: TaskExecutor {
    private let host: LoopExecutor

    init(_ host: LoopExecutor) { self.host = host }

    package func enqueue(_ job: consuming ExecutorJob) { host.enqueue(UnownedJob(job), of: self) }

    package func asUnownedTaskExecutor() -> UnownedTaskExecutor { UnownedTaskExecutor(ordinary: self) }
}
