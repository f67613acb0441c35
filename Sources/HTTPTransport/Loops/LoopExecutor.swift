//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
package import NIOCore

/// What is called on its loop again and again; a closure for each time would cost as much as the call.
package protocol LoopCallee: AnyObject {
    /// Goes on with what it was woken for.
    func goOn()
}

/// Runs a session's actor, and the tasks that call it, on one event loop.
///
/// There is one per loop, kept for the life of the process: the runtime refers to executors unowned. Loads are started with it as
/// their task executor preference, so that a continuation resumed on the loop stays there.
///
/// What becomes ready in one turn of the loop is handed to NIO as one piece of work, and runs in its order.
//
// `@unchecked`: the work and the turns are touched on the loop alone.
package final class LoopExecutor: SerialExecutor, TaskExecutor, @unchecked Sendable {
    private enum Work {
        case job(UnownedJob)
        case guest(UnownedJob, UnownedTaskExecutor)
        case call(() -> Void)
        case callee(any LoopCallee)
    }

    package let loop: any EventLoop
    /// For long work on the loop.
    package let turns: LoopTurns
    // Unchecked, as every job passes: a list calls nothing that could come back here.
    /// What was made ready on the loop and has not run.
    @exclusivity(unchecked) private var ready: [Work] = []
    /// What runs now; kept for its capacity.
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

    /// Calls back on the loop, from which it is called, when what is ready now has run.
    package func afterwards(_ call: @escaping () -> Void) { add(.call(call)) }

    /// Calls back on the loop, from which it is called, when what is ready now has run.
    package func goOn(_ callee: any LoopCallee) { add(.callee(callee)) }

    /// Calls back at once, from the loop's own list of work, and runs what becomes ready by that in the same turn.
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

    /// So often what became ready meanwhile runs at once; then comes whatever else the loop was given.
    private static let rounds = 16

    private func runReady() {
        isRunning = true
        var rounds = 0
        while !ready.isEmpty, rounds < Self.rounds {
            rounds += 1
            swap(&ready, &running)
            for work in running { run(work) }
            // What a burst needed is not kept.
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
        case .callee(let callee): callee.goOn()
        }
    }

    package func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }

    package func asUnownedTaskExecutor() -> UnownedTaskExecutor { UnownedTaskExecutor(ordinary: self) }

    package func checkIsolated() { loop.preconditionInEventLoop() }

    package func isIsolatingCurrentContext() -> Bool? { loop.inEventLoop }
}

/// Runs tasks of the app on an event loop.
///
/// One per loop and kept for the life of the process, as that of the loads. It is another, because the runtime is told of what an
/// executor runs: a load is isolated to its actor, the app's tasks are to nothing, and a difference would have them handed over again at
/// each return from an `async` function.
package final class LoopGuestExecutor: TaskExecutor {
    private let host: LoopExecutor

    init(_ host: LoopExecutor) { self.host = host }

    package func enqueue(_ job: consuming ExecutorJob) { host.enqueue(UnownedJob(job), of: self) }

    package func asUnownedTaskExecutor() -> UnownedTaskExecutor { UnownedTaskExecutor(ordinary: self) }
}
