//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import ArgumentParser
import Foundation

/// One `--form` as curl reads it: `name=content`, `name=@file` or `name=<file`, and `;type=` and `;filename=` after it.
struct FormField: Sendable {
    enum Source: Sendable, Equatable {
        case text(String)
        /// With the file's name.
        case upload(String)
        /// The file's content alone.
        case content(String)
    }

    let name: String
    let source: Source
    var type: String?
    var fileName: String?

    init(_ text: String) throws(ValidationError) {
        guard let sign = text.firstIndex(of: "="), sign > text.startIndex else {
            throw ValidationError("'\(text)' is not a field of a form: write 'name=content' or 'name=@file'.")
        }
        name = String(text[..<sign])
        var rest = text[text.index(after: sign)...]
        let mark = rest.first.flatMap { "@<".contains($0) ? $0 : nil }
        if mark != nil { rest = rest.dropFirst() }
        let value = Self.word(&rest)
        source = mark == "@" ? .upload(value) : mark == "<" ? .content(value) : .text(value)
        while rest.popFirst() == ";" {
            let start = rest.drop { $0 == " " }
            rest = start
            if let value = Self.value("type=", &rest) {
                type = Self.type(value, &rest)
            } else if let value = Self.value("filename=", &rest) {
                fileName = value
            } else {
                throw ValidationError(
                    "'\(Self.word(&rest))' in --form is unknown: write ;type=, ;filename=, or quote what has a semicolon.")
            }
        }
    }

    private static func value(_ key: String, _ rest: inout Substring) -> String? {
        guard rest.hasPrefix(key) else { return nil }
        rest = rest.dropFirst(key.count)
        return word(&rest)
    }

    /// A media type may have parameters of its own, such as `charset=`.
    private static func type(_ first: String, _ rest: inout Substring) -> String {
        var type = first
        while rest.first == ";" {
            var next = rest.dropFirst().drop { $0 == " " }
            guard !next.hasPrefix("filename="), !next.hasPrefix("type=") else { break }
            type += "; " + word(&next)
            rest = next
        }
        return type
    }

    /// Up to a semicolon; in quotes, to the quote that ends them, where a backslash takes what follows as it is.
    private static func word(_ rest: inout Substring) -> String {
        guard rest.first == "\"" else {
            let word = rest.prefix { $0 != ";" }
            rest = rest[word.endIndex...]
            return String(word)
        }
        var word = ""
        var quoted = rest.dropFirst()
        while let next = quoted.popFirst(), next != "\"" {
            word.append(next == "\\" ? quoted.popFirst() ?? next : next)
        }
        rest = quoted.drop { $0 != ";" }
        return word
    }
}
