//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
package import NIOCore

/// Runs a session's actor, and the tasks that call it, on one event loop.
///
/// There is one per loop, kept for the life of the process: the runtime refers to executors unowned. Loads are started with it as
/// their task executor preference, so that a continuation resumed on the loop stays there.
///
/// What becomes ready in one turn of the loop is handed to NIO as one piece of work, and runs in its order.
//
// `@unchecked`: the jobs are touched on the loop alone.
package final class LoopExecutor: SerialExecutor, TaskExecutor, @unchecked Sendable {
    package let loop: any EventLoop
    /// What was made ready on the loop and has not run.
    @exclusivity(unchecked) private var ready: [UnownedJob] = []
    /// What runs now; kept for its capacity.
    @exclusivity(unchecked) private var running: [UnownedJob] = []

    package init(_ loop: any EventLoop) { self.loop = loop }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        guard loop.inEventLoop else { return loop.execute { self.run(job) } }
        ready.append(job)
        if ready.count == 1 { loop.execute { self.runReady() } }
    }

    /// Runs what is ready; what becomes ready meanwhile comes after whatever else the loop was given.
    private func runReady() {
        swap(&ready, &running)
        for job in running { run(job) }
        // What a burst needed is not kept.
        running.removeAll(keepingCapacity: running.count <= 256)
    }

    private func run(_ job: UnownedJob) {
        job.runSynchronously(isolatedTo: asUnownedSerialExecutor(), taskExecutor: asUnownedTaskExecutor())
    }

    package func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }

    package func asUnownedTaskExecutor() -> UnownedTaskExecutor { UnownedTaskExecutor(ordinary: self) }

    package func checkIsolated() { loop.preconditionInEventLoop() }

    package func isIsolatingCurrentContext() -> Bool? { loop.inEventLoop }
}
