// SPDX-License-Identifier: Apache-2.0

/// The cookies of one storage, as a value type (RFC 6265bis, sections 5.7 and 5.8).
///
/// Cookies are grouped by domain, and each group is sorted in the order in which its cookies are sent. A lookup only visits the
/// groups of the host and its parent domains.
package struct CookieJar: Sendable {
    /// A change to one cookie, which the jar's owner applies to other copies of the jar.
    package enum Change: Hashable, Sendable {
        case set(Cookie)
        case removed(Cookie.Key)
        /// The cookie to remove was not in this jar. Another copy may contain the cookie.
        case absent(Cookie.Key)
    }

    /// The cookies of one domain, sorted by ``Entry/precedes(_:)``.
    struct DomainGroup: Sendable {
        let domain: String
        let isPublicSuffix: Bool
        var entries: [Entry] = []
    }

    /// The maximum number of cookies; section 6.1 requires at least 3000.
    package static let maximumCount = 3000
    /// The maximum number of cookies per domain: 180 as in Chrome; section 6.1 requires at least 50.
    package static let maximumPerDomain = 180
    /// The maximum number of cookies that a response can set, as in curl.
    package static let maximumPerResponse = 50
    /// The maximum size of name and value together (section 5.6).
    package static let maximumBytes = 4096
    package static let maximumAttributeBytes = 1024

    /// Whether a cookie without `SameSite` is treated as `Lax`.
    ///
    /// The default is false. This differs from section 5.6.7 ("Default" is enforced as `Lax`), because Apple's `always` policy
    /// accepts all cookies, and because requests are made by the app rather than by a web page.
    package var treatsDefaultAsLax = false
    package private(set) var count = 0

    var groups: [DomainGroup] = []
    /// Maps a domain to the index of its group.
    ///
    /// The key is a `Substring`, so that a parent domain is looked up without a copy.
    private(set) var groupIndices: [Substring: Int] = [:]
    private var emptyGroups: [Int] = []
    private var nextSequence = 0

    package init() {}

    /// Creates a jar from stored cookies.
    ///
    /// Omits cookies that are no longer allowed or exceed the limits.
    package init(_ cookies: [Cookie]) {
        for cookie in cookies { upsertIfAllowed(cookie) }
        enforceTotal()
    }

    /// All cookies in the order of their creation.
    package var all: [Cookie] {
        groups.flatMap(\.entries).sorted { one, other in
            let (creation, otherCreation) = (one.record.cookie.creation, other.record.cookie.creation)
            return creation != otherCreation ? creation < otherCreation : one.sequence < other.sequence
        }.map(\.cookie)
    }

    // MARK: Changing

    package mutating func remove(_ key: Cookie.Key) -> [Change] {
        guard let (group, position) = location(of: key) else { return [] }
        return [remove(at: position, of: group)]
    }

    package mutating func removeAll() -> [Change] {
        removeAll { _ in true }
    }

    package mutating func removeExpired(now: Double) -> [Change] {
        removeAll { $0.expires <= now }
    }

    package mutating func removeCookies(createdAfter date: Double) -> [Change] {
        removeAll { $0.record.cookie.creation > date }
    }

    /// Applies changes from another copy.
    ///
    /// The cookies are not validated again, but the limits apply.
    package mutating func apply(_ changes: [Change]) {
        for change in changes {
            switch change {
            case .set(let cookie): upsertIfAllowed(cookie)
            case .removed(let key), .absent(let key): _ = remove(key)
            }
        }
        enforceTotal()
    }

    // MARK: Groups

    func location(of domain: Substring) -> Int? { groupIndices[domain] }

    func location(of key: Cookie.Key) -> (group: Int, position: Int)? {
        guard let group = groupIndices[key.domain[...]] else { return nil }
        let position = groups[group].entries.firstIndex { $0.hasKey(key) }
        return position.map { (group, $0) }
    }

    /// Adds a cookie from a file or another process, unless it is malformed or its domain has become a public suffix: "avoid
    /// retrieving these invalid cookies" (section 5.8.3).
    private mutating func upsertIfAllowed(_ cookie: Cookie) {
        guard cookie.isWellFormed else { return }
        let group = findOrCreateGroup(of: cookie.domain)
        if cookie.isHostOnly || !groups[group].isPublicSuffix { upsert(cookie, in: group) }
        if groups[group].entries.count > Self.maximumPerDomain { _ = evictOne(of: group) }
        closeIfEmpty(group)
    }

    /// Inserts a cookie at its position and replaces a stored cookie with the same key.
    mutating func upsert(_ cookie: Cookie, in group: Int? = nil) {
        let old = location(of: cookie.key)
        let group = group ?? findOrCreateGroup(of: cookie.domain)
        var sequence = nextSequence
        if let old {
            sequence = groups[group].entries.remove(at: old.position).sequence
        } else {
            nextSequence += 1
            count += 1
        }
        let entry = Entry(cookie, sequence: sequence)
        let position = groups[group].entries.lastIndex { !entry.precedes($0) }
        groups[group].entries.insert(entry, at: position.map { $0 + 1 } ?? 0)
    }

    @discardableResult
    mutating func remove(at position: Int, of group: Int) -> Change {
        let key = groups[group].entries.remove(at: position).record.cookie.key
        count -= 1
        closeIfEmpty(group)
        return .removed(key)
    }

    private mutating func removeAll(where isUnwanted: (Entry) -> Bool) -> [Change] {
        var changes: [Change] = []
        for group in groups.indices {
            let unwanted = groups[group].entries.filter(isUnwanted)
            guard !unwanted.isEmpty else { continue }
            changes += unwanted.map { .removed($0.record.cookie.key) }
            groups[group].entries.removeAll(where: isUnwanted)
            count -= unwanted.count
            closeIfEmpty(group)
        }
        return changes
    }

    private mutating func findOrCreateGroup(of domain: String) -> Int {
        if let group = groupIndices[domain[...]] { return group }
        let new = DomainGroup(domain: domain, isPublicSuffix: PublicSuffixList.isPublicSuffix(domain))
        let group = emptyGroups.popLast() ?? groups.count
        if group < groups.count { groups[group] = new } else { groups.append(new) }
        groupIndices[domain[...]] = group
        return group
    }

    private mutating func closeIfEmpty(_ group: Int) {
        guard groups[group].entries.isEmpty, groupIndices.removeValue(forKey: groups[group].domain[...]) != nil else { return }
        emptyGroups.append(group)
    }
}

extension CookieJar {
    /// The immutable part of a stored cookie.
    ///
    /// A record is a reference, so that copying and comparing entries is cheap.
    final class Record: Sendable {
        /// The cookie as it was stored: only ``Entry/lastAccess`` is kept current, not the cookie's own `lastAccess`.
        let cookie: Cookie
        let pathLength: Int
        /// The text to send (section 5.8.3, step 4): the name and "=" unless the name is empty, then the value.
        let pair: String

        init(_ cookie: Cookie) {
            self.cookie = cookie
            pathLength = cookie.path.utf8.count
            pair = cookie.name.isEmpty ? cookie.value : cookie.name + "=" + cookie.value
        }
    }

    /// A cookie in a group.
    struct Entry: Sendable {
        let record: Record
        /// The number of cookies stored before this one.
        ///
        /// The number orders cookies created at the same time.
        let sequence: Int
        /// The expiry time; infinity for a session cookie.
        let expires: Double
        var lastAccess: Double

        init(_ cookie: Cookie, sequence: Int) {
            record = Record(cookie)
            self.sequence = sequence
            expires = cookie.expires ?? .infinity
            lastAccess = cookie.lastAccess
        }

        var cookie: Cookie {
            var cookie = record.cookie
            cookie.lastAccess = lastAccess
            return cookie
        }

        /// Whether the cookie is sent before another (section 5.8.3).
        ///
        /// "Cookies with longer paths are listed before cookies with shorter paths". If the paths have the same length, the cookie
        /// that was created earlier is sent first.
        func precedes(_ other: Entry) -> Bool {
            if record.pathLength != other.record.pathLength { return record.pathLength > other.record.pathLength }
            let (creation, otherCreation) = (record.cookie.creation, other.record.cookie.creation)
            return creation != otherCreation ? creation < otherCreation : sequence < other.sequence
        }

        func isLessRecentlyUsed(than other: Entry) -> Bool {
            lastAccess != other.lastAccess ? lastAccess < other.lastAccess : sequence < other.sequence
        }

        func hasKey(_ key: Cookie.Key) -> Bool {
            record.cookie.isHostOnly == key.isHostOnly && Cookie.areEqual(record.cookie.name, key.name)
                && Cookie.areEqual(record.cookie.path, key.path) && Cookie.areEqual(record.cookie.partition, key.partition)
        }

        /// Whether the cookie is sent with a request to a matching host (section 5.8.3, step 1).
        func isSent(with request: CookieRequest, treatsDefaultAsLax: Bool, now: Double) -> Bool {
            (request.isSecure || !record.cookie.isSecure) && expires > now
                && (record.pathLength == 1 || Cookie.pathMatches(request.path, record.cookie.path))
                && request.maySend(record.cookie.sameSite, treatsDefaultAsLax: treatsDefaultAsLax)
                && (record.cookie.partition == nil || Cookie.areEqual(record.cookie.partition, request.partition))
                && (record.cookie.ports.isEmpty || record.cookie.ports.contains(request.port))
        }
    }
}
