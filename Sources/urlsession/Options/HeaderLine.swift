// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A header field in the syntax of curl's `-H`.
///
/// `Name: value` sets the field, `Name:` suppresses it, even if it is sent by default, and `Name;` sends an empty value.
struct HeaderLine {
    let name: String
    /// The value to send; nil to suppress the field.
    let value: String?

    /// Nil if the text is not in the syntax of `-H`.
    init?(_ text: String) {
        if let colon = text.firstIndex(of: ":") {
            name = text[..<colon].trimmingCharacters(in: .whitespaces)
            let rest = text[text.index(after: colon)...].trimmingCharacters(in: .whitespaces)
            value = rest.isEmpty ? nil : rest
        } else if text.hasSuffix(";") {
            name = text.dropLast().trimmingCharacters(in: .whitespaces)
            value = ""
        } else {
            return nil
        }
        if name.isEmpty { return nil }
    }

    /// Returns the header fields of one `-H` option: the field in its value, or for `@file` those in the file.
    ///
    /// Malformed lines of the file are ignored.
    ///
    /// - Parameter argument: The option's value.
    /// - Throws: If the file cannot be read.
    /// - Returns: The header fields.
    static func lines(of argument: String) throws(ToolFailure) -> [HeaderLine] {
        guard argument.hasPrefix("@") else { return [HeaderLine(argument)].compactMap(\.self) }
        let text = String(decoding: try InputFile.readOnce(String(argument.dropFirst())), as: UTF8.self)
        return text.split(whereSeparator: \.isNewline).compactMap { HeaderLine(String($0)) }
    }

    static let advice = "write 'Name: value', or 'Name:' to leave it out"
}
