//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
package import FoundationEssentials
package import HTTPRules
package import LoadingModel
package import NIOCore

/// A connection that stands: TCP connected, and for a secure route TLS agreed on and the server's certificate checked.
package struct DialledChannel {
    package let channel: any Channel
    package let facts: ConnectionFacts
    /// What the server showed in the TLS handshake, in DER, its own first.
    package var serverChain: [Data] = []
    /// What the server of a byte stream said right behind the answer of a proxy.
    package var early = ByteBuffer()
}

/// Opens connections: looks the host up, races its addresses as ``AddressRace`` decides, and secures the winner.
///
/// Not `Sendable`: it is confined to its loop.
package final class Dialer {
    let loop: any EventLoop
    let tls: TLSSession
    private let resolver: any Resolver
    /// Finds addresses that are vouched for alone.
    private let validatingResolver: any Resolver
    private let preparation: SocketPreparation?
    let needs: ConnectionNeeds
    /// Until the kernel refuses.
    var usesMultipath: Bool
    let options: ConnectionOptions?
    let now: () -> Double
    /// What App Transport Security demands of connections to a host.
    let demands: (String) -> TLSDemands
    /// Nil where nothing is known of networks.
    let network: NetworkView?
    #if Logging || Metrics || Tracing
    /// Hears of connections that HTTP goes by.
    package var observer: (any ConnectionObserver)?
    #endif

    /// Makes a dialer for one session.
    ///
    /// - Parameters:
    ///   - loop: Where everything happens.
    ///   - tls: Secures the connections of secure routes.
    ///   - resolver: Finds the hosts' addresses.
    ///   - validatingResolver: Finds addresses that DNSSEC vouches for; nil is the other one.
    ///   - options: Where connections lead and come from, as far as that is not for routes and the system to say.
    ///   - needs: What connections have to be like whose routes do not say otherwise.
    ///   - usesMultipath: Whether connections are multipath TCP where the kernel has it.
    ///   - now: Seconds since the reference date of `Date`, for the connections' facts.
    ///   - network: What is known of the machine's networks.
    ///   - demands: What connections to a host must be like, beyond what the TLS session's policy says.
    package init(
        loop: any EventLoop, tls: TLSSession, resolver: any Resolver, validatingResolver: (any Resolver)? = nil,
        options: ConnectionOptions? = nil, needs: ConnectionNeeds = .none, usesMultipath: Bool = false,
        now: @escaping () -> Double, network: NetworkView? = nil,
        demands: @escaping (String) -> TLSDemands = { _ in .none }
    ) {
        self.network = network
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
    }

    /// Names of proxies are their owners' affair, and those behind them theirs.
    func resolver(for route: Route) -> any Resolver { route.proxy == nil ? serverResolver(for: route) : resolver }

    /// For the server's own name, which a SOCKS proxy may have to be told as an address.
    func serverResolver(for route: Route) -> any Resolver {
        guard !(route.details?.needs ?? needs).requiresDNSSEC else { return validatingResolver }
        guard let known = route.details?.addresses, !known.isEmpty else { return resolver }
        var options = options ?? ConnectionOptions()
        // What the session's configuration says comes first.
        if options.givenAddresses(host: route.host, port: route.port) == nil {
            options.addresses[ConnectionOptions.Endpoint(host: route.host, port: route.port)] = known
        }
        return DirectedResolver(options, otherwise: resolver)
    }

    /// Whether connections of a route let the server choose HTTP/2.
    func offersHTTP2(for route: Route) -> Bool { route.mayUseHTTP2 && options?.httpVersions != .http1Only }

    /// Whether connections of a route speak HTTP/2 without having agreed on it: in clear, where nothing can be agreed on.
    func assumesHTTP2(for route: Route) -> Bool {
        guard options?.httpVersions == .http2PriorKnowledge, !route.isSecure else { return false }
        return route.details.map { $0.holder == nil && !$0.requiresHTTP1 && !$0.isForwarded } ?? true
    }

    func preparation(for route: Route) -> SocketPreparation? {
        guard let own = route.details?.needs else { return preparation }
        return SocketPreparation(options, own)
    }

    /// Where connections of a route lead, be it through a proxy.
    func destination(of route: Route) -> ServerName {
        let destination = options?.destination(host: route.host, port: route.port)
        return ServerName(host: destination?.host ?? route.host, port: destination?.port ?? route.port)
    }

    /// Begins to open a connection; to be called on the loop.
    ///
    /// - Parameters:
    ///   - route: Where to.
    ///   - room: The room that the dial was given; it gives back what it does not need, and what its sockets took when they are closed.
    ///   - adviser: Finds whom to ask about the connection, at the time of asking.
    ///   - completion: Called on the loop, exactly once unless the dial is cancelled, after this method returned, and within the
    ///     event that decided it: a handler that it adds to the channel sees every byte.
    /// - Returns: By which the dial can be cancelled.
    package func dial(
        _ route: Route, room: ConnectionBudget.Share? = nil, adviser: @escaping () -> (any HandshakeAdviser)? = { nil },
        completion: @escaping (Result<DialledChannel, LoadError>) -> Void
    ) -> Dial {
        loop.preconditionInEventLoop()
        let dial = Dial(route, by: self, room: room, advice: HandshakeAdvice(adviser), completion: completion)
        dial.start()
        return dial
    }
}
