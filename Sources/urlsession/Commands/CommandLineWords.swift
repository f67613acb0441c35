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

/// The words of a command line as curl's users write them, turned into those that the parser takes.
///
/// Without a command's name they are for `get`. Letters may stand together (`-sSfo FILE`), a value may follow its letter (`-XPOST`),
/// and what follows an option that has a value is that value, also where it begins with a dash.
enum CommandLineWords {
    /// Curl's letters for options without a value.
    static let flags: [Character: String] = [
        "O": "remote-name", "i": "include", "I": "head", "f": "fail", "s": "silent", "S": "show-error", "v": "verbose",
        "L": "location", "k": "insecure", "G": "get", "4": "ipv4", "6": "ipv6", "N": "no-buffer",
        "J": "remote-header-name", "R": "remote-time", "#": "progress-bar",
    ]

    /// Curl's letters for options with one.
    static let options: [Character: String] = [
        "o": "output", "H": "header", "X": "request", "A": "user-agent", "e": "referer", "b": "cookie", "d": "data", "F": "form",
        "u": "user", "x": "proxy", "U": "proxy-user", "w": "write-out", "E": "cert", "m": "max-time",
        "r": "range", "z": "time-cond", "D": "dump-header", "c": "cookie-jar", "C": "continue-at",
    ]

    /// The long names of options with a value that may begin with a dash.
    static let longOptions: Set<String> = [
        "output", "header", "request", "user-agent", "referer", "cookie", "cookies", "data", "data-binary", "data-urlencode",
        "data-raw",
        "data-ascii", "range", "time-cond", "oauth2-bearer", "dump-header", "cookie-jar",
        "continue-at", "output-dir", "max-filesize",
        "json", "form", "user", "proxy-user", "write-out", "proto", "proto-redir",
    ]

    private static let loading: Set<String> = ["get", "download", "upload"]

    static func read(_ words: [String]) throws -> [String] {
        guard let first = words.first else { return words }
        if first == "-V" { return ["--version"] + words.dropFirst() }
        let names = URLSessionTool.configuration.subcommands.compactMap { $0.configuration.commandName } + ["help"]
        let ofParser = ["-h", "--help", "--version", "--experimental-dump-help", "--generate-completion-script"]
        if names.contains(first) {
            return loading.contains(first) ? [first] + expand(words.dropFirst()) : words
        }
        if ofParser.contains(first) || first.hasPrefix("--generate-completion-script=") || first.hasPrefix("---") { return words }
        return ["get"] + expand(words[...])
    }

    private static func expand(_ words: ArraySlice<String>) -> [String] {
        var rest = words
        var result: [String] = []
        func add(_ name: String, _ value: String?) {
            guard let value else { return result.append("--" + name) }
            // The parser takes no other word with a dash for a value.
            result += value.hasPrefix("-") && value != "-" ? ["--\(name)=\(value)"] : ["--" + name, value]
        }
        while let word = rest.popFirst() {
            if word == "--" { return result + [word] + rest }
            if word.hasPrefix("--") {
                let name = String(word.dropFirst(2))
                if name == "url", let address = rest.first, !address.hasPrefix("-") {
                    // Addresses and files meet in their order.
                    result.append(address)
                    rest = rest.dropFirst()
                } else if longOptions.contains(name) {
                    add(name, rest.popFirst())
                } else {
                    result.append(word)
                }
                continue
            }
            guard word.hasPrefix("-"), word != "-" else {
                result.append(word)
                continue
            }
            var letters = word.dropFirst()
            while let letter = letters.popFirst() {
                if let name = flags[letter] {
                    add(name, nil)
                } else if let name = options[letter] {
                    add(name, letters.isEmpty ? rest.popFirst() : String(letters))
                    break
                } else {
                    result.append("-\(letter)\(letters)")
                    break
                }
            }
        }
        return result
    }
}
