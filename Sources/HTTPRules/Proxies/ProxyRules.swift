//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// Which way a session's requests go: what its settings say of proxies.
///
/// A setting that names a proxy and cannot be followed is kept as what is wrong with it: requests fail that it is about, and do not go
/// past the proxy.
package struct ProxyRules: Sendable, Hashable {
    /// What is said of one scheme.
    package enum Choice: Sendable, Hashable {
        case direct
        case proxy(ProxyServer)
        /// What is wrong with the setting, as the app is told.
        case unusable(String)
        case script(ProxyScript)
    }

    /// One of a list, each for hosts of its own.
    package struct Listed: Sendable, Hashable {
        package var choice: Choice
        /// Domains whose hosts go through it; empty for all.
        package var domains: [String]
        /// Domains whose hosts do not, whatever `domains` says.
        package var excludedDomains: [String]
        /// Whether the next one that covers a host, or the direct way, may take its place.
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
        /// To be tried in their order; never empty.
        case ways([ProxyWay])
        case unusable(String)
        /// The script is to be asked.
        case script(ProxyScript)
    }

    package var http = Choice.direct
    package var https = Choice.direct
    package var exceptions = ProxyExceptions()
    /// In place of all the others, where there are any.
    package var list: [Listed] = []

    package init() {}

    /// Whether everything goes directly.
    package var isEmpty: Bool { list.isEmpty && http == .direct && https == .direct }

    /// Which way a request goes.
    ///
    /// - Parameters:
    ///   - isSecure: Whether it is one of `https`.
    ///   - host: In lower case, an IPv6 address without brackets.
    /// - Returns: The ways, or what is wrong with the setting that would say.
    package func decision(isSecure: Bool, host: String) -> Decision {
        if !list.isEmpty { return listed(host) }
        let choice = isSecure ? https : http
        if choice == .direct || exceptions.contain(host) { return .ways([.direct]) }
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
