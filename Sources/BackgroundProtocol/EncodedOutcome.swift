// SPDX-License-Identifier: Apache-2.0

package import LoadingModel

/// The outcome of a task as the daemon stores it and sends it, so that it is encoded once.
package struct EncodedOutcome: Sendable {
    package let bytes: [UInt8]
    /// Whether the outcome is a file, whose path is determined when the file is handed over.
    package let hasFile: Bool

    package init(_ outcome: TaskOutcome) throws(MessageFailure) {
        var stored = outcome
        if case .success(.file) = outcome.result { stored.result = .success(.file(path: "/")) }
        self.init(bytes: try MessageCoding.encode(stored), outcome)
    }

    /// Checks stored bytes; an outcome that a daemon of version 1 stored is encoded anew.
    package init(stored: [UInt8]) throws(MessageFailure) {
        let outcome = try MessageCoding.decodeOutcome(stored)
        if MessageCoding.isBinary(stored) { self.init(bytes: stored, outcome) } else { try self.init(outcome) }
    }

    private init(bytes: [UInt8], _ outcome: TaskOutcome) {
        self.bytes = bytes
        hasFile = if case .success(.file) = outcome.result { true } else { false }
    }

    /// Encodes the event that tells a program of the task's end, with the path of the file, if there is one.
    package func message(to task: TaskID, file: String?) throws(MessageFailure) -> [UInt8] {
        try MessageCoding.write(End(outcome: self, task: task, file: file))
    }

    /// A ``DaemonMessage/event(_:_:)`` with ``TaskEvent/finished(_:)``.
    private struct End: Coded {
        var outcome: EncodedOutcome
        var task: TaskID
        var file: String?

        static func coded(_ value: End?, _ coder: Coder) throws -> End {
            guard let value else { throw coder.unknown }
            try coder.kind("event")
            try coder.field(7, "event") {
                try coder.kind("finished")
                try coder.field(12, "outcome") {
                    if let file = value.file { try coder.required(1, "body", TaskOutcome.Body.file(path: file)) }
                    // The body is the first field.
                    _ = try coder.octets(BinaryFormat.fields(of: value.outcome.bytes, from: value.file == nil ? 1 : 2))
                }
            }
            try coder.required(13, "task", value.task, .task)
            return value
        }
    }
}
