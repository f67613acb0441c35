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
    /// - Parameter path: The file; `-` for standard input.
    /// - Throws: Where it cannot be read, or a quote has no end.
    /// - Returns: The words of a command line.
    static func words(of path: String) throws(ToolFailure) -> [String] {
        let data = try InputFile.take(path)
        guard data.count <= mostBytes else { throw ToolFailure(26, "\(path) is too long") }
        var words: [String] = []
        for (index, line) in String(decoding: data, as: UTF8.self).split(
            omittingEmptySubsequences: false, whereSeparator: \.isNewline
        )
        .enumerated() {
            guard let next = self.words(line) else {
                throw ToolFailure(2, "line \(index + 1) of \(path) has a quote without an end, or a value too much")
            }
            words += next
        }
        return words
    }

    /// Nil where the line makes no sense.
    private static func words(_ line: Substring) -> [String]? {
        let line = line.drop(while: \.isWhitespace)
        guard let first = line.first, first != "#" else { return [] }
        // After a dash the name ends with a space alone.
        let isDashed = first == "-"
        func isSeparator(_ character: Character) -> Bool { character.isWhitespace || !isDashed && "=:".contains(character) }
        let name = String(line.prefix { !isSeparator($0) })
        let option = isDashed ? name : "--" + name
        var rest = line[line.index(line.startIndex, offsetBy: name.count)...].drop { isSeparator($0) || "=:".contains($0) }
        guard rest.first == "\"" else {
            let value = rest.prefix { !$0.isWhitespace }
            let more = rest[value.endIndex...].drop(while: \.isWhitespace)
            guard more.isEmpty || more.first == "#" || value.first == "#" else { return nil }
            return value.isEmpty || value.first == "#" ? [option] : [option, String(value)]
        }
        rest.removeFirst()
        var value = ""
        while let next = rest.popFirst() {
            if next == "\"" { return [option, value] }
            guard next == "\\", let escaped = rest.popFirst() else {
                value.append(next)
                continue
            }
            value.append(["t": "\t", "n": "\n", "r": "\r", "v": "\u{0B}"][escaped] ?? escaped)
        }
        return nil
    }
}
