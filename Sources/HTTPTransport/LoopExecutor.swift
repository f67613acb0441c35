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
package final class LoopExecutor: SerialExecutor, TaskExecutor {
    package let loop: any EventLoop

    package init(_ loop: any EventLoop) { self.loop = loop }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        loop.execute {
            job.runSynchronously(
                isolatedTo: self.asUnownedSerialExecutor(),
                taskExecutor: self.asUnownedTaskExecutor()
            )
        }
    }

    package func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }

    package func asUnownedTaskExecutor() -> UnownedTaskExecutor { UnownedTaskExecutor(ordinary: self) }

    package func checkIsolated() { loop.preconditionInEventLoop() }

    package func isIsolatingCurrentContext() -> Bool? { loop.inEventLoop }
}
