// SPDX-License-Identifier: Apache-2.0

import HTTPWire

/// An entity tag, which identifies a version of a representation (RFC 9110, section 8.8.3).
package struct EntityTag: Hashable, Sendable {
    /// The tag as written by the server, including quotation marks and `W/`.
    package let text: String
    package let isWeak: Bool

    /// Returns nil if the text is not an entity tag.
    package init?(_ field: String) {
        let bytes = ASCII.trimmed(Array(field.utf8)[...])
        isWeak = bytes.starts(with: "W/".utf8)
        let opaque = isWeak ? bytes.dropFirst(2) : bytes
        guard opaque.count >= 2, opaque.first == UInt8(ascii: "\""), opaque.last == UInt8(ascii: "\""),
            opaque.dropFirst().dropLast().allSatisfy({ $0 > 0x20 && $0 != UInt8(ascii: "\"") && $0 != 0x7F })
        else { return nil }
        text = String(decoding: bytes, as: UTF8.self)
    }

    /// Whether the tags match by strong comparison (section 8.8.3.2).
    ///
    /// A weak tag never matches.
    package func matchesStrongly(_ other: EntityTag) -> Bool {
        !isWeak && !other.isWeak && text == other.text
    }
}
