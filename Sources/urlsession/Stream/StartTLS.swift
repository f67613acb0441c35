// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import URLLoading

/// Asks a server to start TLS, with the command of the application protocol.
struct StartTLS {
    enum Dialogue: String, ExpressibleByArgument, CaseIterable {
        /// RFC 3207.
        case smtp
        /// RFC 3501, section 6.2.1.
        case imap
        /// RFC 2595, section 4.
        case pop3
        /// RFC 4217, section 4.
        case ftp
    }

    private static let longestLine = 8192
    private static let maximumLines = 128
    /// The timeout for each read or write, in seconds.
    private static let patience = 60.0

    private let task: URLSessionStreamTask

    init(_ task: URLSessionStreamTask) { self.task = task }

    /// Asks for TLS; when this method returns, the server has agreed and is waiting for the handshake.
    func ask(in dialogue: Dialogue) async throws {
        switch dialogue {
        case .smtp:
            try await expectReply("220")
            try await say("EHLO localhost")
            let reply = try await expectReply("250")
            guard reply.contains(where: { $0.dropFirst(4).uppercased() == "STARTTLS" }) else {
                throw refused("no STARTTLS in the response to EHLO")
            }
            try await say("STARTTLS")
            try await expectReply("220")
        case .imap:
            try await expectLine { $0.uppercased().hasPrefix("* OK") }
            try await say("a STARTTLS")
            try await expectTagged("a")
        case .pop3:
            try await expectLine { $0.hasPrefix("+OK") }
            try await say("STLS")
            try await expectLine { $0.hasPrefix("+OK") }
        case .ftp:
            try await expectReply("220", marksEachLine: false)
            try await say("AUTH TLS")
            try await expectReply("234", marksEachLine: false)
        }
    }

    private func say(_ line: String) async throws { try await task.write(Data((line + "\r\n").utf8), timeout: Self.patience) }

    /// Reads a line without its line ending.
    ///
    /// Reads byte by byte, so that no data after the line is read: later data must not be accepted in clear text.
    private func line() async throws -> String {
        var line = Data()
        while line.count < Self.longestLine {
            let (byte, isAtEnd) = try await task.readData(ofMinLength: 1, maxLength: 1, timeout: Self.patience)
            if byte?.first == UInt8(ascii: "\n") {
                if line.last == UInt8(ascii: "\r") { line.removeLast() }
                return String(decoding: line, as: UTF8.self)
            }
            if let byte { line.append(byte) }
            if isAtEnd { throw refused("it closed the connection") }
        }
        throw refused("a line is longer than \(Self.longestLine) bytes")
    }

    private func expectLine(_ isExpected: (String) -> Bool) async throws {
        let line = try await line()
        guard isExpected(line) else { throw refused(line) }
    }

    /// Reads the tagged response to an IMAP command, and skips untagged responses.
    private func expectTagged(_ tag: String) async throws {
        for _ in 0..<Self.maximumLines {
            let line = try await line()
            guard line.hasPrefix(tag + " ") else { continue }
            guard line.dropFirst(tag.count + 1).uppercased().hasPrefix("OK") else { throw refused(line) }
            return
        }
        throw refused("it sends more than \(Self.maximumLines) lines")
    }

    /// Reads a reply of one or more lines: every line but the last begins with the code and a hyphen, such as "250-".
    ///
    /// For FTP, however, the lines between the first and the last can be any text (RFC 959, section 4.2).
    @discardableResult
    private func expectReply(_ code: String, marksEachLine: Bool = true) async throws -> [String] {
        var lines: [String] = []
        while lines.count < Self.maximumLines {
            let line = try await line()
            lines.append(line)
            guard line.hasPrefix(code) else {
                if lines.count > 1, !marksEachLine { continue }
                throw refused(line)
            }
            if line.dropFirst(3).first != "-" { return lines }
        }
        throw refused("a reply has more than \(Self.maximumLines) lines")
    }

    private func refused(_ reason: String) -> ToolFailure {
        ToolFailure(64, TextTable.sanitized("the server does not start TLS: \(reason)"))
    }
}
