//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// What a daemon says to the program that started it, in lines on its standard output, before it listens or ends.
package enum StartWord: Hashable, Sendable {
    /// The variable that has a daemon say so.
    package static let variable = "URLSESSIOND_REPORT"
    /// Bytes of one.
    package static let limit = 2048

    case listens
    /// Another one is there.
    case another
    /// It cannot begin yet.
    case waits(String)
    /// It cannot begin, and has ended.
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
