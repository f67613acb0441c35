// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
import HTTPWire

/// Parses a `Location` field value and resolves it against the request's URL (RFC 3986, section 5; RFC 9110, section 10.2.2).
///
/// The parser works on bytes, because servers send values that are not valid URLs.
package struct LocationReference: Sendable, Hashable {
    /// The scheme in lowercase; nil for a relative reference.
    package let scheme: String?
    private let authority: ArraySlice<UInt8>?
    private let path: ArraySlice<UInt8>
    private let query: ArraySlice<UInt8>?
    private let fragment: ArraySlice<UInt8>?

    /// Parses a value that preserves the octets of the field (``OctetText``).
    ///
    /// Returns nil for an empty value: an empty `Location` would redirect to the same URL and counts as absent, as in browsers.
    package init?(_ location: String) {
        var bytes = OctetText.octets(of: location)[...]
        while let first = bytes.first, first <= 0x20 { bytes.removeFirst() }
        while let last = bytes.last, last <= 0x20 { bytes.removeLast() }
        guard !bytes.isEmpty else { return nil }
        self.init(bytes: bytes)
    }

    /// Splits at the first `#`, `?`, `//` and the scheme's colon, like the regular expression of RFC 3986, appendix B.
    private init(bytes: ArraySlice<UInt8>) {
        var rest = bytes
        if let colon = Self.schemeEnd(rest) {
            scheme = String(decoding: rest[..<colon].map(ASCII.lowercased), as: UTF8.self)
            rest = rest[(colon + 1)...]
        } else {
            scheme = nil
        }
        if let hash = rest.firstIndex(of: UInt8(ascii: "#")) {
            fragment = rest[(hash + 1)...]
            rest = rest[..<hash]
        } else {
            fragment = nil
        }
        if let mark = rest.firstIndex(of: UInt8(ascii: "?")) {
            query = rest[(mark + 1)...]
            rest = rest[..<mark]
        } else {
            query = nil
        }
        if rest.starts(with: [UInt8(ascii: "/"), UInt8(ascii: "/")]) {
            rest = rest.dropFirst(2)
            // Additional slashes have no effect in an HTTP URL: "special authority ignore slashes state" (WHATWG URL, section 4.4).
            if scheme == nil || scheme == "http" || scheme == "https" { rest = rest.drop { $0 == UInt8(ascii: "/") } }
            let slash = rest.firstIndex(of: UInt8(ascii: "/")) ?? rest.endIndex
            authority = rest[..<slash]
            rest = rest[slash...]
        } else {
            authority = nil
        }
        path = rest
    }

    /// Returns the resolved URL, or nil if the result is not a valid URL.
    ///
    /// A reference without a fragment inherits the fragment of the base (RFC 9110, section 10.2.2). Bytes that are not allowed in a
    /// URL are percent-encoded, each by itself, whatever the encoding of the others. The host is not encoded, because `URL` handles
    /// international names; a host that is not UTF-8 is rejected. A reference whose authority contains a space, a control character
    /// or a backslash is rejected: browsers interpret a backslash as a slash and would contact another host.
    package func resolved(against base: URL) -> URL? {
        guard !(authority ?? []).contains(where: { $0 <= 0x20 || $0 == 0x7F || $0 == UInt8(ascii: "\\") }) else { return nil }
        let base = LocationReference(bytes: Array(base.absoluteString.utf8)[...])
        var target: [UInt8] = Array((scheme ?? base.scheme ?? "").utf8)
        target += ":".utf8
        // "http:path" is relative if both schemes are equal: RFC 3986, section 5.2.2, permits this loophole, and browsers have it.
        let isAbsolute = authority != nil || scheme != nil && scheme != base.scheme
        if let authority = isAbsolute ? authority : base.authority {
            target += "//".utf8
            let host = authority.lastIndex(of: UInt8(ascii: "@")).map { $0 + 1 } ?? authority.startIndex
            target += Self.encoded(authority[..<host]) + authority[host...]
        }
        var query = query
        if isAbsolute {
            target += Self.encoded(path.first == UInt8(ascii: "/") ? Self.withoutDotSegments(path) : path)
        } else if path.isEmpty {
            target += Self.encoded(base.path)
            query = query ?? base.query
        } else if path.first == UInt8(ascii: "/") {
            target += Self.encoded(Self.withoutDotSegments(path))
        } else {
            target += Self.encoded(Self.withoutDotSegments(Self.merged(base.path, path)))
        }
        if let query { target += "?".utf8 + Self.encoded(query) }
        if let fragment = fragment ?? base.fragment { target += "#".utf8 + Self.encoded(fragment) }
        return String(validating: target, as: UTF8.self).flatMap { URL(string: $0) }
    }

    /// Returns the position of the colon after a scheme (RFC 3986, section 3.1), or nil.
    private static func schemeEnd(_ bytes: ArraySlice<UInt8>) -> Int? {
        for (index, byte) in zip(bytes.indices, bytes) {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): continue
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."):
                guard index > bytes.startIndex else { return nil }
            case UInt8(ascii: ":"): return index > bytes.startIndex ? index : nil
            default: return nil
            }
        }
        return nil
    }

    /// Merges a relative path with the path of the base (RFC 3986, section 5.2.3).
    private static func merged(_ base: ArraySlice<UInt8>, _ path: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        guard let slash = base.lastIndex(of: UInt8(ascii: "/")) else { return [UInt8(ascii: "/")] + path }
        return base[...slash] + path
    }

    /// Removes the dot segments of a path that is empty or begins with a slash (RFC 3986, section 5.2.4).
    private static func withoutDotSegments(_ path: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var kept: [ArraySlice<UInt8>] = []
        let segments = path.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).dropFirst()
        for (index, segment) in zip(segments.indices, segments) {
            let isLast = index == segments.endIndex - 1
            switch segment {
            case [UInt8(ascii: ".")]:
                if isLast { kept.append([]) }
            case [UInt8(ascii: "."), UInt8(ascii: ".")]:
                _ = kept.popLast()
                if isLast { kept.append([]) }
            default: kept.append(segment)
            }
        }
        return kept.reduce(into: []) { $0 += [UInt8(ascii: "/")] + $1 }
    }

    /// Percent-encodes every byte that is not allowed in a path, query or fragment, including a percent sign that starts no escape.
    private static func encoded(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count)
        for index in bytes.indices {
            let byte = bytes[index]
            let isEscape = byte == UInt8(ascii: "%") && PercentEncoding.escape(in: bytes, at: index) != nil
            if isEscape || isURLCharacter(byte) { result.append(byte) } else { PercentEncoding.append(byte, to: &result) }
        }
        return result
    }

    /// Whether a byte is a `pchar`, `/` or `?` (RFC 3986, sections 3.3 to 3.5), but not the percent sign.
    private static func isURLCharacter(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "@")...UInt8(ascii: "Z"), UInt8(ascii: "&")...UInt8(ascii: ";"),
            UInt8(ascii: "!"), UInt8(ascii: "$"), UInt8(ascii: "="), UInt8(ascii: "?"), UInt8(ascii: "_"), UInt8(ascii: "~"):
            true
        default: false
        }
    }
}
