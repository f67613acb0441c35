// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
package import HTTPWire

/// Matches stored responses with requests (RFC 9111, sections 2 and 4.1).
package enum CacheKey {
    /// The cache key of a URL: scheme and host in lowercase, the port if it is not the default, and the unmodified path and query.
    ///
    /// The fragment is omitted.
    ///
    /// The key includes the URL's user but not its password: a response for one user must not be reused for another, and keys are
    /// written to disk.
    package static func text(of url: URL) -> String {
        guard let target = try? RequestTarget(url), !target.isWebSocket else { return foreign(url) }
        return text(of: target)
    }

    package static func text(of target: RequestTarget) -> String {
        let origin = target.origin
        var host = origin.host.utf8.contains(UInt8(ascii: ":")) ? "[" + origin.host + "]" : origin.host
        if !origin.hasDefaultPort { host += ":" + String(origin.port) }
        if let user = target.user {
            let encoded = PercentEncoding.encoded(user.utf8) { ASCII.isTokenCharacter($0) && $0 != UInt8(ascii: "%") }
            host = encoded + "@" + host
        }
        return origin.scheme + "://" + host + target.path
    }

    /// The key of a URL with a scheme other than HTTP, as loaded by the app's protocol classes.
    private static func foreign(_ url: URL) -> String {
        let text = url.absoluteString.prefix { $0 != "#" }
        guard let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")) else { return String(text) }
        return text[..<colon].lowercased() + text[colon...]
    }

    /// Whether a request's credential and its fields listed in `Vary` allow the use of a stored response.
    ///
    /// A response obtained with a credential is only used for requests with the same credential, unless it is `public` and not
    /// `private`. `Authorization` is sealed both in the request and in the stored response; `Cookie` is not.
    package static func matches(_ stored: StoredResponse, requestHeaders: HeaderBlock) -> Bool {
        if let credential = stored.credential, requestHeaders.first(.authorization) != credential { return false }
        return matchesVary(stored, requestHeaders: requestHeaders)
    }

    /// Whether a request's fields listed in `Vary` match those of the request that a response was stored for (section 4.1).
    ///
    /// "The header fields from two requests are defined to match if and only if those in the first request can be transformed
    /// to those in the second request by applying any of: adding or removing whitespace, where allowed in the header field's
    /// syntax; combining multiple header field lines with the same field name; normalizing both header field values in a way
    /// that is known to have identical semantics". In the fields for content negotiation, case is ignored. The order of members
    /// matters, because some servers evaluate it.
    package static func matchesVary(_ stored: StoredResponse, requestHeaders: HeaderBlock) -> Bool {
        guard stored.headers.contains(.vary) else { return true }
        for name in varyNames(of: stored.headers) {
            // "A stored response with a Vary header field value containing a member "*" always fails to match."
            guard name != "*", ASCII.isToken(name) else { return false }
            if isSameLine(stored.varyFields, requestHeaders, name) { continue }
            // "If … a header field is absent from a request, it can only match another request if it is also absent there."
            guard normalized(stored.varyFields, name) == normalized(requestHeaders, name) else { return false }
        }
        return true
    }

    /// The values of the request fields listed in a response's `Vary`.
    ///
    /// Fields that the request does not contain are omitted.
    package static func varyFields(of headers: HeaderBlock, requestHeaders: HeaderBlock) -> HeaderBlock {
        var kept = HeaderBlock()
        guard headers.contains(.vary) else { return kept }
        for name in varyNames(of: headers) where !kept.contains(name) {
            if let value = requestHeaders.joined(name) { kept.append(name, value) }
        }
        return kept
    }

    private static func varyNames(of headers: HeaderBlock) -> [String] {
        var names: [String] = []
        var next = headers.index(of: .vary)
        while let index = next {
            for member in headers.bytes[headers.lines[index].value].split(separator: UInt8(ascii: ",")) {
                let name = ASCII.trimmed(member)
                if !name.isEmpty { names.append(String(decoding: name, as: UTF8.self)) }
            }
            next = headers.index(of: .vary, from: index + 1)
        }
        return names
    }

    /// Whether a field appears once with the same bytes in both blocks, or in neither of them.
    private static func isSameLine(_ left: HeaderBlock, _ right: HeaderBlock, _ name: String) -> Bool {
        guard let a = left.index(of: name), let b = right.index(of: name) else {
            return !left.contains(name) && !right.contains(name)
        }
        return left.index(of: name, from: a + 1) == nil && right.index(of: name, from: b + 1) == nil
            && left.bytes[left.lines[a].value] == right.bytes[right.lines[b].value]
    }

    /// The members of a field without surrounding whitespace, or nil if the field is absent.
    private static func normalized(_ headers: HeaderBlock, _ name: String) -> [[UInt8]]? {
        guard let joined = headers.joined(name) else { return nil }
        let isNegotiation = ["accept", "accept-charset", "accept-encoding", "accept-language"].contains(name.lowercased())
        return joined.utf8.split(separator: UInt8(ascii: ",")).compactMap { member in
            let trimmed = ASCII.trimmed(Array(member)[...])
            guard !trimmed.isEmpty else { return nil }
            return isNegotiation ? trimmed.map(ASCII.lowercased) : Array(trimmed)
        }
    }
}
