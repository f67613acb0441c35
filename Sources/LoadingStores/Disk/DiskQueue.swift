//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#if canImport(Glibc)
import Glibc
#else
import Musl
#endif

/// One thread for what would make others wait for the disk: work runs on it in the order in which it came.
///
/// The thread starts with the first work; where none is to be had, work runs on that of whoever gives it. Of the ``shared``
/// queue, what is left when the process exits is run before it does, delayed work too. Nothing that runs here may wait for a
/// lock that is held while something waits for this queue, or is given to it.
package final class DiskQueue: Sendable {
    package static let shared = DiskQueue(drainsAtExit: true)

    private let worker: DiskWorker

    /// A queue of its own, as another process would have: for tests.
    ///
    /// Its thread ends with it, after the work it was given. Without a thread it is as where the system has none to give.
    package convenience init(hasThread: Bool = true) {
        self.init(drainsAtExit: false, hasThread: hasThread)
    }

    private init(drainsAtExit: Bool, hasThread: Bool = true) {
        worker = DiskWorker(mayStart: hasThread)
        if drainsAtExit {
            atexit { DiskQueue.shared.drain(seconds: 10) }
        }
    }

    deinit { worker.close() }

    /// Runs `work` after all that was given before.
    ///
    /// May be called from anywhere, and does not wait.
    package func run(_ work: @escaping @Sendable () -> Void) {
        worker.add(work, delay: 0)
    }

    /// Runs `work` when so many seconds have passed, earlier if the process exits.
    package func run(after seconds: Double, _ work: @escaping @Sendable () -> Void) {
        worker.add(work, delay: seconds)
    }

    /// Runs `work` after all that was given before, and waits for it.
    ///
    /// On the queue's own thread it runs at once.
    package func runAndWait<Value: Sendable>(_ work: @escaping @Sendable () -> Value) -> Value {
        if worker.isCurrent { return work() }
        let answer = Answer<Value>()
        run { answer.give(work()) }
        return answer.wait()
    }

    /// Runs all there is, delayed work too, and waits for it, for so many seconds at most.
    package func drain(seconds: Double) {
        worker.drain(seconds: seconds)
    }
}
