//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import FoundationEssentials
import HTTPWire

/// How what is kept of a request, in spans and logs, writes its URL: without what would let somebody else send it.
///
/// By the semantic conventions of OpenTelemetry for `url.full`: user and password, and the signatures of signed URLs, are `REDACTED`; and so is
/// what ``SecretNames`` says of a query.
package enum RedactedURL {
    /// The text of the URL.
    package static func text(_ url: URL) -> String { text(url.absoluteString) }

    /// The text of what somebody gave for a URL.
    package static func text(_ reference: String) -> String { text(reference, depth: 0) }

    private static func text(_ reference: String, depth: Int) -> String {
        let bytes = Array(reference.utf8)
        guard bytes.contains(where: { $0 == UInt8(ascii: "@") || $0 == UInt8(ascii: "=") }) else { return reference }
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count + 16)
        let query = bytes.firstIndex { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") } ?? bytes.endIndex
        appendHierarchy(bytes[..<query], to: &result)
        // Each pair of the query and of the fragment, which some servers use as another.
        var start = query
        while start < bytes.endIndex {
            let end = bytes[(start + 1)...].firstIndex(where: isDelimiter) ?? bytes.endIndex
            appendPair(bytes[start..<end], to: &result, depth: depth)
            start = end
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// Scheme, authority and path.
    private static func appendHierarchy(_ bytes: ArraySlice<UInt8>, to result: inout [UInt8]) {
        let slash = UInt8(ascii: "/")
        guard let mark = bytes.indices.dropLast().first(where: { bytes[$0] == slash && bytes[$0 + 1] == slash }) else {
            result += bytes
            return
        }
        let authority = bytes[(mark + 2)...].prefix { $0 != slash }
        // The last @ counts, as it does for those who are careless.
        guard let at = authority.lastIndex(of: UInt8(ascii: "@")) else {
            result += bytes
            return
        }
        result += bytes[..<(mark + 2)]
        result += authority[..<at].contains(UInt8(ascii: ":")) ? "REDACTED:REDACTED".utf8 : "REDACTED".utf8
        result += bytes[at...]
    }

    private static func isDelimiter(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "&"), UInt8(ascii: ";"), UInt8(ascii: "?"), UInt8(ascii: "#"): true
        default: false
        }
    }

    /// A delimiter, a key and perhaps its value.
    private static func appendPair(_ bytes: ArraySlice<UInt8>, to result: inout [UInt8], depth: Int) {
        guard let equals = bytes.firstIndex(of: UInt8(ascii: "=")) else {
            result += bytes
            return
        }
        let key = String(decoding: PercentEncoding.bytes(bytes[(bytes.startIndex + 1)..<equals]), as: UTF8.self)
        // The value may be a URL with secrets of its own.
        let value = String(decoding: PercentEncoding.bytes(bytes[(equals + 1)...]), as: UTF8.self)
        guard SecretNames.contain(key) || depth > 3 || text(value, depth: depth + 1) != value else {
            result += bytes
            return
        }
        result += bytes[...equals]
        result += "REDACTED".utf8
    }
}
