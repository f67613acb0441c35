// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation

/// Translates a curl command line into the words that the parser accepts.
///
/// Without a command, `get` is assumed. One-letter options may be combined (`-sSfo FILE`), a value may follow its letter directly
/// (`-XPOST`), and the word after an option that takes a value is the value, even if the word begins with a dash.
enum CommandLineWords {
    /// Curl's one-letter options.
    private static let letters: [Character: String] = [
        "O": "remote-name", "i": "include", "I": "head", "f": "fail", "s": "silent", "S": "show-error", "v": "verbose",
        "L": "location", "k": "insecure", "G": "get", "4": "ipv4", "6": "ipv6", "N": "no-buffer", "J": "remote-header-name",
        "R": "remote-time", "#": "progress-bar", "n": "netrc", "Z": "parallel", "g": "globoff", "j": "junk-session-cookies",
        "q": "disable", "1": "tlsv1", "o": "output", "H": "header", "X": "request", "A": "user-agent", "e": "referer",
        "b": "cookie", "d": "data", "F": "form", "u": "user", "x": "proxy", "U": "proxy-user", "w": "write-out", "E": "cert",
        "m": "max-time", "r": "range", "z": "time-cond", "D": "dump-header", "c": "cookie-jar", "C": "continue-at",
        "T": "upload-file", "Y": "speed-limit", "y": "speed-time",
    ]

    /// Wget's one-letter options, which `download` accepts instead of curl's options with the same letters.
    private static let lettersOfDownload: [Character: String] = ["i": "input-file", "P": "directory-prefix"]

    /// The long names of options with a value; the value may begin with a dash.
    static let longOptions: Set<String> = [
        "har", "har-bodies", "cacert", "cert", "cert-type", "checksum", "connect-timeout", "connect-to", "continue-at", "cookie",
        "cookie-jar", "cookies", "data", "data-ascii", "data-binary", "data-raw", "data-urlencode", "directory-prefix",
        "dns-servers", "dump-header", "etag-compare", "etag-save", "form", "header", "idle-time", "input-file", "interface",
        "json", "key", "key-type", "limit-rate", "max-filesize", "max-redirs", "max-time", "netrc-file", "noproxy",
        "oauth2-bearer", "output", "output-dir", "p12", "parallel-max", "pass", "pin", "pinnedpubkey", "proto", "proto-default",
        "proto-redir", "proxy", "proxy-user", "range", "referer", "repeat", "request", "resolve", "retry", "retry-delay",
        "retry-max-time", "segments", "speed-limit", "speed-time", "stderr", "time-cond", "tls-max", "tls-min", "unix-socket",
        "upload-file", "url-query", "user", "user-agent", "write-out",
    ]

    /// Curl's options that are replaced by one of the tool's options with a converted value.
    static let rewritten: [String: (name: String, value: @Sendable (String) -> String)] = [
        "socks4": ("proxy", { "socks4://\($0)" }), "socks4a": ("proxy", { "socks4a://\($0)" }),
        "socks5": ("proxy", { "socks5://\($0)" }), "socks5-hostname": ("proxy", { "socks5h://\($0)" }),
        "form-string": ("form", literalField),
    ]

    /// Quotes a field's content, so that no part of it has a special meaning.
    @Sendable private static func literalField(_ text: String) -> String {
        guard let sign = text.firstIndex(of: "=") else { return text }
        let content = text[text.index(after: sign)...].replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
        return "\(text[...sign])\"\(content)\""
    }

    /// Whether an option, named with its dashes, takes no value.
    private static func isFlag(_ option: String, _ letters: [Character: String]) -> Bool {
        let isLong = option.hasPrefix("--")
        guard isLong || option.count == 2,
            let name = isLong ? String(option.dropFirst(2)) : option.last.flatMap({ letters[$0] })
        else { return false }
        return !longOptions.contains(name) && rewritten[name] == nil && !["url", "config"].contains(name)
    }

    /// Curl's options that apply to all transfers, on either side of `--next`; the options in the second set have a value.
    private static let global: (flags: Set<String>, options: Set<String>) = (
        ["silent", "show-error", "verbose", "fail-early", "parallel", "parallel-immediate", "progress-bar", "styled-output"],
        ["parallel-max", "stderr"]
    )

    private static let loading: Set<String> = ["get", "download", "upload"]

    /// Splits the words at `--next` into command lines, which are parsed separately.
    ///
    /// - Parameter words: The words without the program's name.
    /// - Throws: If a file of `--config` cannot be read or is malformed.
    /// - Returns: At least one command line.
    static func read(_ words: [String]) throws(ToolFailure) -> [[String]] {
        guard let first = words.first else { return [words] }
        if first == "-V" { return [["--version"] + words.dropFirst()] }
        let names = URLSessionTool.configuration.subcommands.compactMap { $0.configuration.commandName } + ["help"]
        let ofParser = ["-h", "--help", "--version", "--experimental-dump-help", "--generate-completion-script"]
        if names.contains(first) {
            return loading.contains(first) ? try expand(words.dropFirst(), for: first) : [words]
        }
        if ofParser.contains(first) || first.hasPrefix("--generate-completion-script=") || first.hasPrefix("---") {
            return [words]
        }
        return try expand(words[...], for: "get")
    }

    private static func expand(_ words: ArraySlice<String>, for command: String) throws(ToolFailure) -> [[String]] {
        var rest = words
        var lines: [[String]] = []
        var result = [command]
        var configurations = 0
        var shared: (flags: Set<String>, options: [String: String]) = ([], [:])
        let letters = command == "download" ? letters.merging(lettersOfDownload) { $1 } : letters
        /// Remembers an option that applies to all transfers.
        func share(_ name: String, _ value: String?) {
            if let value {
                if global.options.contains(name) { shared.options[name] = value }
            } else if global.flags.contains(name) {
                shared.flags.insert(name)
            }
        }
        func add(_ name: String, _ value: String?) {
            share(name, value)
            guard let value else { return result.append("--" + name) }
            // The parser accepts a value that begins with a dash only in the form `--name=value`.
            result += value.hasPrefix("-") && value != "-" ? ["--\(name)=\(value)"] : ["--" + name, value]
        }
        /// Replaces a `--config` option with the words of its file.
        func configure(from file: String?) throws(ToolFailure) {
            guard let file else { throw ToolFailure(2, "--config needs a file") }
            configurations += 1
            guard configurations <= 100 else { throw ToolFailure(2, "--config is given too often") }
            rest = (try ConfigurationFile.words(of: file) { isFlag($0, letters) } + rest)[...]
        }
        func beginLine() {
            lines.append(result)
            result = [command]
        }
        while let word = rest.popFirst() {
            if word == "--" {
                result += [word] + rest
                break
            }
            if word.hasPrefix("--") {
                let parts = word.dropFirst(2).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                let (name, value) = (String(parts[0]), parts.count > 1 ? String(parts[1]) : nil)
                if word == "--url", let address = rest.first, !address.hasPrefix("-") {
                    // URLs and output files are paired in the order of the command line, with and without `--url`.
                    result.append(address)
                    rest = rest.dropFirst()
                } else if name == "config" {
                    try configure(from: value ?? rest.popFirst())
                } else if word == "--next" {
                    beginLine()
                } else if let other = rewritten[name] {
                    add(other.name, (value ?? rest.popFirst()).map(other.value))
                } else if value == nil, longOptions.contains(name) {
                    add(name, rest.popFirst())
                } else {
                    share(name, value)
                    result.append(word)
                }
                continue
            }
            guard word.hasPrefix("-"), word != "-" else {
                result.append(word)
                continue
            }
            var cluster = word.dropFirst()
            while let letter = cluster.popFirst() {
                if letter == ":" {
                    beginLine()
                } else if let name = letters[letter], !longOptions.contains(name) {
                    add(name, nil)
                } else {
                    let value = cluster.isEmpty ? nil : String(cluster)
                    if letter == "K" {
                        try configure(from: value ?? rest.popFirst())
                    } else if let name = letters[letter] {
                        add(name, value ?? rest.popFirst())
                    } else {
                        result.append("-\(letter)\(cluster)")
                    }
                    break
                }
            }
        }
        beginLine()
        guard lines.count > 1 else { return lines }
        let words =
            shared.flags.sorted().map { "--" + $0 }
            + shared.options.sorted { $0.key < $1.key }.map { "--\($0.key)=\($0.value)" }
        return lines.map { line in line.prefix(1) + words + line.dropFirst() }
    }
}
