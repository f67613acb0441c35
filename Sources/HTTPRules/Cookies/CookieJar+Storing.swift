// SPDX-License-Identifier: Apache-2.0

import HTTPWire

extension CookieJar {
    /// Stores the cookies of one response, each field line separately (RFC 6265bis, section 5.7).
    ///
    /// A response may set at most ``maximumPerResponse`` cookies; the rest is ignored.
    ///
    /// - Parameters:
    ///   - fields: The values of the response's `Set-Cookie` lines.
    ///   - request: The request that the response belongs to.
    ///   - policy: Which cookies are accepted (section 5.3).
    ///   - isHTTP: False for an API that must not set `HttpOnly` cookies.
    ///   - now: The time of the response.
    /// - Returns: The changes, including evictions.
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

    /// Stores a cookie that the app created.
    ///
    /// The limits and the rules for prefixes and public suffixes apply to the cookie as well. The limit of 400 days does not,
    /// because it is for servers. Setting an expired cookie removes the stored cookie with the same key.
    package mutating func set(_ cookie: Cookie, now: Double) -> [Change] {
        guard cookie.isWellFormed, cookie.meetsPrefix(hasRootPath: cookie.path == "/"),
            cookie.isHostOnly || !PublicSuffixList.isPublicSuffix(cookie.domain)
        else { return [] }
        var cookie = cookie
        cookie.lastAccess = now
        return insert(cookie, isHTTP: true, now: now)
    }

    /// Performs steps 23 and 24 of section 5.7 and removes excess cookies.
    private mutating func insert(_ cookie: Cookie, isHTTP: Bool, now: Double) -> [Change] {
        var cookie = cookie
        let old = location(of: cookie.key)
        if let old {
            let oldCookie = groups[old.group].entries[old.position].cookie
            guard isHTTP || !oldCookie.isHTTPOnly else { return [] }
            // An expired cookie counts as removed, although it is still stored.
            if !oldCookie.isExpired(now) { cookie.creation = oldCookie.creation }
            var same = oldCookie
            same.lastAccess = cookie.lastAccess
            if same == cookie, Cookie.areEqual(same.value, cookie.value), !cookie.isExpired(now) {
                groups[old.group].entries[old.position].lastAccess = cookie.lastAccess
                return []
            }
        }
        guard !cookie.isExpired(now) else {
            if let old { return [remove(at: old.position, of: old.group)] }
            return isHTTP ? [.absent(cookie.key)] : []
        }
        upsert(cookie)
        return [.set(cookie)] + removeExcess(ofDomain: cookie.domain, now: now)
    }

    /// "Leave secure cookies alone" (step 16): whether a cookie from an insecure origin would hide a `Secure` cookie.
    ///
    /// An expired cookie counts as removed, although it is still stored.
    private func overlaysSecure(_ cookie: Cookie, now: Double) -> Bool {
        for group in groups where isRelated(group.domain, cookie.domain) {
            let isHidden = group.entries.contains { entry in
                entry.record.cookie.isSecure && !entry.record.cookie.isExpired(now)
                    && Cookie.areEqual(entry.record.cookie.name, cookie.name)
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

extension CookieJar {
    /// "Removes excess cookies" (RFC 6265bis, section 5.7): first expired cookies, then cookies of a domain with too many cookies,
    /// then any cookies.
    ///
    /// In each case, the least recently used cookies are removed first.
    mutating func removeExcess(ofDomain domain: String, now: Double) -> [Change] {
        guard let group = location(of: domain[...]),
            groups[group].entries.count > Self.maximumPerDomain || count > Self.maximumCount
        else { return [] }
        var changes = removeExpired(now: now)
        while groups[group].entries.count > Self.maximumPerDomain { changes.append(evictOne(of: group)) }
        return changes + enforceTotal()
    }

    /// Removes a cookie of a domain with too many cookies, preferably a cookie without `Secure`.
    mutating func evictOne(of group: Int) -> Change {
        let entries = groups[group].entries
        let position = entries.indices.min { one, other in
            let (isSecure, isOtherSecure) = (entries[one].record.cookie.isSecure, entries[other].record.cookie.isSecure)
            return isSecure != isOtherSecure ? isOtherSecure : entries[one].isLessRecentlyUsed(than: entries[other])
        }
        return remove(at: position ?? 0, of: group)
    }

    /// Removes the least recently used cookies of all domains until at most ``maximumCount`` are left.
    @discardableResult
    mutating func enforceTotal() -> [Change] {
        let excess = count - Self.maximumCount
        // The common case after storing a cookie: the jar contains one cookie too many.
        if excess <= 1 { return excess < 1 ? [] : leastRecentlyUsed().map { [remove(at: $0.position, of: $0.group)] } ?? [] }
        return groups.flatMap(\.entries).sorted { $0.isLessRecentlyUsed(than: $1) }.prefix(excess).flatMap {
            remove($0.record.cookie.key)
        }
    }

    private func leastRecentlyUsed() -> (group: Int, position: Int)? {
        var found: (group: Int, position: Int, entry: Entry)?
        for group in groups.indices {
            for position in groups[group].entries.indices {
                let entry = groups[group].entries[position]
                if found.map({ entry.isLessRecentlyUsed(than: $0.entry) }) ?? true { found = (group, position, entry) }
            }
        }
        return found.map { ($0.group, $0.position) }
    }
}
