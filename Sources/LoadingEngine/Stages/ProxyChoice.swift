//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
import HTTPRules
import HTTPTransport
import LoadingModel
import NIOCore

/// Which way a hop goes to its server, where the session has proxies.
enum ProxyChoice {
    struct HopPart {
        /// The ways that are left, the present one first; of an origin, since a hop may be sent over TLS after all.
        fileprivate var ways: ArraySlice<ProxyWay> = []
        fileprivate var origin: Origin?

        /// Whether there is another way, should this one fail.
        var hasAlternatives: Bool { ways.count > 1 }
    }

    /// Whether a script has to be asked first, by ``prepare(_:in:)``.
    @inline(__always)
    static func mustWait(_ hop: Hop, in load: Load) throws(LoadError) -> Bool {
        guard let rules = load.session.proxies else { return false }
        return try script(rules, hop, in: load) != nil
    }

    /// Asks the script, where there is one.
    static func prepare(_ hop: Hop, in load: Load) async throws(LoadError) {
        guard let rules = load.session.proxies, let (script, target) = try script(rules, hop, in: load) else { return }
        take(try await load.session.proxyScripts.ways(script, for: target, in: load), for: target, hop, in: load)
    }

    @inline(never)
    private static func script(
        _ rules: ProxyRules, _ hop: Hop, in load: Load
    ) throws(LoadError) -> (ProxyScript, RequestTarget)? {
        guard !load.order.isForProxies else { return nil }
        let target = try PrepareStage.target(of: hop, in: load)
        guard hop.proxies.origin != target.origin,
            case .script(let script) = rules.decision(isSecure: target.origin.isSecure, host: target.origin.host)
        else { return nil }
        return (script, target)
    }

    /// The proxy that the hop goes through, or nil for none.
    static func server(for target: RequestTarget, _ hop: Hop, in load: Load) throws(LoadError) -> ProxyServer? {
        guard let rules = load.session.proxies, !load.order.isForProxies else { return nil }
        if hop.proxies.origin != target.origin {
            switch rules.decision(isSecure: target.origin.isSecure, host: target.origin.host) {
            case .unusable(let reason): throw LoadError(.cannotConnectToHost, reason)
            case .script(let script): throw LoadError(.cannotConnectToHost, "\(script.name) was not asked")
            case .ways(let ways): take(ways, for: target, hop, in: load)
            }
        }
        return hop.proxies.ways.first?.server
    }

    private static func take(_ ways: [ProxyWay], for target: RequestTarget, _ hop: Hop, in load: Load) {
        let ways = load.session.failedProxies.last(ways, now: Int64(load.control.lastProgress.uptimeNanoseconds))
        hop.proxies = HopPart(ways: ways[...], origin: target.origin)
    }

    /// The proxy could not be reached: has the hop go the next way, if there is one.
    static func goAround(_ hop: Hop, in load: Load) -> Bool {
        guard load.control.failure == nil, case .proxy(let server) = hop.proxies.ways.first else { return false }
        load.session.failedProxies.note(server, now: Int64(NIODeadline.now().uptimeNanoseconds))
        guard hop.proxies.ways.count > 1 else { return false }
        hop.proxies.ways.removeFirst()
        hop.authentication.leftProxy()
        return true
    }
}
