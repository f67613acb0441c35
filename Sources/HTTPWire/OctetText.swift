// SPDX-License-Identifier: Apache-2.0

/// Represents octets as a `String` that converts back to the same octets, for values that must be sent back unmodified (RFC
/// 6265bis, section 5.8.3).
///
/// Valid UTF-8 stays as it is. Every other octet, always above 0x7F, becomes one of the private-use characters U+10FF80 to
/// U+10FFFF. If the input already contains these characters, their octets are escaped as well, so that different values never yield
/// the same text.
package enum OctetText {
    /// The code point to which an octet is added.
    private static let plane: UInt32 = 0x10_FF00
    /// The first octet of the private-use characters in UTF-8.
    private static let lead: UInt8 = 0xF4

    /// Converts octets to text that ``octets(of:)`` converts back.
    package static func text(of octets: ArraySlice<UInt8>) -> String {
        if !octets.contains(lead), let text = String(validating: octets, as: UTF8.self) { return text }
        var text = String.UnicodeScalarView()
        var rest = octets
        while let first = rest.first {
            let length = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4
            if let known = String(validating: rest.prefix(length), as: UTF8.self)?.unicodeScalars, known.count == 1,
                let scalar = known.first, !isEscape(scalar)
            {
                text.append(scalar)
                rest = rest.dropFirst(length)
            } else {
                text.append(Unicode.Scalar(plane + UInt32(first)) ?? "\u{FFFD}")
                rest = rest.dropFirst()
            }
        }
        return String(text)
    }

    /// Returns the octets from which ``text(of:)`` created a text, or the UTF-8 of any other text.
    package static func octets(of text: String) -> [UInt8] {
        guard isNeeded(for: text) else { return Array(text.utf8) }
        var octets: [UInt8] = []
        for scalar in text.unicodeScalars {
            if isEscape(scalar) {
                octets.append(UInt8(truncatingIfNeeded: scalar.value))
            } else {
                octets.append(contentsOf: UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter)
            }
        }
        return octets
    }

    /// Returns a text for display: octets that are not valid UTF-8 are shown as ISO 8859-1.
    package static func shown(_ text: String) -> String {
        isNeeded(for: text) ? HeaderBlock.text(octets(of: text)[...]) : text
    }

    /// Whether a text can represent octets other than its UTF-8.
    static func isNeeded(for text: String) -> Bool { text.utf8.contains(lead) }

    private static func isEscape(_ scalar: Unicode.Scalar) -> Bool { plane + 0x80...plane + 0xFF ~= scalar.value }
}
