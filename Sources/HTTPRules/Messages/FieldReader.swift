// SPDX-License-Identifier: Apache-2.0

import HTTPWire

/// A strict tokenizer for field values: tokens, quoted strings and delimiters (RFC 9110, section 5.6).
struct FieldReader {
    private var rest: ArraySlice<UInt8>

    init(_ fieldValue: String) { rest = Array(fieldValue.utf8)[...] }

    var isAtEnd: Bool { rest.isEmpty }
    var next: UInt8? { rest.first }

    /// Reads a token; returns an empty slice if there is no token at this position.
    mutating func readToken() -> ArraySlice<UInt8> {
        let token = rest.prefix { ASCII.isTokenCharacter($0) }
        rest = rest[token.endIndex...]
        return token
    }

    /// Reads a token or the text of a quoted string; returns nil if there is neither.
    mutating func readValue() -> [UInt8]? {
        guard rest.first != UInt8(ascii: "\"") else { return readQuoted() }
        let token = readToken()
        return token.isEmpty ? nil : Array(token)
    }

    /// Reads the text of a quoted string; returns nil if there is no quoted string or the string has no end.
    mutating func readQuoted() -> [UInt8]? {
        guard skipIfPresent(UInt8(ascii: "\"")) else { return nil }
        var value: [UInt8] = []
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "\"") { return value }
            guard byte == UInt8(ascii: "\\") else {
                guard Self.mayBeQuoted(byte) else { return nil }
                value.append(byte)
                continue
            }
            guard let escaped = rest.popFirst(), Self.mayBeQuoted(escaped) else { return nil }
            value.append(escaped)
        }
        return nil
    }

    mutating func skipWhitespace() {
        rest = rest.drop { ASCII.isWhitespace($0) }
    }

    mutating func skipIfPresent(_ byte: UInt8) -> Bool {
        guard rest.first == byte else { return false }
        rest.removeFirst()
        return true
    }

    /// Whether a quoted string may contain a byte: HTAB or any byte that is not a control character (RFC 9110, section 5.6.4).
    private static func mayBeQuoted(_ byte: UInt8) -> Bool {
        byte == 0x09 || (byte >= 0x20 && byte != 0x7F)
    }
}
