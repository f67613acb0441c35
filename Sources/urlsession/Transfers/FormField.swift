// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation

/// A `--form` option in curl's syntax: `name=content`, `name=<file`, `name=@file` or `name=@file,file`, each with optional
/// `;type=`, `;filename=` and `;headers=` after it.
struct FormField: Sendable {
    enum Source: Sendable, Equatable {
        case text(String)
        /// The content and the name of a file.
        case upload(String)
        /// The content of a file only.
        case content(String)
    }

    enum Header: Sendable {
        case line(String)
        /// A file with one header field per line.
        case file(String)
    }

    struct Part: Sendable {
        let source: Source
        var type: String?
        var fileName: String?
        var headers: [Header] = []
    }

    let name: String
    /// One part, or several files that belong together.
    let parts: [Part]

    init(_ text: String) throws(ValidationError) {
        guard let sign = text.firstIndex(of: "="), sign > text.startIndex else {
            throw ValidationError("'\(text)' is not a field of a form: write 'name=content' or 'name=@file'.")
        }
        name = String(text[..<sign])
        var rest = text[text.index(after: sign)...]
        var parts: [Part] = []
        switch rest.first {
        case "@":
            repeat {
                rest.removeFirst()
                parts.append(try Self.part(&rest, until: ",") { .upload($0) })
            } while rest.first == ","
        case "<":
            rest.removeFirst()
            parts = [try Self.part(&rest) { .content($0) }]
        default: parts = [try Self.part(&rest) { .text($0) }]
        }
        self.parts = parts
    }

    private static func part(
        _ rest: inout Substring, until end: Character? = nil, _ source: (String) -> Source
    ) throws(ValidationError) -> Part {
        var part = Part(source: source(word(&rest, until: end)))
        while rest.first == ";" {
            rest = rest.dropFirst().drop(while: \.isWhitespace)
            if skipPrefix("type=", &rest) {
                part.type = type(&rest, until: end)
            } else if skipPrefix("filename=", &rest) {
                part.fileName = word(&rest, until: end)
            } else if skipPrefix("headers=", &rest) {
                part.headers.append(try header(&rest, until: end))
            } else if rest.hasPrefix("encoder=") {
                throw ValidationError("'\(word(&rest, until: end))' in --form is not supported: content is sent unchanged.")
            } else {
                throw ValidationError(
                    "'\(word(&rest, until: end))' in --form is unknown: write ;type=, ;filename=, ;headers=, "
                        + "or quote text that contains a semicolon.")
            }
        }
        return part
    }

    private static func skipPrefix(_ key: String, _ rest: inout Substring) -> Bool {
        guard rest.hasPrefix(key) else { return false }
        rest = rest.dropFirst(key.count)
        return true
    }

    private static func header(_ rest: inout Substring, until end: Character?) throws(ValidationError) -> Header {
        if let mark = rest.first, "@<".contains(mark) {
            rest.removeFirst()
            return .file(word(&rest, until: end))
        }
        let line = word(&rest, until: end)
        guard isHeader(line) else {
            throw ValidationError("'\(line)' in --form is not a header: write ;headers=\"Name: value\".")
        }
        return .line(line)
    }

    /// Whether the text is a header field: a name and a value on one line.
    static func isHeader(_ line: String) -> Bool {
        !line.unicodeScalars.contains { $0 == "\r" || $0 == "\n" } && line.dropFirst().contains(":")
    }

    /// Reads a media type, which may have parameters such as `charset=`.
    private static func type(_ rest: inout Substring, until end: Character?) -> String {
        let start = rest
        rest = rest.drop { $0 != ";" && $0 != end }
        while rest.first == ";" {
            let next = rest.dropFirst()
            let key = next.drop(while: \.isWhitespace)
            if ["type=", "filename=", "headers=", "encoder="].contains(where: key.hasPrefix) { break }
            rest = next.drop { $0 != ";" && $0 != end }
        }
        return start[..<rest.startIndex].trimmingCharacters(in: .whitespaces)
    }

    /// Reads a word without surrounding spaces: a quoted word ends at the closing quote, and any other word at a semicolon or the
    /// end of the part.
    ///
    /// In a quoted word, a backslash escapes a quote or a backslash.
    private static func word(_ rest: inout Substring, until end: Character?) -> String {
        rest = rest.drop(while: \.isWhitespace)
        if rest.first == "\"", let quoted = quotedWord(&rest, until: end) { return quoted }
        let word = rest.prefix { $0 != ";" && $0 != end }
        rest = rest[word.endIndex...]
        return word.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// Returns a quoted word; nil if the closing quote is missing.
    private static func quotedWord(_ rest: inout Substring, until end: Character?) -> String? {
        var word = ""
        var quoted = rest.dropFirst()
        while let next = quoted.popFirst() {
            if next == "\"" {
                rest = quoted.drop { $0 != ";" && $0 != end }
                return word
            }
            let isEscape = next == "\\" && quoted.first.map { "\"\\".contains($0) } == true
            word.append(isEscape ? quoted.removeFirst() : next)
        }
        return nil
    }
}
