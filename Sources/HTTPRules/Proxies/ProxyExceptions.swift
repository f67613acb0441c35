// SPDX-License-Identifier: Apache-2.0

import HTTPWire

/// The hosts that are reached without a proxy.
package struct ProxyExceptions: Sendable, Hashable {
    /// Names and addresses.
    ///
    /// `*` matches any characters, a name with a leading dot matches a whole domain, and `10.0.0.0/8` matches a network.
    package var patterns: [String]
    /// Whether names without a dot are exceptions.
    package var includesSimpleNames: Bool
    /// Whether a name in ``patterns``, with or without a leading dot, also matches all names below it, as in `no_proxy`.
    package var includesSubdomains: Bool

    package init(_ patterns: [String] = [], includesSimpleNames: Bool = false, includesSubdomains: Bool = false) {
        self.patterns = patterns
        self.includesSimpleNames = includesSimpleNames
        self.includesSubdomains = includesSubdomains
    }

    /// Parses `no_proxy` like curl: names and networks, separated by commas or spaces; a single `*` matches all hosts.
    package init(environment text: String) {
        self.init(text.split { $0 == "," || $0.isWhitespace }.map(String.init), includesSubdomains: true)
    }

    /// Whether a host is an exception.
    ///
    /// The host must be in lowercase and without brackets.
    package func contains(_ host: String) -> Bool {
        var host = host[...]
        if host.last == ".", host.count > 1 { host = host.dropLast() }
        let name = String(host)
        if includesSimpleNames, !name.contains("."), !name.contains(":") { return true }
        return patterns.contains { matches(name, $0.lowercased()) }
    }

    private func matches(_ host: String, _ pattern: String) -> Bool {
        if let network = AddressNetwork(pattern) { return network.contains(host) }
        if includesSubdomains { return pattern == "*" || Self.isHost(host, in: pattern) }
        if pattern.hasPrefix(".") { return host.hasSuffix(pattern) || host == pattern.dropFirst() }
        return Self.fits(Array(host.utf8)[...], Array(pattern.utf8)[...])
    }

    /// Whether a host equals a domain or is below it, ignoring leading and trailing dots of the domain.
    package static func isHost(_ host: String, in domain: String) -> Bool {
        var domain = domain.lowercased()[...]
        while domain.first == "." { domain = domain.dropFirst() }
        while domain.last == "." { domain = domain.dropLast() }
        guard !domain.isEmpty else { return false }
        return host == domain || host.hasSuffix("." + domain) && !HostName.isAddress(host)
    }

    /// Matches without recursion: a star matches as little as possible, and the last star is extended when the rest does not match.
    private static func fits(_ text: ArraySlice<UInt8>, _ pattern: ArraySlice<UInt8>) -> Bool {
        var (at, want) = (text.startIndex, pattern.startIndex)
        var resume: (at: Int, want: Int)?
        while at < text.endIndex {
            if want < pattern.endIndex, pattern[want] == UInt8(ascii: "*") {
                resume = (at, want + 1)
                want += 1
            } else if want < pattern.endIndex, pattern[want] == text[at] {
                (at, want) = (at + 1, want + 1)
            } else if let (start, after) = resume {
                resume = (start + 1, after)
                (at, want) = (start + 1, after)
            } else {
                return false
            }
        }
        return pattern[want...].allSatisfy { $0 == UInt8(ascii: "*") }
    }
}
