//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
package import LoadingModel
import NIOCore

/// The way in from other threads: what is posted is carried out on the loop in the order of posting, and posting never blocks.
extension SessionEngine: LoadingService {
    package nonisolated func submit(_ order: TaskOrder, client: any LoadClient) {
        loop.execute { self.assumeIsolated { $0.start(order, client: client) } }
    }

    package nonisolated func command(_ command: TaskCommand, for task: TaskID) {
        loop.execute { self.assumeIsolated { $0.carryOut(command, for: task) } }
    }

    package nonisolated func invalidate() {
        loop.execute { self.assumeIsolated { $0.stopTakingOrders() } }
    }

    package nonisolated func closeIdleConnections(completion: @escaping @Sendable () -> Void) {
        loop.execute {
            self.assumeIsolated { $0.closeIdleConnections() }
            completion()
        }
    }
}
