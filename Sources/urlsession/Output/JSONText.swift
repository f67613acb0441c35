// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Encodes values as JSON for programs, with sorted keys and a line feed at the end.
enum JSONText {
    static func of(_ value: some Encodable) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        return sanitized(String(decoding: try encoder.encode(value), as: UTF8.self)) + "\n"
    }

    /// Returns a string as JSON, with its quotes.
    static func string(_ text: String) -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .withoutEscapingSlashes
        return (try? encoder.encode(text)).map { sanitized(String(decoding: $0, as: UTF8.self)) } ?? "\"\""
    }

    /// Escapes control characters: the JSON has the same meaning, and is harmless on a terminal.
    private static func sanitized(_ json: String) -> String {
        TextTable.replacing(in: json, keeping: ["\n"]) { scalar in
            String(scalar).utf16.map { String(format: "\\u%04x", $0) }.joined()
        }
    }
}
