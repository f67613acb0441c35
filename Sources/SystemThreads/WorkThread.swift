// SPDX-License-Identifier: Apache-2.0

/// Runs work that waits for a disk, one step after the other, on a separate thread.
///
/// Sendable because all mutable state is read and changed inside `monitor.locked`.
package final class WorkThread: @unchecked Sendable {
    private let monitor = Monitor()
    private var work: [@Sendable () -> Void] = []
    private var isRunning = false
    private let name: String

    package init(_ name: String) { self.name = name }

    /// Runs `step` after all earlier steps.
    ///
    /// The thread exists only while there is work.
    package func run(_ step: @escaping @Sendable () -> Void) {
        let mustStart = monitor.locked {
            work.append(step)
            defer { isRunning = true }
            return !isRunning
        }
        // If the system cannot create a thread, runs the work on the calling thread.
        if mustStart, Threads.start(name, { self.runSteps() }) == nil { runSteps() }
    }

    private func runSteps() {
        while true {
            let steps = monitor.locked { () -> [@Sendable () -> Void] in
                defer { work = [] }
                if work.isEmpty { isRunning = false }
                return work
            }
            if steps.isEmpty { return }
            for step in steps { step() }
        }
    }
}
