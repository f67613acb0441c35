// SPDX-License-Identifier: Apache-2.0

/// The endpoints at which an origin is tried over HTTP/3, and the reasons why others are not.
package struct HTTP3Choice: Hashable, Sendable {
    /// The maximum number of endpoints.
    package static let maximumCount = 4

    /// The endpoints, the preferred first; none twice.
    package private(set) var endpoints: [HTTP3Endpoint] = []
    /// Why there are no other endpoints.
    package private(set) var obstacles: [HTTP3Obstacle] = []

    private let origin: Origin

    /// Chooses endpoints.
    ///
    /// HTTPS records are preferred, because they are newer than fields of earlier responses, then the app's assumption, then
    /// alternative services. An endpoint that several of them name counts as an alternative service, as which the request names it
    /// (`Alt-Used`; RFC 7838, section 5), and keeps the best place.
    ///
    /// - Parameters:
    ///   - origin: The origin, which must be secure.
    ///   - announced: The origin's alternative services (``AlternativeServices``).
    ///   - isAssumed: Whether the app says that the origin speaks HTTP/3.
    ///   - recorded: The endpoints in HTTPS records.
    ///   - health: The endpoints that failed.
    ///   - now: The time of the services and of `health`.
    ///   - allows: Whether an alternative service may be at a host, if that is a literal address.
    package init(
        of origin: Origin, announced: [AlternativeService], isAssumed: Bool, recorded: [HTTP3Endpoint],
        health: AlternativeHealth, now: Double, allows: (_ host: String) -> Bool
    ) {
        self.origin = origin
        guard origin.isSecure else {
            obstacles = [.cleartext]
            return
        }
        for endpoint in recorded { add(endpoint, health, now) }
        if isAssumed { add(HTTP3Endpoint(host: origin.host, port: origin.port, source: .assumption), health, now) }
        for service in announced {
            if let obstacle = obstacle(to: service, allows) {
                object(obstacle)
            } else {
                add(
                    HTTP3Endpoint(host: service.host ?? origin.host, port: service.port, source: .alternativeService), health, now
                )
            }
        }
        endpoints = Array(endpoints.prefix(Self.maximumCount))
        if endpoints.isEmpty, obstacles.isEmpty { obstacles = [.unannounced] }
    }

    private mutating func add(_ endpoint: HTTP3Endpoint, _ health: AlternativeHealth, _ now: Double) {
        if let end = health.pauseEnd(endpoint.host, endpoint.port, of: origin, now: now) {
            return object(.broken(host: endpoint.host, port: endpoint.port, until: end))
        }
        if let index = endpoints.firstIndex(where: { $0.host == endpoint.host && $0.port == endpoint.port }) {
            if endpoint.source == .alternativeService { endpoints[index].source = .alternativeService }
            if endpoints[index].addresses.isEmpty { endpoints[index].addresses = endpoint.addresses }
        } else {
            endpoints.append(endpoint)
        }
    }

    private mutating func object(_ obstacle: HTTP3Obstacle) {
        if !obstacles.contains(obstacle) { obstacles.append(obstacle) }
    }

    private func obstacle(to service: AlternativeService, _ allows: (String) -> Bool) -> HTTP3Obstacle? {
        guard service.protocolID.elementsEqual("h3".utf8) else {
            return .otherProtocol(String(decoding: service.protocolID, as: UTF8.self))
        }
        if service.port >= 1_024, origin.port < 1_024 { return .unprivilegedPort(service.port) }
        if let host = service.host, host != origin.host, !allows(host) { return .privateAddress(host) }
        return nil
    }
}

/// What a session knows about HTTP/3 for an origin, to be shown to people.
package struct HTTP3Standing: Sendable {
    /// The name and the path of the library that speaks QUIC; nil if none is open.
    package let library: String?
    /// The reason why the session cannot use HTTP/3 for any origin.
    package let obstacle: HTTP3Obstacle?
    package let choice: HTTP3Choice

    package init(library: String?, obstacle: HTTP3Obstacle?, choice: HTTP3Choice) {
        self.library = library
        self.obstacle = obstacle
        self.choice = choice
    }
}
