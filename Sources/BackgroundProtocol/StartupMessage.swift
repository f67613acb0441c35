// SPDX-License-Identifier: Apache-2.0

/// A line that a daemon writes to its standard output during its startup, for the program that started the daemon.
package enum StartupMessage: Hashable, Sendable {
    /// The environment variable that enables these lines.
    package static let variable = "URLSESSIOND_REPORT"
    /// The maximum length of a line in bytes.
    package static let limit = 2048

    case listens
    /// Another daemon is running.
    case another
    /// The daemon has to wait before it can start.
    case waits(String)
    /// The daemon could not start and has ended.
    case failed(String)

    package init?(line: some StringProtocol) {
        let parts = line.split(separator: " ", maxSplits: 1)
        let reason = parts.count > 1 ? String(parts[1]) : ""
        switch parts.first {
        case "listens": self = .listens
        case "another": self = .another
        case "waits": self = .waits(reason)
        case "failed": self = .failed(reason)
        default: return nil
        }
    }

    package var line: String {
        switch self {
        case .listens: "listens\n"
        case .another: "another\n"
        case .waits(let reason): "waits \(Self.oneLine(reason))\n"
        case .failed(let reason): "failed \(Self.oneLine(reason))\n"
        }
    }

    private static func oneLine(_ text: String) -> String { String(text.map { $0.isNewline ? " " : $0 }.prefix(limit / 4)) }
}
