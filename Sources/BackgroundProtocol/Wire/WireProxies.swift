//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import FoundationEssentials
import HTTPRules

struct WireProxies: WireValue {
    /// Directly, where nothing is said.
    struct Choice: Codable {
        var server: Server?
        var unusable: String?
        var script: String?
        var scriptURL: String?
    }

    struct Server: Codable {
        var kind: String
        var host: String
        var port: Int
        var looksUpHere: Bool?
        var tunnelsAlways: Bool?
        var user: String?
        var password: String?
    }

    struct Exceptions: Codable {
        var patterns: [String]?
        var includesSimpleNames: Bool?
        var includesSubdomains: Bool?
    }

    struct Listed: Codable {
        /// Nil is the direct way.
        var choice: Choice?
        var domains: [String]?
        var excludedDomains: [String]?
        var allowsFailover: Bool?
    }

    var http: Choice?
    var https: Choice?
    var exceptions: Exceptions?
    var list: [Listed]?

    init(_ rules: ProxyRules) {
        http = Choice(rules.http)
        https = Choice(rules.https)
        if rules.exceptions != ProxyExceptions() {
            exceptions = Exceptions(
                patterns: rules.exceptions.patterns.unlessEmpty,
                includesSimpleNames: rules.exceptions.includesSimpleNames.unless(false),
                includesSubdomains: rules.exceptions.includesSubdomains.unless(false))
        }
        list =
            rules.list.map { listed in
                Listed(
                    choice: Choice(listed.choice), domains: listed.domains.unlessEmpty,
                    excludedDomains: listed.excludedDomains.unlessEmpty, allowsFailover: listed.allowsFailover.unless(false))
            }.unlessEmpty
    }

    func model() throws -> ProxyRules {
        var rules = ProxyRules()
        if let http { rules.http = try http.choice() }
        if let https { rules.https = try https.choice() }
        if let exceptions {
            rules.exceptions = ProxyExceptions(
                try Wire.list(exceptions.patterns, "the exceptions"),
                includesSimpleNames: exceptions.includesSimpleNames ?? false,
                includesSubdomains: exceptions.includesSubdomains ?? false)
        }
        rules.list = try Wire.list(list, "the proxies").map { listed in
            ProxyRules.Listed(
                try listed.choice?.choice() ?? .direct, domains: try Wire.list(listed.domains, "a proxy's domains"),
                excludedDomains: try Wire.list(listed.excludedDomains, "a proxy's domains"),
                allowsFailover: listed.allowsFailover ?? false)
        }
        return rules
    }
}

extension WireProxies.Choice {
    /// Nil for the direct way.
    init?(_ choice: ProxyRules.Choice) {
        switch choice {
        case .direct: return nil
        case .proxy(let server): self.server = WireProxies.Server(server)
        case .unusable(let reason): unusable = reason
        case .script(.text(let text)): script = text
        case .script(.at(let url)): scriptURL = url.absoluteString
        }
    }

    /// What is there and says nothing that is known is no leave to go directly.
    func choice() throws -> ProxyRules.Choice {
        if let server { return .proxy(try server.server()) }
        if let unusable { return .unusable(unusable) }
        if let script { return .script(.text(try Wire.text(script, "a proxy script", limit: ProxyScript.maximumLength))) }
        return .script(.at(try Wire.url(scriptURL, "a proxy script's URL")))
    }
}

extension WireProxies.Server {
    private enum Kind: String { case http, https, socks4, socks5 }

    init(_ server: ProxyServer) {
        let kind: Kind =
            switch server.kind {
            case .http: .http
            case .https: .https
            case .socks4: .socks4
            case .socks5: .socks5
            }
        self.kind = kind.rawValue
        host = server.host
        port = server.port
        looksUpHere = server.looksUpHere.unless(false)
        tunnelsAlways = server.tunnelsAlways.unless(false)
        user = server.user
        password = server.password
    }

    func server() throws -> ProxyServer {
        let kind: ProxyServer.Kind =
            switch try Wire.need(Kind(rawValue: self.kind), "a proxy's kind") {
            case .http: .http
            case .https: .https
            case .socks4: .socks4
            case .socks5: .socks5
            }
        var server = ProxyServer(
            kind, host: try Wire.plain(host, "a proxy's host"), port: try Wire.port(port, "a proxy's port"), user: user,
            password: password)
        server.looksUpHere = looksUpHere ?? false
        server.tunnelsAlways = tunnelsAlways ?? false
        return server
    }
}
