// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import HTTPTransport
import LoadingModel
import NIOCore

/// Chooses how a hop reaches its server: directly or through one of the session's proxies.
enum ProxyChoice {
    /// Whether ``prepare(_:to:by:_:in:)`` has to ask a proxy script first.
    static func mustWait(_ hop: Hop, to target: RequestTarget, by proxies: SessionProxies) -> Bool {
        script(for: target, hop, proxies) != nil
    }

    /// Asks the proxy script, if the session has one.
    ///
    /// If there is no network for fetching the script, and the session waits for connectivity, the load waits for a network.
    static func prepare(
        _ hop: Hop, to target: RequestTarget, by proxies: SessionProxies, _ pool: ConnectionPool, in load: Load
    ) async throws(LoadError) {
        guard let script = script(for: target, hop, proxies) else { return }
        while true {
            do throws(LoadError) {
                let ways = try await proxies.scripts.ways(script, for: target, of: load.session, in: load.control)
                return take(ways, for: target, hop, proxies)
            } catch {
                guard error.kind == .notConnectedToInternet, load.session.policy.waitsForConnectivity, pool.wait(load.control)
                else { throw error }
            }
            load.reportWaiting()
            while case .offline(let wait) = load.control.phase, !pool.hasEnded(wait) { await load.control.wait() }
            try await load.control.waitWhileSuspended()
        }
    }

    @inline(never)
    private static func script(for target: RequestTarget, _ hop: Hop, _ proxies: SessionProxies) -> ProxyScript? {
        guard hop.proxies.origin != target.origin,
            case .script(let script) = proxies.rules.decision(isSecure: target.origin.isSecure, host: target.origin.host)
        else { return nil }
        return script
    }

    /// Returns the hop's proxy; nil for a direct connection.
    static func server(for target: RequestTarget, _ hop: Hop, _ proxies: SessionProxies?) throws(LoadError) -> ProxyServer? {
        guard let proxies else { return nil }
        if hop.proxies.origin != target.origin {
            switch proxies.rules.decision(isSecure: target.origin.isSecure, host: target.origin.host) {
            case .unusable(let reason): throw LoadError(.cannotConnectToHost, reason)
            case .script(let script): throw LoadError(.cannotConnectToHost, "\(script.name) has not been run")
            case .ways(let ways): take(ways, for: target, hop, proxies)
            }
        }
        return hop.proxies.ways.first?.server
    }

    private static func take(_ ways: [ProxyWay], for target: RequestTarget, _ hop: Hop, _ proxies: SessionProxies) {
        let ways = proxies.failed.last(ways, now: Int64(NIODeadline.now().uptimeNanoseconds))
        hop.proxies = ProxyWays(ways: ways[...], origin: target.origin)
    }

    /// Returns the ways for a load's first hop, without using any of them.
    static func ways(of load: Load, _ pool: ConnectionPool) async throws(LoadError) -> [ProxyWay] {
        if !load.session.storesAreReady { try await LoopSlot.run(in: load.control, by: load.session.stores.prepare) {} }
        let hop = load.firstHop()
        let target = try PrepareStage.target(of: hop, in: load)
        guard let proxies = load.proxies else { return [.direct] }
        try await prepare(hop, to: target, by: proxies, pool, in: load)
        _ = try server(for: target, hop, proxies)
        return Array(hop.proxies.ways)
    }

    /// Records that a response arrived through the hop's proxy.
    @inline(never)
    static func noteResponse(_ hop: Hop, _ proxies: SessionProxies, now: NIODeadline) {
        guard case .proxy(let server) = hop.proxies.ways.first else { return }
        proxies.failed.noteResponse(of: server, now: Int64(now.uptimeNanoseconds))
    }

    /// Switches the hop to its next way, because its proxy was unreachable or silent; returns false if there is no other way.
    static func switchToNextWay(_ hop: Hop, after error: LoadError, _ proxies: SessionProxies) -> Bool {
        guard case .proxy(let server) = hop.proxies.ways.first else { return false }
        let now = Int64(NIODeadline.now().uptimeNanoseconds)
        if error.kind == .timedOut {
            proxies.failed.noteTimeout(of: server, now: now)
        } else {
            proxies.failed.note(server, now: now)
        }
        guard hop.proxies.ways.count > 1 else { return false }
        hop.proxies.ways.removeFirst()
        hop.authentication.leftProxy()
        return true
    }
}
