// SPDX-License-Identifier: Apache-2.0

import HTTPWire

/// Percent-encodes and decodes octets: `%XX` (RFC 3986, section 2.1).
enum PercentEncoding {
    /// Decodes a text.
    ///
    /// A percent sign that does not start an escape is kept.
    static func bytes(_ text: some Collection<UInt8>) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(text.count)
        var index = text.startIndex
        while index < text.endIndex {
            if let octet = escape(in: text, at: index) {
                result.append(octet)
                index = text.index(index, offsetBy: 3)
            } else {
                result.append(text[index])
                index = text.index(after: index)
            }
        }
        return result
    }

    /// Decodes a text as text that preserves the octets (``OctetText``), as user information has to be sent.
    static func decoded(_ text: String) -> String {
        guard text.utf8.contains(UInt8(ascii: "%")) else { return text }
        return OctetText.text(of: bytes(OctetText.octets(of: text))[...])
    }

    /// Decodes a text, or returns nil if a percent sign does not start an escape.
    static func strictBytes(_ text: some Collection<UInt8>) -> [UInt8]? {
        var index = text.startIndex
        while index < text.endIndex {
            if text[index] == UInt8(ascii: "%"), escape(in: text, at: index) == nil { return nil }
            index = text.index(after: index)
        }
        return bytes(text)
    }

    /// Encodes all bytes but the plain ones.
    static func encoded(_ bytes: some Sequence<UInt8>, except isPlain: (UInt8) -> Bool) -> String {
        var text: [UInt8] = []
        for byte in bytes {
            if isPlain(byte) { text.append(byte) } else { append(byte, to: &text) }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Appends `%XX`.
    static func append(_ byte: UInt8, to text: inout [UInt8]) {
        text.append(UInt8(ascii: "%"))
        text.append(digit(byte >> 4))
        text.append(digit(byte & 15))
    }

    /// Returns the octet of the escape at a position, or nil if there is no escape.
    static func escape<Text: Collection<UInt8>>(in text: Text, at index: Text.Index) -> UInt8? {
        guard text[index] == UInt8(ascii: "%"),
            let first = text.index(index, offsetBy: 1, limitedBy: text.endIndex), first < text.endIndex,
            let second = text.index(index, offsetBy: 2, limitedBy: text.endIndex), second < text.endIndex,
            let high = ASCII.hexadecimalValue(text[first]), let low = ASCII.hexadecimalValue(text[second])
        else { return nil }
        return high << 4 | low
    }

    private static func digit(_ value: UInt8) -> UInt8 {
        value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "A") + value - 10
    }
}
