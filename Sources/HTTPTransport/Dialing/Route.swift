// SPDX-License-Identifier: Apache-2.0

package import HTTPRules
package import HTTPWire
package import LoadingModel
import NIOCore

/// The destination of a connection, with all properties that must be equal for two requests to share a connection.
package struct Route: Sendable, Hashable {
    package var isSecure: Bool
    package var host: String
    package var port: Int
    /// Nil for nearly all routes, which have no rare properties.
    package var details: RouteDetails?

    package init(isSecure: Bool, host: String, port: Int, details: RouteDetails? = nil) {
        self.isSecure = isSecure
        self.host = host
        self.port = port
        self.details = details
    }

    /// The proxy through which the connection leads.
    package var proxy: ProxyServer? { details?.proxy }

    /// Whether the route's connections carry the bytes of a stream task instead of HTTP.
    var carriesByteStream: Bool { details?.carriesByteStream ?? false }

    /// The versions that the route allows; for a holder's authenticated connection HTTP/1.1, which the schemes that authenticate a
    /// connection require.
    package var versions: HTTPVersions {
        details.map { $0.holder == nil ? $0.versions : .http1 } ?? .all
    }

    /// Returns the reason why the connection must not lead to an address of its server; nil if it may.
    func objection(to address: SocketAddress) -> LoadError? {
        guard let reach = details?.needs?.reach, !reach.allows(AddressKind(address)) else { return nil }
        return LoadError(
            .cannotConnectToHost,
            "connecting to \(host): \(address.ipAddress ?? "its address") is not an address of the public network")
    }

    /// Whether making the connection can involve questions to an adviser.
    package var mayAskAdviser: Bool { isSecure || details.map { $0.proxy != nil && !$0.isForwarded } ?? false }
}

/// The value of a request's own `Proxy-Authorization` field, for the proxy that opens the tunnel.
///
/// The proxy associates the credential with the tunnel, so requests with another value, or none, use other tunnels. The credential
/// is never printed.
package struct TunnelCredential: Sendable, Hashable, CustomStringConvertible, CustomReflectable {
    let value: String

    package init(_ value: String) { self.value = value }

    package var description: String { "(not shown)" }
    package var customMirror: Mirror { Mirror(self, children: []) }
}

/// Rare properties of routes, in a separate object because routes are compared for every request.
package final class RouteDetails: Sendable, Hashable {
    package let proxy: ProxyServer?
    /// Whether requests are sent to the proxy itself, with absolute URLs; otherwise the proxy opens a tunnel.
    package let isForwarded: Bool
    /// Stands for the task's own delegate that judges the server, rather than the session's.
    package let judge: ConnectionHolder?
    /// The holder of connections that are not shared, because they are authenticated.
    package let holder: ConnectionHolder?
    /// Nil for the session's own needs.
    package let needs: ConnectionNeeds?
    /// Nil if the session authenticates to the proxy, or there is no tunnel.
    package let tunnelCredential: TunnelCredential?
    /// The versions that the request and the server allow.
    package let versions: HTTPVersions
    /// Whether there is another way to the server; if so, the proxy gets less time than a server.
    ///
    /// Comparisons of routes ignore this property.
    package let hasAlternatives: Bool
    /// Whether the connection carries the bytes of a stream task instead of HTTP.
    package let carriesByteStream: Bool
    /// Known addresses of the host that no lookup would find; empty if the host must be looked up.
    package let addresses: [String]
    /// Whether the connection leads to exactly the route's host and port, or to ``addresses``: the session's own substitutions and
    /// addresses do not apply to it.
    package let isExact: Bool

    package init(
        proxy: ProxyServer?, isForwarded: Bool = false, judge: ConnectionHolder? = nil, holder: ConnectionHolder? = nil,
        needs: ConnectionNeeds? = nil, tunnelCredential: TunnelCredential? = nil, versions: HTTPVersions = .all,
        hasAlternatives: Bool = false, carriesByteStream: Bool = false, addresses: [String] = [],
        isExact: Bool = false
    ) {
        self.isExact = isExact
        self.addresses = addresses
        self.carriesByteStream = carriesByteStream
        self.tunnelCredential = tunnelCredential
        self.versions = versions
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
                && left.holder == right.holder && left.needs == right.needs && left.versions == right.versions
                && left.tunnelCredential == right.tunnelCredential && left.carriesByteStream == right.carriesByteStream
                && left.addresses == right.addresses && left.isExact == right.isExact
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(proxy)
        hasher.combine(isForwarded)
        hasher.combine(judge)
        hasher.combine(holder)
        hasher.combine(needs)
        hasher.combine(versions)
        hasher.combine(tunnelCredential)
        hasher.combine(carriesByteStream)
        hasher.combine(addresses)
        hasher.combine(isExact)
    }
}
