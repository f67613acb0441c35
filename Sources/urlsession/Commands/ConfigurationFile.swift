// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A file of `--config` in curl's syntax: one option per line, with or without dashes, and its value after a space, `=` or `:`.
enum ConfigurationFile {
    private static let mostBytes = 1 << 20

    /// Returns the words of the file's options.
    ///
    /// An unquoted value ends at its first blank, and a value of an option that takes none is ignored; the user is warned of both,
    /// but not of the ignored value `true`.
    ///
    /// - Parameters:
    ///   - path: The file; `-` for standard input.
    ///   - isFlag: Whether an option, named with its dashes, takes no value.
    /// - Throws: If the file cannot be read, or a closing quote is missing.
    /// - Returns: The words of a command line.
    static func words(of path: String, isFlag: (String) -> Bool) throws(ToolFailure) -> [String] {
        let data = try InputFile.take(path)
        guard data.count <= mostBytes else { throw ToolFailure(26, "\(path) is too long") }
        var words: [String] = []
        for (index, line) in String(decoding: data, as: UTF8.self).split(
            omittingEmptySubsequences: false, whereSeparator: \.isNewline
        )
        .enumerated() {
            guard let entry = Entry(line) else {
                throw ToolFailure(2, "line \(index + 1) of \(path) has an unterminated quote")
            }
            guard let option = entry.option else { continue }
            let place = "line \(index + 1) of \(path)"
            if entry.isCut {
                StandardError.print("warning: \(place): the text after the blank is ignored: put the value in quotes")
            }
            if let value = entry.value, isFlag(option) {
                if value != "true" { StandardError.print("warning: \(place): \(option) takes no value") }
                words.append(option)
            } else {
                words += [option] + (entry.value.map { [$0] } ?? [])
            }
        }
        return words
    }

    /// The option and the value of a line.
    struct Entry {
        /// The option with its dashes; nil if the line contains no option.
        private(set) var option: String?
        private(set) var value: String?
        /// Whether more text follows an unquoted value.
        private(set) var isCut = false

        /// Nil if a closing quote is missing on the line.
        init?(_ line: Substring) {
            let line = line.drop(while: \.isWhitespace)
            guard let first = line.first, first != "#" else { return }
            // A name with dashes ends only at a blank.
            let isDashed = first == "-"
            func isSeparator(_ character: Character) -> Bool {
                character.isWhitespace || !isDashed && "=:".contains(character)
            }
            let name = line.prefix { !isSeparator($0) }
            option = isDashed ? String(name) : "--" + name
            var rest = line[name.endIndex...].drop { isSeparator($0) || "=:".contains($0) }
            guard rest.first == "\"" else {
                let text = rest.prefix { !$0.isWhitespace }
                guard let first = text.first, first != "#" else { return }
                value = String(text)
                let more = rest[text.endIndex...].drop(while: \.isWhitespace)
                isCut = !more.isEmpty && more.first != "#"
                return
            }
            value = rest.takeQuotedWord(escapes: ["t": "\t", "n": "\n", "r": "\r", "v": "\u{0B}"])
            if value == nil { return nil }
        }
    }
}

extension Substring {
    /// Removes a word in quotes and returns it with its backslash escapes replaced; nil if the closing quote is missing.
    ///
    /// - Parameter escapes: The letters after a backslash that stand for another character.
    /// - Returns: The word without its quotes.
    mutating func takeQuotedWord(escapes: [Character: Character]) -> String? {
        removeFirst()
        var word = ""
        while let next = popFirst() {
            if next == "\"" { return word }
            if next == "\\", let escaped = popFirst() {
                word.append(escapes[escaped] ?? escaped)
            } else {
                word.append(next)
            }
        }
        return nil
    }
}
