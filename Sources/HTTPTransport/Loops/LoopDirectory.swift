// SPDX-License-Identifier: Apache-2.0

package import NIOCore
import NIOPosix
import Synchronization

/// Assigns the event loops of the process's group to sessions in turn, and keeps the executors of each loop.
///
/// The executors live as long as the process, because the runtime references executors unowned.
package enum LoopDirectory {
    private static let executors = Mutex<[ObjectIdentifier: (loads: LoopExecutor, guests: LoopGuestExecutor)]>([:])

    package static func next() -> LoopExecutor { executor(of: MultiThreadedEventLoopGroup.singleton.next()) }

    /// The executor of a loop that is not assigned to sessions.
    package static let apart = executor(of: dedicatedGroup.next())

    private static let dedicatedGroup = MultiThreadedEventLoopGroup(numberOfThreads: 1)

    /// Whether the calling thread runs an event loop and must not be blocked.
    package static var isOnLoop: Bool { MultiThreadedEventLoopGroup.currentEventLoop != nil }

    package static func executor(of loop: any EventLoop) -> LoopExecutor { entry(of: loop).loads }

    /// Returns the executor for tasks of the app.
    package static func guestExecutor(of loop: any EventLoop) -> LoopGuestExecutor { entry(of: loop).guests }

    private static func entry(of loop: any EventLoop) -> (loads: LoopExecutor, guests: LoopGuestExecutor) {
        executors.withLock { executors in
            if let known = executors[ObjectIdentifier(loop)] { return known }
            let executor = LoopExecutor(loop)
            let entry = (loads: executor, guests: LoopGuestExecutor(executor))
            executors[ObjectIdentifier(loop)] = entry
            return entry
        }
    }
}
