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

    /// The proxy that the hop goes through, or nil for none.
    static func server(for target: RequestTarget, _ hop: Hop, in load: Load) throws(LoadError) -> ProxyServer? {
        guard let rules = load.session.proxies else { return nil }
        if hop.proxies.origin != target.origin {
            switch rules.decision(isSecure: target.origin.isSecure, host: target.origin.host) {
            case .unusable(let reason): throw LoadError(.cannotConnectToHost, reason)
            case .ways(let ways):
                let ways = load.session.failedProxies.last(ways, now: Int64(load.control.lastProgress.uptimeNanoseconds))
                hop.proxies = HopPart(ways: ways[...], origin: target.origin)
            }
        }
        return hop.proxies.ways.first?.server
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
