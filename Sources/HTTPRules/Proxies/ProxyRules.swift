// SPDX-License-Identifier: Apache-2.0

/// The proxy settings of a session.
///
/// An unusable proxy setting is kept as an error message: the affected requests fail instead of bypassing the proxy.
package struct ProxyRules: Sendable, Hashable {
    /// The setting for one scheme.
    package enum Choice: Sendable, Hashable {
        case direct
        case proxy(ProxyServer)
        /// The error message for the app.
        case unusable(String)
        case script(ProxyScript)
    }

    /// An item of a list of proxies, for certain hosts.
    package struct Listed: Sendable, Hashable {
        package var choice: Choice
        /// The domains whose hosts use the item; empty for all hosts.
        package var domains: [String]
        /// Domains whose hosts do not use the item, regardless of `domains`.
        package var excludedDomains: [String]
        /// Whether the next matching item or a direct connection may be used if this item's proxy fails.
        package var allowsFailover: Bool

        package init(
            _ choice: Choice, domains: [String] = [], excludedDomains: [String] = [], allowsFailover: Bool = false
        ) {
            self.choice = choice
            self.domains = domains
            self.excludedDomains = excludedDomains
            self.allowsFailover = allowsFailover
        }

        func covers(_ host: String) -> Bool {
            guard !excludedDomains.contains(where: { ProxyExceptions.isHost(host, in: $0) }) else { return false }
            return domains.isEmpty || domains.contains { ProxyExceptions.isHost(host, in: $0) }
        }
    }

    package enum Decision: Sendable, Hashable {
        /// The options in the order in which to try them; never empty.
        case ways([ProxyWay])
        case unusable(String)
        /// The script must be evaluated.
        case script(ProxyScript)
    }

    package var http = Choice.direct
    package var https = Choice.direct
    package var exceptions = ProxyExceptions()
    /// If not empty, replaces all other settings.
    package var list: [Listed] = []

    package init() {}

    /// Whether all connections are direct.
    package var isEmpty: Bool { list.isEmpty && http == .direct && https == .direct }

    /// Returns how a request is sent.
    ///
    /// - Parameters:
    ///   - isSecure: Whether the request's scheme is `https`.
    ///   - host: The host in lowercase, an IPv6 address without brackets.
    /// - Returns: The options, or the error in the setting.
    package func decision(isSecure: Bool, host: String) -> Decision {
        if !list.isEmpty { return listed(host) }
        let choice = isSecure ? https : http
        if choice == .direct || exceptions.contains(host) { return .ways([.direct]) }
        switch choice {
        case .direct: return .ways([.direct])
        case .proxy(let server): return .ways([.proxy(server)])
        case .unusable(let reason): return .unusable(reason)
        case .script(let script): return .script(script)
        }
    }

    private func listed(_ host: String) -> Decision {
        var ways: [ProxyWay] = []
        for item in list where item.covers(host) {
            switch item.choice {
            case .direct: return .ways(ways + [.direct])
            case .proxy(let server): ways.append(.proxy(server))
            case .unusable(let reason): return .unusable(reason)
            case .script(let script): return .script(script)
            }
            if !item.allowsFailover { return .ways(ways) }
        }
        return .ways(ways + [.direct])
    }
}
