//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import HTTPWire

extension Cookie {
    /// Judges what a server said by itself, without regard to the cookies kept already (RFC 6265bis, section 5.7, steps 5 to 22).
    ///
    /// Nil where the RFC says "abort these steps and ignore the cookie entirely".
    ///
    /// - Parameters:
    ///   - received: What the server said.
    ///   - request: What it answered.
    ///   - treatsDefaultAsLax: See ``CookieJar/treatsDefaultAsLax``.
    ///   - isHTTP: False for an API that has no business with `HttpOnly`.
    ///   - now: The time of the response.
    package init?(
        _ received: SetCookie,
        from request: CookieRequest,
        treatsDefaultAsLax: Bool = false,
        isHTTP: Bool = true,
        now: Double
    ) {
        guard let scope = Self.scope(received.domain, request.host) else { return nil }
        self.init(
            name: received.name,
            value: received.value,
            domain: scope.domain,
            isHostOnly: scope.isHostOnly,
            path: received.path ?? Self.defaultPath(ofPath: request.path),
            expires: Self.expiry(received, now),
            creation: now,
            isSecure: received.isSecure,
            isHTTPOnly: received.isHTTPOnly,
            sameSite: received.sameSite,
            partition: received.isPartitioned ? request.partition : nil
        )
        guard request.isSecure || !isSecure, isHTTP || !isHTTPOnly else { return nil }
        guard request.maySet(sameSite, treatsDefaultAsLax: treatsDefaultAsLax) else { return nil }
        // "SameSite=None" and CHIPS both ask for "Secure".
        guard isSecure || sameSite != SetCookie.SameSite.none && !received.isPartitioned else { return nil }
        // The newest text has such a cookie fail to parse: a URL's path is ASCII, so it would go nowhere.
        guard path.utf8.allSatisfy({ $0 < 0x80 }), meetsPrefix(hasRootPath: received.path == "/") else { return nil }
    }

    /// Steps 7 to 10: which hosts a cookie is for, or nil where it may not be for them.
    private static func scope(_ domain: String?, _ host: String) -> (domain: String, isHostOnly: Bool)? {
        guard let domain else { return (host, true) }
        guard domain.utf8.first != UInt8(ascii: "."), domain.utf8.allSatisfy({ $0 < 0x80 }) else { return nil }
        if areSame(domain, host) { return (host, staysWithItsHost(host)) }
        return mayReach(domain, from: host) ? (domain, false) : nil
    }

    /// Whether a host may set cookies for a whole domain above it: step 9, and that the domain has one owner.
    ///
    /// Where a rule is a wildcard, `*.kobe.jp`, the name above is no suffix, and yet those below have several owners.
    package static func mayReach(_ domain: String, from host: String) -> Bool {
        guard domainMatches(host, domain), let start = PublicSuffixList.registrableStart(of: host) else { return false }
        return host.utf8.count - domain.utf8.count <= start
    }

    /// Whether a cookie for this domain, set by the very host, goes to that host alone.
    ///
    /// A public suffix may have cookies of its own, and an address reaches nothing but itself, with or without the attribute.
    package static func staysWithItsHost(_ domain: String) -> Bool {
        isAddress(domain) || PublicSuffixList.isPublicSuffix(domain)
    }

    /// Step 6: `Max-Age` goes before `Expires`, and neither beyond 400 days (section 5.5).
    private static func expiry(_ received: SetCookie, _ now: Double) -> Double? {
        if let maxAge = received.maxAge {
            return maxAge <= 0 ? -Double.greatestFiniteMagnitude : now + min(Double(maxAge), maximumLifetime)
        }
        return received.expires.map { min($0, now + maximumLifetime) }
    }

    /// Steps 20 to 22: what the prefixes promise, in any case, also where a nameless value would look like them.
    ///
    /// `__Http-` and `__Host-Http-` are of the text that follows 6265bis (draft-ietf-httpbis-layered-cookies, section 5.4.3, steps
    /// 13 to 17). The argument tells whether the path is `/` and was given as such.
    func meetsPrefix(hasRootPath: Bool) -> Bool {
        let text = name.isEmpty ? value : name
        // All prefixes begin so, and few names do.
        guard text.utf8.starts(with: "__".utf8) else { return true }
        let isHost = Self.begins(text, "__host-")
        let isHTTP = Self.begins(text, "__http-") || Self.begins(text, "__host-http-")
        guard isHost || isHTTP || Self.begins(text, "__secure-") else { return true }
        guard !name.isEmpty, isSecure else { return false }
        return (!isHost || isHostOnly && hasRootPath) && (!isHTTP || isHTTPOnly)
    }

    private static func begins(_ text: String, _ prefix: StaticString) -> Bool {
        var position = 0
        for byte in text.utf8 {
            guard position < prefix.utf8CodeUnitCount else { break }
            guard ASCII.lowercased(byte) == prefix.utf8Start[position] else { return false }
            position += 1
        }
        return position == prefix.utf8CodeUnitCount
    }

    /// Whether a cookie, wherever it comes from, can be kept and sent without harm.
    ///
    /// Steps 2 to 4, and no more than the one cookie in what is sent: an app can write `;` where a server cannot.
    var isWellFormed: Bool {
        1...CookieJar.maximumBytes ~= OctetText.octets(of: name).count + OctetText.octets(of: value).count
            && !name.utf8.contains { SetCookie.isControl($0) || $0 == UInt8(ascii: ";") || $0 == UInt8(ascii: "=") }
            && !value.utf8.contains { SetCookie.isControl($0) || $0 == UInt8(ascii: ";") }
            && !domain.isEmpty && !domain.utf8.contains { SetCookie.isControl($0) || ASCII.isWhitespace($0) }
            && path.utf8.first == UInt8(ascii: "/") && !path.utf8.contains(where: SetCookie.isControl)
            && creation.isFinite && lastAccess.isFinite && expires?.isNaN != true
    }
}
