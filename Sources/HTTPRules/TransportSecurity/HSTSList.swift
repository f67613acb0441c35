// SPDX-License-Identifier: Apache-2.0

/// The hosts that requested to be reached only over TLS, with their policies (RFC 6797, section 8).
package struct HSTSList: Sendable {
    /// A "Known HSTS Host" (section 8.1).
    package struct Entry: Hashable, Sendable {
        package var expires: Double
        package var includesSubdomains: Bool
        /// The time when the host became known.
        ///
        /// Renewing the entry does not change this time.
        package var created: Double

        package init(expires: Double, includesSubdomains: Bool, created: Double) {
            self.expires = expires
            self.includesSubdomains = includesSubdomains
            self.created = created
        }
    }

    /// A change that must be applied to other copies of the list.
    package enum Change: Hashable, Sendable {
        case set(host: String, Entry)
        case removed(host: String)
    }

    /// The maximum number of hosts of one registrable domain.
    ///
    /// When the number is exceeded, the host whose entry expires first is removed.
    ///
    /// Without a limit, a site with a wildcard certificate could exhaust the memory. The limit is per domain, because with a common
    /// limit one site could evict the entries of another.
    package static let maximumPerDomain = 1000

    /// The entries by host, in lowercase and without a trailing dot.
    package private(set) var entries: [String: Entry]

    package init() {
        entries = [:]
    }

    /// Creates a list from stored entries.
    ///
    /// Invalid hosts are omitted.
    package init(_ entries: [String: Entry]) {
        self.entries = entries.filter { HostName.normalized($0.key) == $0.key && $0.value.expires.isFinite }
    }

    /// Applies the first `Strict-Transport-Security` field of a response.
    ///
    /// - Parameters:
    ///   - field: The value of the field.
    ///   - host: The host that sent the response. Addresses are never added (section 8.1.1), and `example.com.` is treated as
    ///     `example.com`.
    ///   - isVerified: Whether the response was received over TLS "with no underlying secure transport errors or warnings";
    ///     otherwise "the UA MUST ignore any present STS header field(s)" (section 8.1).
    ///   - now: The time of the response.
    /// - Returns: The changes; empty if the policy is unchanged (``rounded(_:now:)``).
    package mutating func note(_ field: String, host: String, isVerified: Bool, now: Double) -> [Change] {
        guard isVerified, let host = HostName.normalized(host), let policy = HSTSPolicy(field) else { return [] }
        // "A max-age value of zero … signals the UA to cease regarding the host as a Known HSTS Host" (section 6.1.1).
        guard policy.maxAge > 0 else { return remove([host]) }
        let known = entries[host].flatMap { $0.expires > now ? $0 : nil }
        let entry = Entry(
            expires: now + Double(policy.maxAge),
            includesSubdomains: policy.includesSubdomains,
            created: known?.created ?? now
        )
        if let known, known.includesSubdomains == entry.includesSubdomains,
            Self.rounded(known.expires, now: now) == Self.rounded(entry.expires, now: now)
        {
            return []
        }
        var changes: [Change] = []
        if entries[host] == nil { changes = makeRoom(for: host) }
        entries[host] = entry
        changes.append(.set(host: host, entry))
        return changes
    }

    /// Returns the expiry time, rounded to hours if it is more than a day away.
    ///
    /// A host repeats its policy in every response, and an unchanged policy should not be written each time.
    package static func rounded(_ expires: Double, now: Double) -> Double {
        expires - now > 86_400 ? (expires / 3_600).rounded(.down) * 3_600 : expires
    }

    /// Whether requests to a host must use TLS: the host itself, or a parent domain that includes its subdomains, is known
    /// (sections 8.2 and 8.3), in this list or in ``HSTSPreloadList``.
    package func requiresUpgrade(host: String, now: Double) -> Bool {
        guard let name = HostName.normalized(host) else { return false }
        if !entries.isEmpty {
            if let entry = entries[name], entry.expires > now { return true }
            var rest = name.utf8[...]
            while let dot = rest.firstIndex(of: UInt8(ascii: ".")) {
                rest = rest[rest.index(after: dot)...]
                if let entry = entries[String(Substring(rest))], entry.includesSubdomains, entry.expires > now { return true }
            }
        }
        return HSTSPreloadList.containsName(name)
    }

    package mutating func removeAll() -> [Change] {
        remove(entries.keys.sorted())
    }

    /// Removes the hosts that became known after a time.
    package mutating func removeEntries(createdAfter time: Double) -> [Change] {
        remove(entries.filter { $0.value.created > time }.keys.sorted())
    }

    package mutating func removeExpired(now: Double) -> [Change] {
        remove(entries.filter { $0.value.expires <= now }.keys.sorted())
    }

    /// Applies changes from another copy.
    package mutating func apply(_ changes: [Change]) {
        for change in changes {
            switch change {
            case .set(let host, let entry): entries[host] = entry
            case .removed(let host): entries[host] = nil
            }
        }
    }

    private mutating func remove(_ hosts: [String]) -> [Change] {
        hosts.compactMap { entries.removeValue(forKey: $0) == nil ? nil : .removed(host: $0) }
    }

    /// Removes a host of the same registrable domain, if necessary, before a host is added.
    private mutating func makeRoom(for host: String) -> [Change] {
        guard entries.count >= Self.maximumPerDomain, let domain = PublicSuffixList.registrableDomain(of: host) else { return [] }
        // The domain itself is kept, because it may cover all others.
        let below = entries.filter { $0.key.hasSuffix("." + domain) }
        guard below.count >= Self.maximumPerDomain else { return [] }
        let first = below.min { ($0.value.expires, $0.key) < ($1.value.expires, $1.key) }
        return first.map { remove([$0.key]) } ?? []
    }
}
