// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import URLLoadingArchive

/// The content of a `.netrc` file: logins by host, in the syntax of ftp(1) and curl.
struct Netrc: Sendable {
    private struct Entry: Sendable {
        /// Nil for the default entry, which applies to every host.
        var host: String?
        var user: String?
        var password: String?
    }

    struct Malformed: Error, Equatable {
        let line: Int
    }

    private let entries: [Entry]

    /// - Parameter text: The file's content. `#` begins a comment, quotes enclose a word with spaces, and an empty line ends a
    ///   macro.
    /// - Throws: If a closing quote is missing.
    init(_ text: String) throws(Malformed) {
        var entries: [Entry] = []
        var awaited: String?
        var isMacro = false
        let lines = text.split(omittingEmptySubsequences: false) { $0 == "\n" || $0 == "\r\n" }
        for (index, line) in lines.enumerated() {
            if isMacro {
                isMacro = !line.isEmpty
                continue
            }
            guard let words = Self.words(line) else { throw Malformed(line: index + 1) }
            for word in words {
                if let keyword = awaited {
                    awaited = nil
                    Self.take(word, for: keyword, &entries)
                    isMacro = keyword == "macdef"
                    if isMacro { break }
                    continue
                }
                switch word.lowercased() {
                case "default": entries.append(Entry())
                case let keyword:
                    awaited = ["machine", "login", "password", "account", "macdef"].contains(keyword) ? keyword : nil
                }
            }
        }
        self.entries = entries
    }

    private static func take(_ word: String, for keyword: String, _ entries: inout [Entry]) {
        if keyword == "machine" { return entries.append(Entry(host: word.lowercased())) }
        guard var last = entries.popLast() else { return }
        if keyword == "login" { last.user = last.user ?? word }
        if keyword == "password" { last.password = last.password ?? word }
        entries.append(last)
    }

    /// Returns the words of a line; nil if a closing quote is missing.
    private static func words(_ line: Substring) -> [String]? {
        var words: [String] = []
        var rest = line[...]
        while true {
            rest = rest.drop(while: \.isWhitespace)
            guard let first = rest.first, first != "#" else { return words }
            guard first == "\"" else {
                let word = rest.prefix { !$0.isWhitespace }
                words.append(String(word))
                rest = rest[word.endIndex...]
                continue
            }
            guard let word = rest.takeQuotedWord(escapes: ["n": "\n", "r": "\r", "t": "\t"]) else { return nil }
            words.append(word)
        }
    }

    /// Returns the login for a host; nil if the file contains no login for the host.
    ///
    /// - Parameters:
    ///   - host: The host.
    ///   - user: The user whose password is requested; nil for any.
    ///   - takesDefault: Whether the default entry may be used; true only for the host that the user named.
    /// - Returns: The login of the first matching entry.
    func login(at host: String, user: String? = nil, takesDefault: Bool) -> Login? {
        let host = host.lowercased().trimmingCharacters(in: CharacterSet(charactersIn: "[]"))
        for entry in entries where entry.host == host || entry.host == nil && takesDefault {
            guard let name = entry.user ?? user, user == nil || name == user, !name.isEmpty else { continue }
            return Login(user: name, password: entry.password ?? "")
        }
        return nil
    }

    /// The files that have been read: all loads of a command use the same file, and a pipe can be read only once.
    private static let known = Mutex<[String: Netrc]>([:])

    /// Reads a `.netrc` file, but refuses a regular file that another user except root owns, or that other users have permission to
    /// access.
    ///
    /// - Parameters:
    ///   - path: The file.
    ///   - mayBeMissing: Whether to return nil, instead of throwing, if the file does not exist.
    /// - Throws: If the file cannot be read, is refused, or is malformed.
    /// - Returns: Nil if the file does not exist.
    static func read(_ path: String, mayBeMissing: Bool) throws(ToolFailure) -> Netrc? {
        if let netrc = known.withLock({ $0[path] }) { return netrc }
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            if mayBeMissing, errno == ENOENT { return nil }
            throw ToolFailure.system(26, "cannot read \(path)")
        }
        let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        guard let file = PrivateFile.facts(of: descriptor) else { throw ToolFailure(26, "cannot read \(path)") }
        // A pipe, such as a shell's `<(…)`, belongs to the user, so it needs no check.
        if file.isRegular {
            guard file.owner == geteuid() || file.owner == 0 else {
                throw ToolFailure(26, "\(path) is not used: it belongs to another user")
            }
            guard file.permissions & 0o077 == 0 else {
                throw ToolFailure(26, "\(path) is not used: other users may read or write it; run 'chmod 600 \(path)'")
            }
        }
        // `read(upToCount:)` returns nil at the end of the file, which is not an error.
        let read = Result { try handle.read(upToCount: mostBytes + 1) ?? Data() }
        guard let data = try? read.get(), data.count <= mostBytes else {
            throw ToolFailure(26, "cannot read \(path), or it is larger than \(ByteText.size(Int64(mostBytes)))")
        }
        do throws(Malformed) {
            let netrc = try Netrc(String(decoding: data, as: UTF8.self))
            known.withLock { $0[path] = netrc }
            return netrc
        } catch {
            throw ToolFailure(26, "line \(error.line) of \(path) has an unterminated quote")
        }
    }

    private static let mostBytes = 1 << 20

    /// The path of the user's `.netrc` file.
    static var usualPath: String {
        let home = ProcessInfo.processInfo.environment["HOME"].flatMap { $0.isEmpty ? nil : $0 }
        return (home ?? NSHomeDirectory()) + "/.netrc"
    }
}
