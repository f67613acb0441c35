// SPDX-License-Identifier: Apache-2.0

package import LoadingModel

/// A task of a background session, as ordered by its program.
///
/// The request body is empty, data, or a file; the delivery is `.download`, or `.collect` for an upload.
package struct BackgroundOrder: Sendable {
    /// The properties that may change during the task's lifetime.
    package struct Notes: Sendable, Hashable, Codable {
        package var description: String?
        /// The number of bytes that the program expects to be sent and received; -1 if unknown.
        package var expectedToSend: Int64 = -1
        package var expectedToReceive: Int64 = -1

        package init() {}
    }

    package var task: TaskOrder
    package var notes = Notes()
    /// Seconds since the reference date.
    package var created: Double
    /// Whether the daemon started the program: the system then chooses when the order runs.
    package var isDiscretionary = false

    package init(_ task: TaskOrder, created: Double) {
        self.task = task
        self.created = created
    }
}

/// A task that the daemon has, as reported to its program.
package struct KnownTask: Sendable {
    package enum Phase: Sendable {
        case running
        /// Suspended by the program.
        case suspended
        /// Ended, but not reported yet: the events follow ``DaemonMessage/attached(lastTask:)``.
        case ended
    }

    package var order: BackgroundOrder
    package var phase: Phase
    package var counts = TransferCounts()
    /// The current request, if it differs from the order's.
    package var current: LoadRequest?
    package var response: LoadResponse?

    package init(order: BackgroundOrder, phase: Phase) {
        self.order = order
        self.phase = phase
    }
}

/// The progress of a transfer in bytes; -1 if unknown.
package struct TransferCounts: Sendable, Hashable, Codable {
    package var sent: Int64 = 0
    package var expectedToSend: Int64 = -1
    package var received: Int64 = 0
    package var expectedToReceive: Int64 = -1

    package init() {}

    package var hasSentAll: Bool { expectedToSend > 0 && sent >= expectedToSend }
}
