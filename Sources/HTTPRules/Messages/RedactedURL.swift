// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
import HTTPWire

/// Formats the URL of a request for spans and logs, without anything that would allow others to send the request.
///
/// According to the semantic conventions of OpenTelemetry for `url.full`, `REDACTED` replaces the user, the password and the
/// signatures of signed URLs. `REDACTED` also replaces the values of query items whose names are in ``SecretNames``.
package enum RedactedURL {
    /// Formats a URL.
    package static func text(_ url: URL) -> String { text(url.absoluteString) }

    /// Formats a text given as a URL.
    package static func text(_ reference: String) -> String { text(reference, depth: 0) }

    private static func text(_ reference: String, depth: Int) -> String {
        let bytes = Array(reference.utf8)
        guard bytes.contains(where: { $0 == UInt8(ascii: "@") || $0 == UInt8(ascii: "=") }) else { return reference }
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count + 16)
        let query = bytes.firstIndex { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") } ?? bytes.endIndex
        appendHierarchy(bytes[..<query], to: &result)
        // Redacts each item of the query and of the fragment: some servers use the fragment as a second query.
        var start = query
        while start < bytes.endIndex {
            let end = bytes[(start + 1)...].firstIndex(where: isDelimiter) ?? bytes.endIndex
            appendPair(bytes[start..<end], to: &result, depth: depth)
            start = end
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// Appends the scheme, the authority and the path.
    private static func appendHierarchy(_ bytes: ArraySlice<UInt8>, to result: inout [UInt8]) {
        let slash = UInt8(ascii: "/")
        guard let mark = bytes.indices.dropLast().first(where: { bytes[$0] == slash && bytes[$0 + 1] == slash }) else {
            result += bytes
            return
        }
        let authority = bytes[(mark + 2)...].prefix { $0 != slash }
        // The last @ counts: a password may contain an unencoded @.
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

    /// Appends a delimiter, a key and its optional value.
    private static func appendPair(_ bytes: ArraySlice<UInt8>, to result: inout [UInt8], depth: Int) {
        guard let equals = bytes.firstIndex(of: UInt8(ascii: "=")) else {
            result += bytes
            return
        }
        let key = String(decoding: PercentEncoding.bytes(bytes[(bytes.startIndex + 1)..<equals]), as: UTF8.self)
        // The value may be a URL that contains secrets.
        let value = String(decoding: PercentEncoding.bytes(bytes[(equals + 1)...]), as: UTF8.self)
        guard SecretNames.contains(key) || depth > 3 || text(value, depth: depth + 1) != value else {
            result += bytes
            return
        }
        result += bytes[...equals]
        result += "REDACTED".utf8
    }
}
