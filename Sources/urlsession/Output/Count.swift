// SPDX-License-Identifier: Apache-2.0

/// Formats a number of things for display.
enum Count {
    static func text(_ count: Int, _ noun: String) -> String { "\(count) \(noun)\(count == 1 ? "" : "s")" }
}
