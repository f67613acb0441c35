//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
package import HTTPRules
package import LoadingModel

/// Where a connection leads: what must be the same for two requests to share one.
package struct Route: Sendable, Hashable {
    package var isSecure: Bool
    package var host: String
    package var port: Int
    /// Nil for nearly all.
    package var details: RouteDetails?

    package init(isSecure: Bool, host: String, port: Int, details: RouteDetails? = nil) {
        self.isSecure = isSecure
        self.host = host
        self.port = port
        self.details = details
    }

    /// The proxy through which the connection leads.
    package var proxy: ProxyServer? { details?.proxy }

    /// No HTTP is spoken over its connections.
    var carriesBytes: Bool { details?.carriesBytes ?? false }

    /// Whether the server may choose HTTP/2: not for connections of one holder, who is known by them (RFC 7540 has no such schemes).
    package var mayUseHTTP2: Bool { isSecure && details.map { $0.holder == nil && !$0.requiresHTTP1 } ?? true }

    /// The same way, for HTTP/1.1 alone.
    var inHTTP1: Route {
        var route = self
        route.details = RouteDetails(
            proxy: details?.proxy, isForwarded: details?.isForwarded ?? false, judge: details?.judge, holder: details?.holder,
            needs: details?.needs, tunnelCredential: details?.tunnelCredential, requiresHTTP1: true,
            hasAlternatives: details?.hasAlternatives ?? false, carriesBytes: details?.carriesBytes ?? false,
            addresses: details?.addresses ?? [])
        return route
    }

    /// Whether somebody may have to say something while the connection is made.
    package var raisesQuestions: Bool { isSecure || details.map { $0.proxy != nil && !$0.isForwarded } ?? false }
}

/// The credential that a request itself gives to the proxy that makes its tunnel: the value of its own `Proxy-Authorization`.
///
/// The proxy knows the tunnel by it, so that requests with other values, or none, have other tunnels. It is never printed.
package struct TunnelCredential: Sendable, Hashable, CustomStringConvertible, CustomReflectable {
    let value: String

    package init(_ value: String) { self.value = value }

    package var description: String { "(not shown)" }
    package var customMirror: Mirror { Mirror(self, children: []) }
}

/// What few routes have; in an object of its own, since routes are compared for every request.
package final class RouteDetails: Sendable, Hashable {
    package let proxy: ProxyServer?
    /// The proxy is the other end of the connection, and is sent whole URLs; otherwise it makes a tunnel.
    package let isForwarded: Bool
    /// Whose delegate judged the server, where the session's does not.
    package let judge: ConnectionHolder?
    /// For whom connections stand that are not everybody's: they are authenticated.
    package let holder: ConnectionHolder?
    /// Where they are others than the session's.
    package let needs: ConnectionNeeds?
    /// Nil where the session speaks to the proxy, or there is no tunnel.
    package let tunnelCredential: TunnelCredential?
    /// The server wants to be spoken to by HTTP/1.1.
    package let requiresHTTP1: Bool
    /// Whether there is another way, so that the proxy is not waited for as long as a server; no part of what is compared.
    package let hasAlternatives: Bool
    /// No HTTP is spoken over it: the bytes are a stream task's.
    package let carriesBytes: Bool
    /// Of the host, where they are known already and no look-up would find them; empty where one has to.
    package let addresses: [String]

    package init(
        proxy: ProxyServer?, isForwarded: Bool = false, judge: ConnectionHolder? = nil, holder: ConnectionHolder? = nil,
        needs: ConnectionNeeds? = nil, tunnelCredential: TunnelCredential? = nil, requiresHTTP1: Bool = false,
        hasAlternatives: Bool = false, carriesBytes: Bool = false, addresses: [String] = []
    ) {
        self.addresses = addresses
        self.carriesBytes = carriesBytes
        self.tunnelCredential = tunnelCredential
        self.requiresHTTP1 = requiresHTTP1
        self.hasAlternatives = hasAlternatives
        self.proxy = proxy
        self.isForwarded = isForwarded
        self.judge = judge
        self.holder = holder
        self.needs = needs
    }

    package static func == (left: RouteDetails, right: RouteDetails) -> Bool {
        left === right
            || left.proxy == right.proxy && left.isForwarded == right.isForwarded && left.judge == right.judge
                && left.holder == right.holder && left.needs == right.needs && left.requiresHTTP1 == right.requiresHTTP1
                && left.tunnelCredential == right.tunnelCredential && left.carriesBytes == right.carriesBytes
                && left.addresses == right.addresses
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(proxy)
        hasher.combine(isForwarded)
        hasher.combine(judge)
        hasher.combine(holder)
        hasher.combine(needs)
        hasher.combine(requiresHTTP1)
        hasher.combine(tunnelCredential)
        hasher.combine(carriesBytes)
        hasher.combine(addresses)
    }
}
