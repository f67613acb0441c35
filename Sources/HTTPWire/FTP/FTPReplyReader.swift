// SPDX-License-Identifier: Apache-2.0

/// One reply of an FTP server (RFC 959, section 4.2).
package struct FTPReply: Hashable, Sendable {
    /// The reply code, from 100 to 599.
    package let code: Int
    /// The text after the code on the last line.
    ///
    /// Invalid UTF-8 becomes replacement characters.
    package let text: String
    /// The text of all lines in one printable line of at most 200 characters.
    package let message: String

    package init(code: Int, text: String, message: String? = nil) {
        self.code = code
        self.text = text
        self.message = message ?? text
    }

    /// Whether the transfer begins and another reply follows.
    package var isPreliminary: Bool { code < 200 }
    package var isSuccess: Bool { 200...299 ~= code }
    /// Whether the server refused the command, temporarily or permanently.
    package var isRefusal: Bool { code >= 400 }
}

/// Assembles replies from the bytes of a control connection, regardless of how they were split.
///
/// Like curl, the reader accepts LF with or without a preceding CR as the line end. A reply of more than ``maximumSize`` bytes is
/// an error.
package struct FTPReplyReader: Sendable {
    package enum Failure: Error, Hashable, Sendable {
        /// A reply does not begin with a valid three-digit code.
        case malformed
        /// A line or a multiline reply exceeds the limit.
        case tooLong
        /// A line contains a NUL, at which other programs would end it.
        case containsNUL

        package var message: String {
            switch self {
            case .malformed: "the server's reply does not begin with a three-digit code (RFC 959, section 4.2)"
            case .containsNUL: "the server's reply contains a NUL"
            case .tooLong: "the server's reply is longer than \(FTPReplyReader.maximumSize) bytes"
            }
        }
    }

    /// The maximum size of one reply in bytes.
    package static let maximumSize = 65_536
    private static let messageLimit = 200

    private var bytes: [UInt8] = []
    /// The start of the next line.
    private var start = 0
    /// The position up to which the buffer has been searched without finding a line end.
    private var searched = 0
    /// The code of a multiline reply whose last line has not arrived.
    private var code: Int?
    private var size = 0
    private var message = ""

    package init() {}

    /// Whether the buffer is empty: all received bytes have been read, and no reply is incomplete.
    package var isEmpty: Bool { start == bytes.count && code == nil }

    package mutating func append(_ more: some Sequence<UInt8>) {
        if start > 0 {
            bytes.removeFirst(start)
            searched -= start
            start = 0
        }
        bytes.append(contentsOf: more)
    }

    /// Returns the next complete reply, or nil if more bytes are needed.
    package mutating func next() throws(Failure) -> FTPReply? {
        while let end = bytes[searched...].firstIndex(of: 0x0A) {
            let line = bytes[start..<end]
            size += line.count + 1
            start = end + 1
            searched = start
            guard size <= Self.maximumSize else { throw .tooLong }
            guard !line.contains(0) else { throw .containsNUL }
            if let reply = try take(line.last == 0x0D ? line.dropLast() : line) { return reply }
        }
        searched = bytes.count
        guard size + bytes.count - start <= Self.maximumSize else { throw .tooLong }
        return nil
    }

    private mutating func take(_ line: ArraySlice<UInt8>) throws(Failure) -> FTPReply? {
        let parts = Self.parts(line)
        guard let expected = code else {
            guard let parts else { throw .malformed }
            if !parts.isLast { code = parts.code }
            note(parts.text)
            return parts.isLast ? end(parts.code, parts.text) : nil
        }
        guard let parts, parts.isLast, parts.code == expected else {
            note(line)
            return nil
        }
        note(parts.text)
        return end(expected, parts.text)
    }

    private mutating func end(_ code: Int, _ text: ArraySlice<UInt8>) -> FTPReply {
        defer { (self.code, size, message) = (nil, 0, "") }
        return FTPReply(code: code, text: String(decoding: text, as: UTF8.self), message: message)
    }

    /// Splits a line into its code, whether it can be the last line of a reply, and its text.
    private static func parts(_ line: ArraySlice<UInt8>) -> (code: Int, isLast: Bool, text: ArraySlice<UInt8>)? {
        let digits = line.prefix(3)
        guard digits.count == 3, digits.allSatisfy({ 0x30...0x39 ~= $0 }) else { return nil }
        let code = digits.reduce(0) { $0 * 10 + Int($1 - 0x30) }
        guard 100...599 ~= code else { return nil }
        let rest = line.dropFirst(3)
        guard let separator = rest.first else { return (code, true, rest) }
        guard separator == 0x20 || separator == 0x2D else { return nil }
        return (code, separator == 0x20, rest.dropFirst())
    }

    private mutating func note(_ text: ArraySlice<UInt8>) {
        let room = Self.messageLimit - message.count
        guard room > 1, !text.isEmpty else { return }
        if !message.isEmpty { message += " " }
        for character in String(decoding: text.prefix(4 * room), as: UTF8.self).prefix(room - 1) {
            message.append(character.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0x7F } ? character : "?")
        }
    }
}
