// SPDX-License-Identifier: Apache-2.0

import Foundation
import URLLoading

/// `--write-out`: text about a load, with curl's variables.
struct WriteOut: Sendable {
    private let format: String

    /// Reads the format from a file for `@file`, and from standard input for `@-`.
    init(_ argument: String) throws(ToolFailure) {
        format =
            argument.hasPrefix("@")
            ? String(decoding: try InputFile.read(String(argument.dropFirst())), as: UTF8.self) : argument
    }

    /// Writes to standard output and standard error in the order of the format.
    func write(_ report: TransferReport) throws(ToolFailure) {
        var text = ""
        var toErrors = false
        var rest = format[...]
        func flush() throws(ToolFailure) {
            if toErrors { StandardError.write(text) } else { try StandardOutput.write(text) }
            text = ""
        }
        // Many values come from servers, so they are sanitized on a terminal. The text of the format itself is written unchanged.
        func shown(_ value: String) -> String {
            (toErrors ? StandardError.isTerminal : StandardOutput.isTerminal)
                ? TextTable.sanitized(value, keeping: ["\n"]) : value
        }
        while let next = rest.popFirst() {
            switch next {
            case "\\":
                let escaped = rest.popFirst()
                text += escaped.map { ["n": "\n", "r": "\r", "t": "\t"][$0] ?? "\\\($0)" } ?? "\\"
            case "%":
                if rest.first == "%" {
                    rest = rest.dropFirst()
                    text += "%"
                } else if let name = Self.name(after: "{", in: &rest) {
                    switch name {
                    case "stderr", "stdout":
                        try flush()
                        toErrors = name == "stderr"
                    case "onerror":
                        guard let failure = report.failure, failure.code != 0 else {
                            rest = ""
                            continue
                        }
                    default:
                        if let value = report.value(name) {
                            text += shown(value)
                        } else {
                            StandardError.print("urlsession: unknown --write-out variable: '\(name)'")
                        }
                    }
                } else if let name = Self.name(after: "header{", in: &rest) {
                    text += shown(report.field(name))
                } else {
                    text += "%"
                }
            default: text.append(next)
            }
        }
        try flush()
    }

    /// Returns the text between `opening`, which ends with a brace, and the next closing brace; nil if either is missing.
    private static func name(after opening: String, in rest: inout Substring) -> String? {
        guard rest.hasPrefix(opening), let end = rest.firstIndex(of: "}") else { return nil }
        let name = rest[rest.index(rest.startIndex, offsetBy: opening.count)..<end]
        rest = rest[rest.index(after: end)...]
        return String(name)
    }
}
