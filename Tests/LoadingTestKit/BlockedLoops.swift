// SPDX-License-Identifier: Apache-2.0

import Foundation
import NIOCore
import NIOPosix

/// Blocks the event loops of all sessions, like one very long turn of each loop.
///
/// Network data waits in the sockets. When the turn ends, the app's orders are processed before this data.
///
/// The scripted server has its own loops, which are not blocked.
package final class BlockedLoops: Sendable {
    private let held = Watched(0)
    private let gate = NSCondition()
    private let isOpen = Watched(false)

    /// Runs a test while all loops are blocked.
    package static func during(_ test: () async throws -> Void) async throws {
        let loops = BlockedLoops()
        let count = loops.hold()
        defer { loops.release() }
        try await loops.held.value { $0 == count ? () : nil }
        try await test()
    }

    private func hold() -> Int {
        var count = 0
        for loop in MultiThreadedEventLoopGroup.singleton.makeIterator() {
            count += 1
            loop.execute { [self] in
                held.change { $0 += 1 }
                gate.lock()
                while !isOpen.read({ $0 }) { gate.wait() }
                gate.unlock()
            }
        }
        return count
    }

    private func release() {
        gate.lock()
        isOpen.change { $0 = true }
        gate.broadcast()
        gate.unlock()
    }
}
