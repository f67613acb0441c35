// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules

// MARK: Proxies

extension ProxyRules: CodedFields {
    static var blank: Self { Self() }

    mutating func visit(_ coder: Coder) throws {
        try coder.defaulted(1, "http", .direct, &http)
        try coder.defaulted(2, "https", .direct, &https)
        try coder.defaulted(3, "exceptions", .blank, &exceptions)
        try coder.list(4, "list", &list, .list("the proxies"))
    }
}

extension ProxyExceptions: CodedFields {
    static var blank: Self { Self() }

    mutating func visit(_ coder: Coder) throws {
        try coder.list(1, "patterns", &patterns, .list("the exceptions"))
        try coder.defaulted(2, "includesSimpleNames", false, &includesSimpleNames)
        try coder.defaulted(3, "includesSubdomains", false, &includesSubdomains)
    }
}

extension ProxyRules.Listed: CodedFields {
    static var blank: Self { Self(.direct) }

    mutating func visit(_ coder: Coder) throws {
        try coder.defaulted(1, "choice", .direct, &choice)
        try coder.list(2, "domains", &domains, .list("a proxy's domains"))
        try coder.list(3, "excludedDomains", &excludedDomains, .list("a proxy's domains"))
        try coder.defaulted(4, "allowsFailover", false, &allowsFailover)
    }
}

extension ProxyRules.Choice: Coded {
    /// A direct connection is encoded as an absent field: an unknown choice must not be decoded as permission to connect
    /// directly.
    static func coded(_ value: Self?, _ coder: Coder) throws -> Self {
        try coder.object {
            let server: ProxyServer? = if case .proxy(let server)? = value { server } else { nil }
            if let server = try coder.optional(1, "server", server) { return .proxy(server) }
            let reason: String? = if case .unusable(let reason)? = value { reason } else { nil }
            if let reason = try coder.optional(2, "unusable", reason) { return .unusable(reason) }
            let script: String? = if case .script(.text(let script))? = value { script } else { nil }
            let rule = Rule.text("a proxy script", limit: ProxyScript.maximumLength)
            if let script = try coder.optional(3, "script", script, rule) { return .script(.text(script)) }
            let url: URL? = if case .script(.at(let url))? = value { url } else { nil }
            return .script(.at(try coder.required(4, "scriptURL", url)))
        }
    }
}

extension ProxyServer.Kind: Coded {
    static func coded(_ value: Self?, _ coder: Coder) throws -> Self {
        try coder.named(["http": .http, "https": .https, "socks4": .socks4, "socks5": .socks5], value)
    }
}

extension ProxyServer: CodedFields {
    static var blank: Self { Self(.http, host: "", port: 0) }

    mutating func visit(_ coder: Coder) throws {
        try coder.required(1, "kind", &kind)
        try coder.required(2, "host", &host, .plain("a proxy's host"))
        try coder.required(3, "port", &port, .port("a proxy's port"))
        try coder.defaulted(4, "looksUpHere", false, &looksUpHere)
        try coder.defaulted(5, "tunnelsAlways", false, &tunnelsAlways)
        try coder.optional(6, "user", &user)
        try coder.optional(7, "password", &password)
    }
}

// MARK: App Transport Security

extension AppTransportSecurity: CodedFields {
    /// A domain, an IP address or an address range, with its exception or pins.
    private struct Listed<Entry: CodedEntry>: Coded {
        var domain: String
        var entry: Entry

        static func coded(_ value: Self?, _ coder: Coder) throws -> Self {
            try coder.object {
                Self(domain: try coder.required(1, "domain", value?.domain), entry: try Entry.entry(value?.entry, coder))
            }
        }
    }

    static var blank: Self { .strict }

    mutating func visit(_ coder: Coder) throws {
        try coder.defaulted(1, "allowsArbitraryLoads", false, &allowsArbitraryLoads)
        try coder.optional(2, "allowsArbitraryLoadsForMedia", &allowsArbitraryLoadsForMedia)
        try coder.optional(3, "allowsArbitraryLoadsInWebContent", &allowsArbitraryLoadsInWebContent)
        try coder.optional(4, "allowsLocalNetworking", &allowsLocalNetworking)
        let domains = exceptionDomains.sorted { $0.key < $1.key }.map { Listed(domain: $0.key, entry: $0.value) }
        let exceptions = try coder.list(
            5, "exceptions", domains + exceptionRanges.map { Listed(domain: $0.key, entry: $0.exception) },
            .list("the exceptions"))
        let pins = try coder.list(
            6, "pins", pinnedDomains.sorted { $0.key < $1.key }.map { Listed(domain: $0.key, entry: $0.value) }, .list("the pins")
        )
        if coder.isReading {
            for listed in exceptions {
                try Limits.check(setException(listed.entry, for: listed.domain), "an exception is not for a valid domain")
            }
            for listed in pins { try Limits.check(setPins(listed.entry, for: listed.domain), "pins are not for a valid domain") }
        }
        try Limits.check(exceptionDomains.count + exceptionRanges.count == exceptions.count, "a domain has two exceptions")
        try Limits.check(pinnedDomains.count == pins.count, "a domain is pinned twice")
        try coder.optional(7, "pinFault", &pinFault)
        try coder.list(8, "warnings", &warnings, .list("the warnings"))
    }
}

/// The part of an entry besides its domain.
private protocol CodedEntry {
    static func entry(_ value: Self?, _ coder: Coder) throws -> Self
}

extension AppTransportSecurity.Exception: CodedEntry {
    fileprivate static func entry(_ value: Self?, _ coder: Coder) throws -> Self {
        let defaulted = Self()
        return Self(
            includesSubdomains: try coder.defaulted(
                2, "includesSubdomains", defaulted.includesSubdomains, value?.includesSubdomains),
            allowsInsecureLoads: try coder.defaulted(
                3, "allowsInsecureLoads", defaulted.allowsInsecureLoads, value?.allowsInsecureLoads),
            minimumVersion: try coder.defaulted(4, "minimumVersion", defaulted.minimumVersion, value?.minimumVersion),
            requiresForwardSecrecy: try coder.defaulted(
                5, "requiresForwardSecrecy", defaulted.requiresForwardSecrecy, value?.requiresForwardSecrecy))
    }
}

extension AppTransportSecurity.Pins: CodedEntry {
    fileprivate static func entry(_ value: Self?, _ coder: Coder) throws -> Self {
        Self(
            includesSubdomains: try coder.defaulted(2, "includesSubdomains", false, value?.includesSubdomains),
            leaf: try coder.list(3, "leaf", value?.leaf), ca: try coder.list(4, "ca", value?.ca),
            fault: try coder.optional(5, "fault", value?.fault))
    }
}
