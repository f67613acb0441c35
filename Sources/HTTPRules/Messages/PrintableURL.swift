//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
package import FoundationEssentials

/// How messages for people, which end in logs, write a URL: without the user and the password that it may carry.
package enum PrintableURL {
    package static func text(_ url: URL) -> String { text(url.absoluteString) }

    /// How to write a URL, or what somebody gave for one.
    package static func text(_ reference: String) -> String {
        let bytes = Array(reference.utf8)
        guard let start = bytes.indices.dropLast().first(where: { bytes[$0] == 0x2F && bytes[$0 + 1] == 0x2F }) else {
            return reference
        }
        // RFC 3986, section 3.2: the authority ends at these. The last @ counts, as it does for those who are careless.
        let authority = bytes[(start + 2)...].prefix { $0 != 0x2F && $0 != 0x3F && $0 != 0x23 }
        guard let at = authority.lastIndex(of: 0x40) else { return reference }
        return String(decoding: bytes[..<(start + 2)] + bytes[(at + 1)...], as: UTF8.self)
    }
}
