// SPDX-License-Identifier: Apache-2.0

package import HTTPRules
import HTTPWire
package import LoadingModel
package import NIOCore

/// An established connection: over TCP or a Unix-domain socket and, for a secure route, with TLS and a trusted server certificate.
package struct DialledChannel {
    package let channel: any Channel
    package let facts: ConnectionFacts
    package var keptChain: KeptChain?
    /// The bytes that the server of a byte stream sent directly after the proxy's reply.
    package var early = ByteBuffer()
}

/// Opens connections: looks up the host, races its addresses with ``AddressRace``, and performs the TLS handshake with the winner.
///
/// Not `Sendable`: the dialer is confined to its loop.
package final class Dialer {
    let loop: any EventLoop
    let tls: TLSSession
    private let resolver: any Resolver
    /// Finds only addresses that pass DNSSEC validation.
    private let validatingResolver: any Resolver
    private let preparation: SocketPreparation?
    let needs: ConnectionNeeds
    /// Set to false when the kernel refuses multipath TCP.
    var usesMultipath: Bool
    let options: ConnectionOptions?
    let now: () -> Double
    /// The demands of App Transport Security on connections to a host.
    let demands: (String) -> TLSDemands
    /// Nil if networks are not observed.
    let network: NetworkView?
    #if Logging || Metrics || Tracing
    /// Notified of connections that carry HTTP.
    package var observer: (any ConnectionObserver)?
    #endif
    /// Nil if servers cannot be reached over QUIC, or as long as its libraries are not open.
    package var quic: QUICAccess? { didSet { addHTTP3() } }
    /// The versions that this dialer can use.
    private(set) var carriers: [VersionCarrier]
    private var spoken: HTTPVersions
    /// The versions among which a TLS handshake may choose.
    let negotiated: HTTPVersions

    /// Creates a dialer for one session.
    ///
    /// - Parameters:
    ///   - loop: The loop that the dialer is confined to.
    ///   - tls: Performs the TLS handshakes of secure routes.
    ///   - resolver: Looks up the hosts' addresses.
    ///   - validatingResolver: Finds addresses that pass DNSSEC validation; if nil, `resolver` is used instead.
    ///   - options: Overrides the destinations and the sources of connections.
    ///   - needs: The requirements for connections whose routes specify none.
    ///   - usesMultipath: Whether connections use multipath TCP if the kernel supports it.
    ///   - now: Returns the time in seconds since the reference date of `Date`, for the connections' facts.
    ///   - network: The session's view of the machine's networks.
    ///   - quic: The way to servers over QUIC; nil if there is none.
    ///   - carriers: The versions of HTTP that connections may have.
    ///   - demands: Returns the requirements, beyond the TLS session's policy, for connections to a host.
    package init(
        loop: any EventLoop, tls: TLSSession, resolver: any Resolver, validatingResolver: (any Resolver)? = nil,
        options: ConnectionOptions? = nil, needs: ConnectionNeeds = .none, usesMultipath: Bool = false,
        now: @escaping () -> Double, network: NetworkView? = nil, quic: QUICAccess? = nil,
        carriers: [VersionCarrier] = VersionCarrier.standard,
        demands: @escaping (String) -> TLSDemands = { _ in .none }
    ) {
        self.network = network
        self.quic = quic
        self.carriers = carriers
        spoken = HTTPVersions(carriers.map(\.version))
        negotiated = HTTPVersions(carriers.filter { $0.begin != nil }.map(\.version))
        self.loop = loop
        self.tls = tls
        self.resolver = options.map { DirectedResolver($0, otherwise: resolver) } ?? resolver
        let validating = validatingResolver ?? resolver
        self.validatingResolver = options.map { DirectedResolver($0, otherwise: validating) } ?? validating
        self.options = options
        self.needs = needs
        self.usesMultipath = usesMultipath && options?.unixSocketPath == nil
        preparation = SocketPreparation(options, needs)
        self.now = now
        self.demands = demands
        addHTTP3()
    }

    private func addHTTP3() {
        guard let quic, !spoken.contains(.http3) else { return }
        carriers.insert(.http3(quic), at: 0)
        spoken.insert(.http3)
    }

    /// Returns the resolver for the host to connect to; a route's known addresses are the server's, not the proxy's.
    func resolver(for route: Route) -> any Resolver { route.proxy == nil ? serverResolver(for: route) : resolver }

    /// Returns the resolver for the server's name, also for a server behind a SOCKS proxy that must receive an address.
    func serverResolver(for route: Route) -> any Resolver {
        let known = route.details?.addresses ?? []
        let isExact = route.details?.isExact ?? false
        // An exact route's addresses are those of another connection, whose lookup was validated.
        guard !(route.details?.needs ?? needs).requiresDNSSEC || isExact && !known.isEmpty else { return validatingResolver }
        guard !known.isEmpty else { return resolver }
        var options = options ?? ConnectionOptions()
        // The session's configuration takes precedence, unless the route is exact.
        if isExact || options.configuredAddresses(host: route.host, port: route.port) == nil {
            options.addresses[ConnectionOptions.Endpoint(host: route.host, port: route.port)] = known
        }
        return DirectedResolver(options, otherwise: resolver)
    }

    /// Returns the versions that a connection of a route may turn out to have; without TLS, which negotiates it, only one.
    func versions(of route: Route) -> HTTPVersions {
        let setting = options?.httpVersions ?? .negotiated
        if route.isSecure {
            guard setting != .http1Only else { return .http1 }
            let mayUseQUIC = quic != nil && setting != .withoutHTTP3 && route.obstacleToHTTP3 == nil
            if setting == .http3Only, mayUseQUIC { return .http3 }
            return route.versions.intersection(mayUseQUIC ? spoken : spoken.subtracting(.http3))
        }
        guard setting == .http2PriorKnowledge, route.details?.isForwarded != true else { return .http1 }
        return route.versions.contains(.http2) ? .http2 : .http1
    }

    /// The networks; nil if they are not observed, or not used: a Unix socket uses none.
    var usedNetwork: NetworkView? { options?.unixSocketPath == nil ? network : nil }

    /// Returns why a connection must not lead to an address, or through which interface it must lead.
    func way(to address: SocketAddress, on route: Route) -> (objection: LoadError?, interface: String?) {
        if route.proxy == nil, let objection = route.objection(to: address) { return (objection, nil) }
        let source = options?.interfaceName ?? options?.localAddress
        let way = address.zonedAddress.flatMap { usedNetwork?.way(to: $0, from: source, prohibited(on: route)) }
        if case .refused(let objection)? = way { return (objection, nil) }
        return (nil, way?.interface)
    }

    func preparation(for route: Route) -> SocketPreparation? {
        guard let own = route.details?.needs else { return preparation }
        return SocketPreparation(options, own)
    }

    /// Returns the route's server, or its replacement in the session's configuration.
    func destination(of route: Route) -> ServerName {
        let isExact = route.details?.isExact ?? false
        let destination = isExact ? nil : options?.destination(host: route.host, port: route.port)
        return ServerName(host: destination?.host ?? route.host, port: destination?.port ?? route.port)
    }
}
