// SPDX-License-Identifier: Apache-2.0

import HTTPWire

/// Parses a `data:` URL (RFC 2397) like browsers (WHATWG Fetch, section 6): lenient about the type, strict about base64.
package struct DataURL: Hashable, Sendable {
    /// The media type in lowercase; `text/plain` if the URL contains no type.
    package let mimeType: String
    /// The charset in lowercase; `us-ascii` if the URL contains neither a type nor a charset.
    package let charset: String?
    package let bytes: [UInt8]

    /// Returns nil if this is not a `data:` URL with a comma, or if its base64 is invalid.
    package init?(_ url: String) {
        let text = Array(url.utf8)[...]
        guard text.prefix(5).map(ASCII.lowercased).elementsEqual("data:".utf8), let comma = text.firstIndex(of: UInt8(ascii: ","))
        else { return nil }
        var type = ASCII.trimmed(Self.withSpaces(text[5..<comma])[...])
        // The fragment is not part of the data.
        let body = text[(comma + 1)...].prefix { $0 != UInt8(ascii: "#") }
        if let stripped = Self.withoutBase64(type) {
            guard let decoded = Self.base64(PercentEncoding.bytes(body)) else { return nil }
            bytes = decoded
            type = stripped
        } else {
            bytes = PercentEncoding.bytes(body)
        }
        (mimeType, charset) = Self.readType(type)
    }

    /// Reads the type (RFC 2397, section 2): the default is `text/plain;charset=US-ASCII`, and the type may be omitted before a
    /// parameter.
    private static func readType(_ type: ArraySlice<UInt8>) -> (mimeType: String, charset: String?) {
        let text = String(decoding: type, as: UTF8.self)
        guard let media = MediaType(text.hasPrefix(";") ? "text/plain" + text : text),
            case let parts = media.mimeType.split(separator: "/", omittingEmptySubsequences: false), parts.count == 2,
            ASCII.isToken(String(parts[0])), ASCII.isToken(String(parts[1]))
        else { return ("text/plain", "us-ascii") }
        return (media.mimeType, media.charset)
    }

    /// Returns the type as it was before `URL` parsed the text: `URL` encodes a space after a semicolon, which is common, as `%20`.
    ///
    /// Nothing else in the type is percent-decoded (Fetch, section 6, "data: URL processor").
    private static func withSpaces(_ type: ArraySlice<UInt8>) -> [UInt8] {
        var result: [UInt8] = []
        var rest = type
        var isAfterSemicolon = false
        while let byte = rest.first {
            if isAfterSemicolon, rest.starts(with: "%20".utf8) {
                result.append(0x20)
                rest = rest.dropFirst(3)
            } else {
                isAfterSemicolon = byte == UInt8(ascii: ";") || isAfterSemicolon && ASCII.isWhitespace(byte)
                result.append(byte)
                rest = rest.dropFirst()
            }
        }
        return result
    }

    /// Returns the text before a trailing `;base64`, or nil if there is no `;base64`.
    private static func withoutBase64(_ type: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        let word = "base64"
        guard type.suffix(word.utf8.count).map(ASCII.lowercased).elementsEqual(word.utf8) else { return nil }
        var rest = type.dropLast(word.utf8.count)
        while rest.last == 0x20 { rest.removeLast() }
        guard rest.last == UInt8(ascii: ";") else { return nil }
        return rest.dropLast()
    }

    /// Decodes base64 ("Forgiving-base64 decode", WHATWG Infra, section 7): whitespace is skipped, and padding may be missing.
    private static func base64(_ text: [UInt8]) -> [UInt8]? {
        var digits = text.filter { $0 != 0x20 && $0 != 0x09 && $0 != 0x0A && $0 != 0x0C && $0 != 0x0D }
        if digits.count % 4 == 0 {
            for _ in 0..<2 where digits.last == UInt8(ascii: "=") { digits.removeLast() }
        }
        guard digits.count % 4 != 1 else { return nil }
        var result: [UInt8] = []
        result.reserveCapacity(digits.count * 3 / 4)
        var bits: UInt32 = 0
        var count = 0
        for digit in digits {
            guard let value = value(digit) else { return nil }
            bits = bits << 6 | value
            count += 6
            if count >= 8 {
                count -= 8
                result.append(UInt8(truncatingIfNeeded: bits >> UInt32(count)))
            }
        }
        return result
    }

    private static func value(_ digit: UInt8) -> UInt32? {
        switch digit {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(digit - UInt8(ascii: "A"))
        case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(digit - UInt8(ascii: "a")) + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(digit - UInt8(ascii: "0")) + 52
        case UInt8(ascii: "+"): 62
        case UInt8(ascii: "/"): 63
        default: nil
        }
    }
}
