// SPDX-License-Identifier: Apache-2.0

import HTTPWire

extension Cookie {
    /// Creates a cookie from a `Set-Cookie` value, independent of the stored cookies (RFC 6265bis, section 5.7, steps 5 to 22).
    ///
    /// Returns nil where the RFC says "abort these steps and ignore the cookie entirely".
    ///
    /// - Parameters:
    ///   - received: The parsed `Set-Cookie` value.
    ///   - request: The request that the response belongs to.
    ///   - treatsDefaultAsLax: See ``CookieJar/treatsDefaultAsLax``.
    ///   - isHTTP: False for an API that must not set `HttpOnly` cookies.
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
        // Both "SameSite=None" and CHIPS require "Secure".
        guard isSecure || sameSite != SetCookie.SameSite.none && !received.isPartitioned else { return nil }
        // The latest draft rejects a cookie with a non-ASCII path: a URL's path is ASCII, so the cookie would never be sent.
        guard path.utf8.allSatisfy({ $0 < 0x80 }), meetsPrefix(hasRootPath: received.path == "/") else { return nil }
    }

    /// Steps 7 to 10: returns the hosts that a cookie is for, or nil if the cookie must not be set for these hosts.
    private static func scope(_ domain: String?, _ host: String) -> (domain: String, isHostOnly: Bool)? {
        guard let domain else { return (host, true) }
        guard domain.utf8.first != UInt8(ascii: "."), domain.utf8.allSatisfy({ $0 < 0x80 }) else { return nil }
        if areEqual(domain, host) { return (host, isAlwaysHostOnly(host)) }
        return maySetDomain(domain, from: host) ? (domain, false) : nil
    }

    /// Whether a host may set cookies for a parent domain: step 9, and a check that the domain has a single owner.
    ///
    /// For a wildcard rule such as `*.kobe.jp`, the parent name itself is not a public suffix, but the names below it have
    /// different owners.
    package static func maySetDomain(_ domain: String, from host: String) -> Bool {
        guard domainMatches(host, domain), let start = PublicSuffixList.registrableStart(of: host) else { return false }
        return host.utf8.count - domain.utf8.count <= start
    }

    /// Whether a cookie that a host sets for its own name is only sent to this host.
    ///
    /// A public suffix may have its own cookies, and an address only matches itself. In both cases the `Domain` attribute has no
    /// effect.
    package static func isAlwaysHostOnly(_ domain: String) -> Bool {
        HostName.isAddress(domain) || PublicSuffixList.isPublicSuffix(domain)
    }

    /// Step 6: returns the expiry time; `Max-Age` has precedence over `Expires`.
    ///
    /// Both attributes are limited to 400 days (section 5.5).
    private static func expiry(_ received: SetCookie, _ now: Double) -> Double? {
        if let maxAge = received.maxAge {
            return maxAge <= 0 ? -Double.greatestFiniteMagnitude : now + min(Double(maxAge), maximumLifetime)
        }
        return received.expires.map { min($0, now + maximumLifetime) }
    }

    /// Steps 20 to 22: whether the cookie meets the requirements of its name prefix.
    ///
    /// Prefixes are case-insensitive and also apply to the value of a nameless cookie.
    ///
    /// `__Http-` and `__Host-Http-` are from the successor of 6265bis (draft-ietf-httpbis-layered-cookies, section 5.4.3, steps 13
    /// to 17). `hasRootPath` says whether the path is `/` and was set explicitly.
    func meetsPrefix(hasRootPath: Bool) -> Bool {
        let text = name.isEmpty ? value : name
        // All prefixes start with two underscores, and few names do.
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

    /// Whether a cookie from any source can be stored and sent safely.
    ///
    /// Performs the checks of steps 2 to 4, and checks that the cookie cannot be read as several cookies: a value from an app can
    /// contain `;`, whereas a value from a server cannot.
    var isWellFormed: Bool {
        1...CookieJar.maximumBytes ~= OctetText.octets(of: name).count + OctetText.octets(of: value).count
            && !name.utf8.contains { SetCookie.isControl($0) || $0 == UInt8(ascii: ";") || $0 == UInt8(ascii: "=") }
            && !value.utf8.contains { SetCookie.isControl($0) || $0 == UInt8(ascii: ";") }
            && !domain.isEmpty && !domain.utf8.contains { SetCookie.isControl($0) || ASCII.isWhitespace($0) }
            && path.utf8.first == UInt8(ascii: "/") && !path.utf8.contains(where: SetCookie.isControl)
            && creation.isFinite && lastAccess.isFinite && expires?.isNaN != true
    }
}
