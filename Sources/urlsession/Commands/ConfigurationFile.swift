//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation

/// A file of `--config`, as curl reads it: an option a line, with or without its dashes, its value behind a space, `=` or `:`.
enum ConfigurationFile {
    private static let mostBytes = 1 << 20

    /// The words that the file stands for.
    ///
    /// Of a value without quotes what is behind a blank is left out, and so is the value of an option that takes none, with a warning.
    ///
    /// - Parameters:
    ///   - path: The file; `-` for standard input.
    ///   - isFlag: Whether an option, with its dashes, takes no value.
    /// - Throws: Where it cannot be read, or a quote has no end.
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
                throw ToolFailure(2, "line \(index + 1) of \(path) has a quote without an end")
            }
            guard let option = entry.option else { continue }
            let place = "line \(index + 1) of \(path)"
            if entry.isCut {
                StandardError.print("warning: \(place): what is behind the blank is left out: write the value in quotes")
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

    /// What a line says.
    struct Entry {
        /// With its dashes; nil where the line says nothing.
        private(set) var option: String?
        private(set) var value: String?
        /// There is more behind the value, which has no quotes.
        private(set) var isCut = false

        /// Nil where a quote has no end.
        init?(_ line: Substring) {
            let line = line.drop(while: \.isWhitespace)
            guard let first = line.first, first != "#" else { return }
            // After a dash the name ends with a space alone.
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
            rest.removeFirst()
            var text = ""
            while let next = rest.popFirst() {
                if next == "\"" {
                    value = text
                    return
                }
                guard next == "\\", let escaped = rest.popFirst() else {
                    text.append(next)
                    continue
                }
                text.append(["t": "\t", "n": "\n", "r": "\r", "v": "\u{0B}"][escaped] ?? escaped)
            }
            return nil
        }
    }
}
