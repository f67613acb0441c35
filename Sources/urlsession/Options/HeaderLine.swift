//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation

/// A header as `-H` takes it, as curl has it: `Name: value`; `Name:` for none, be it one that is sent by default; `Name;` for an empty one.
struct HeaderLine {
    let name: String
    /// Nil where the field is not to be sent.
    let value: String?

    /// Nil for what is none of these.
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

    /// What one `-H` says: a line, or those of a file after `@`, where lines that are none are passed over.
    ///
    /// - Parameter argument: Its value.
    /// - Throws: Where the file cannot be read.
    /// - Returns: The lines.
    static func lines(of argument: String) throws(ToolFailure) -> [HeaderLine] {
        guard argument.hasPrefix("@") else { return [HeaderLine(argument)].compactMap(\.self) }
        let text = String(decoding: try InputFile.readOnce(String(argument.dropFirst())), as: UTF8.self)
        return text.split(whereSeparator: \.isNewline).compactMap { HeaderLine(String($0)) }
    }

    static let advice = "write 'Name: value', or 'Name:' to leave it out"
}
