//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// Octets as a `String` that can be turned into the same octets again: for what is to go back as it came (RFC 6265bis, section 5.8.3).
///
/// What is UTF-8 is itself. Every other octet, all of them above 0x7F, is one of the characters U+10FF80 to U+10FFFF, which are for
/// private use; a server's own ones of these are taken for octets as well, so that no two values are the same text.
package enum OctetText {
    /// To which an octet is added.
    private static let plane: UInt32 = 0x10_FF00
    /// The first octet of those characters in UTF-8.
    private static let lead: UInt8 = 0xF4

    /// Reads octets as text that ``octets(of:)`` turns back.
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

    /// The octets that a text stands for: those of its UTF-8, unless it came from ``text(of:)``.
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

    /// A text as people are to see it: octets that are no UTF-8 as ISO 8859-1.
    package static func shown(_ text: String) -> String {
        isNeeded(for: text) ? HeaderBlock.text(octets(of: text)[...]) : text
    }

    /// Whether a text may stand for other octets than those of its UTF-8.
    static func isNeeded(for text: String) -> Bool { text.utf8.contains(lead) }

    private static func isEscape(_ scalar: Unicode.Scalar) -> Bool { plane + 0x80...plane + 0xFF ~= scalar.value }
}
