//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import LoadingModel

/// One task of a background session, as its program ordered it.
///
/// The request's body is none, data, or a file; the delivery is `.download`, or `.collect` for an upload.
package struct BackgroundOrder: Sendable {
    /// What may change while the task is there.
    package struct Notes: Sendable, Hashable {
        package var description: String?
        /// Bytes that the program expects to be sent and received; -1 where it does not say.
        package var expectedToSend: Int64 = -1
        package var expectedToReceive: Int64 = -1

        package init() {}
    }

    package var task: TaskOrder
    package var notes = Notes()
    /// Seconds since the reference date.
    package var created: Double
    /// The program was started by the daemon: the system chooses the time of what it orders.
    package var isDiscretionary = false

    package init(_ task: TaskOrder, created: Double) {
        self.task = task
        self.created = created
    }
}

/// A task that the daemon has, as its program sees it.
package struct KnownTask: Sendable {
    package enum Phase: Sendable {
        case running
        /// Held back by the program.
        case suspended
        /// The program has not been told yet: it is behind ``DaemonMessage/attached(lastTask:)``.
        case ended
    }

    package var order: BackgroundOrder
    package var phase: Phase
    package var counts = TransferCounts()
    /// The request that is loaded now, where it is another than the order's.
    package var current: LoadRequest?
    package var response: LoadResponse?

    package init(order: BackgroundOrder, phase: Phase) {
        self.order = order
        self.phase = phase
    }
}

/// How far a transfer is, in bytes; -1 where it is not known.
package struct TransferCounts: Sendable, Hashable, Codable {
    package var sent: Int64 = 0
    package var expectedToSend: Int64 = -1
    package var received: Int64 = 0
    package var expectedToReceive: Int64 = -1

    package init() {}
}
