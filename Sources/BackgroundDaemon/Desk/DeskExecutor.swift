// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// Runs the desk on an event loop.
final class DeskExecutor: SerialExecutor {
    let loop: any EventLoop

    init(_ loop: any EventLoop) { self.loop = loop }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        loop.execute { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }

    func checkIsolated() { loop.preconditionInEventLoop() }
}
