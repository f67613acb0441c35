// SPDX-License-Identifier: Apache-2.0

import HTTPWire

extension Cookie {
    /// Whether the cookie is for a host: the cookie's own host, or a host that domain-matches (RFC 6265bis, section 5.1.3).
    package func matches(domain host: String) -> Bool {
        isHostOnly ? Self.areEqual(host, domain) : Self.domainMatches(host, domain)
    }

    /// Whether a request path path-matches the cookie's path (section 5.1.4).
    package func matches(path: String) -> Bool {
        Self.pathMatches(path, self.path)
    }

    /// Returns the default path of a cookie: the request path up to, but not including, the last slash (section 5.1.4).
    package static func defaultPath(ofPath path: String) -> String {
        let bytes = path.utf8
        guard bytes.first == UInt8(ascii: "/"), let last = bytes.lastIndex(of: UInt8(ascii: "/")), last > bytes.startIndex else {
            return "/"
        }
        return String(path[..<last])
    }

    /// Whether a host equals a domain or is below it: "The domain string is a suffix of the string", at a dot, and "the string is a
    /// host name (i.e., not an IP address)".
    static func domainMatches(_ host: String, _ domain: String) -> Bool {
        guard host.utf8.count > domain.utf8.count else { return areEqual(host, domain) }
        let rest = host.utf8.dropLast(domain.utf8.count)
        return rest.last == UInt8(ascii: ".") && host.utf8[rest.endIndex...].elementsEqual(domain.utf8) && !domain.isEmpty
            && !HostName.isAddress(host)
    }

    static func pathMatches(_ path: String, _ cookiePath: String) -> Bool {
        let count = cookiePath.utf8.count
        let path = path.utf8
        let cookiePath = cookiePath.utf8
        guard path.count >= count, path.starts(with: cookiePath) else { return false }
        return path.count == count || cookiePath.last == UInt8(ascii: "/") || path.dropFirst(count).first == UInt8(ascii: "/")
    }

    /// Compares octets: `String` treats canonically equivalent texts as equal, whereas the RFC does not.
    static func areEqual(_ one: String, _ other: String) -> Bool {
        one.utf8.count == other.utf8.count && one.utf8.elementsEqual(other.utf8)
    }

    static func areEqual(_ one: String?, _ other: String?) -> Bool {
        switch (one, other) {
        case (nil, nil): true
        case (let one?, let other?): areEqual(one, other)
        case (nil, _), (_, nil): false
        }
    }
}

extension Cookie.Key {
    package static func == (one: Self, other: Self) -> Bool {
        Cookie.areEqual(one.name, other.name) && Cookie.areEqual(one.domain, other.domain)
            && Cookie.areEqual(one.path, other.path)
            && one.isHostOnly == other.isHostOnly && Cookie.areEqual(one.partition, other.partition)
    }

    package func hash(into hasher: inout Hasher) {
        for text in [name, domain, path] {
            for byte in text.utf8 { hasher.combine(byte) }
            hasher.combine(UInt8(0xFF))
        }
    }
}
