//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import HTTPWire

extension CookieJar {
    /// Judges and keeps what one response set, each field line by itself (RFC 6265bis, section 5.7).
    ///
    /// A response may set ``maximumPerResponse`` cookies; what it sets beyond is ignored.
    ///
    /// - Parameters:
    ///   - fields: The values of the response's `Set-Cookie` lines.
    ///   - request: What it answers.
    ///   - policy: Whose cookies are kept (section 5.3).
    ///   - isHTTP: False for an API that has no business with `HttpOnly`.
    ///   - now: The time of the response.
    /// - Returns: What changed, evictions included.
    package mutating func store(
        _ fields: [String],
        from request: CookieRequest,
        policy: CookieAcceptPolicy,
        isHTTP: Bool = true,
        now: Double
    ) -> [Change] {
        switch policy {
        case .never: return []
        case .onlyFromMainDocumentDomain where request.isThirdParty: return []
        case .onlyFromMainDocumentDomain, .always: break
        }
        var changes: [Change] = []
        var accepted = 0
        for field in fields where accepted < Self.maximumPerResponse {
            guard let received = SetCookie(field),
                let cookie = Cookie(received, from: request, treatsDefaultAsLax: treatsDefaultAsLax, isHTTP: isHTTP, now: now),
                cookie.isWellFormed, request.isSecure || cookie.isSecure || !overlaysSecure(cookie, now: now)
            else { continue }
            accepted += 1
            changes += insert(cookie, isHTTP: isHTTP, now: now)
        }
        return changes
    }

    /// Keeps a cookie that the app made.
    ///
    /// The limits, the prefixes and the public suffixes hold for it too; the 400 days, which bind servers, do not. An expired one
    /// removes the one it would replace.
    package mutating func set(_ cookie: Cookie, now: Double) -> [Change] {
        guard cookie.isWellFormed, cookie.meetsPrefix(hasRootPath: cookie.path == "/"),
            cookie.isHostOnly || !PublicSuffixList.isPublicSuffix(cookie.domain)
        else { return [] }
        var cookie = cookie
        cookie.lastAccess = now
        return insert(cookie, isHTTP: true, now: now)
    }

    /// Steps 23 and 24, and the evictions.
    private mutating func insert(_ cookie: Cookie, isHTTP: Bool, now: Double) -> [Change] {
        var cookie = cookie
        let old = place(of: cookie.key)
        if let old {
            let oldCookie = drawers[old.drawer].entries[old.position].cookie
            guard isHTTP || !oldCookie.isHTTPOnly else { return [] }
            // An expired one is gone, although it still lies here.
            if !oldCookie.isExpired(now) { cookie.creation = oldCookie.creation }
            var same = oldCookie
            same.lastAccess = cookie.lastAccess
            if same == cookie, Cookie.areSame(same.value, cookie.value), !cookie.isExpired(now) {
                drawers[old.drawer].entries[old.position].lastAccess = cookie.lastAccess
                return []
            }
        }
        guard !cookie.isExpired(now) else {
            return old.map { [remove(at: $0.position, of: $0.drawer)] } ?? []
        }
        keep(cookie)
        return [.set(cookie)] + removeExcess(ofDomain: cookie.domain, now: now)
    }

    /// "Leave secure cookies alone" (step 16): whether a cookie from an insecure origin would hide one that is `Secure`.
    ///
    /// One that has expired is gone, although it still lies here.
    private func overlaysSecure(_ cookie: Cookie, now: Double) -> Bool {
        for drawer in drawers where isRelated(drawer.domain, cookie.domain) {
            let isHidden = drawer.entries.contains { entry in
                entry.record.cookie.isSecure && !entry.record.cookie.isExpired(now)
                    && Cookie.areSame(entry.record.cookie.name, cookie.name)
                    && Cookie.pathMatches(cookie.path, entry.record.cookie.path)
            }
            if isHidden { return true }
        }
        return false
    }

    private func isRelated(_ one: String, _ other: String) -> Bool {
        Cookie.domainMatches(one, other) || Cookie.domainMatches(other, one)
    }
}
