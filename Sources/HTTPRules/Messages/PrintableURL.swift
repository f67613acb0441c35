// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials

/// Formats a URL without its user and password, for messages that may be logged.
package enum PrintableURL {
    package static func text(_ url: URL) -> String { text(url.absoluteString) }

    /// Formats a URL, or a text given as a URL.
    package static func text(_ reference: String) -> String {
        let bytes = Array(reference.utf8)
        guard let start = bytes.indices.dropLast().first(where: { bytes[$0] == 0x2F && bytes[$0 + 1] == 0x2F }) else {
            return reference
        }
        // RFC 3986, section 3.2: the authority ends at these characters. The last @ counts: a password may contain an unencoded @.
        let authority = bytes[(start + 2)...].prefix { $0 != 0x2F && $0 != 0x3F && $0 != 0x23 }
        guard let at = authority.lastIndex(of: 0x40) else { return reference }
        return String(decoding: bytes[..<(start + 2)] + bytes[(at + 1)...], as: UTF8.self)
    }
}
