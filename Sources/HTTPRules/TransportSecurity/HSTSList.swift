//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// The hosts that have asked to be reached over TLS only: what they said, and what follows from it (RFC 6797, section 8).
package struct HSTSList: Sendable {
    /// A "Known HSTS Host" (section 8.1).
    package struct Entry: Hashable, Sendable {
        package var expires: Double
        package var includesSubdomains: Bool
        /// When the host said so for the first time since it was last unknown.
        package var created: Double

        package init(expires: Double, includesSubdomains: Bool, created: Double) {
            self.expires = expires
            self.includesSubdomains = includesSubdomains
            self.created = created
        }
    }

    /// What another copy of the list has to learn.
    package enum Change: Hashable, Sendable {
        case set(host: String, Entry)
        case removed(host: String)
    }

    /// How many hosts of one registrable domain are kept; beyond them, the one whose entry ends first is forgotten.
    ///
    /// A site with a wildcard certificate could otherwise fill the memory. Counted by domain, because a common limit would let one
    /// site push out what another has asked for.
    package static let maximumPerDomain = 1000

    /// By host, in lower case and without a dot at its end.
    package private(set) var entries: [String: Entry]

    package init() {
        entries = [:]
    }

    /// A list as it was kept; hosts that no list could have are left out.
    package init(_ entries: [String: Entry]) {
        self.entries = entries.filter { HostName.normalized($0.key) == $0.key && $0.value.expires.isFinite }
    }

    /// Notes what a response's first `Strict-Transport-Security` field says.
    ///
    /// - Parameters:
    ///   - field: The field's value.
    ///   - host: Who answered. An address is never noted (section 8.1.1), and `example.com.` is `example.com`.
    ///   - isVerified: Whether the response came over TLS "with no underlying secure transport errors or warnings"; else "the UA
    ///     MUST ignore any present STS header field(s)" (section 8.1).
    ///   - now: When it came.
    /// - Returns: What has changed; nothing where the host says the same again (``rounded(_:now:)``).
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

    /// When an entry ends, as exactly as it counts: to the hour where that is days away.
    ///
    /// A host repeats its wish with every response, which is no reason to write every time.
    package static func rounded(_ expires: Double, now: Double) -> Double {
        expires - now > 86_400 ? (expires / 3_600).rounded(.down) * 3_600 : expires
    }

    /// Whether a request to a host has to go over TLS: the host itself or, where it includes its subdomains, one above it is
    /// known (sections 8.2 and 8.3), here or in ``HSTSPreloadList``.
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

    /// Forgets the hosts that became known after a time.
    package mutating func removeEntries(createdAfter time: Double) -> [Change] {
        remove(entries.filter { $0.value.created > time }.keys.sorted())
    }

    package mutating func removeExpired(now: Double) -> [Change] {
        remove(entries.filter { $0.value.expires <= now }.keys.sorted())
    }

    /// Repeats what changed in another copy.
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

    /// Forgets, if need be, one host of the registrable domain that another one is to be added to.
    private mutating func makeRoom(for host: String) -> [Change] {
        guard entries.count >= Self.maximumPerDomain, let domain = PublicSuffixList.registrableDomain(of: host) else { return [] }
        // The domain itself stays: it may speak for all the others.
        let below = entries.filter { $0.key.hasSuffix("." + domain) }
        guard below.count >= Self.maximumPerDomain else { return [] }
        let first = below.min { ($0.value.expires, $0.key) < ($1.value.expires, $1.key) }
        return first.map { remove([$0.key]) } ?? []
    }
}
