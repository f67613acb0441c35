// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import HTTPTransport
import HTTPWire
import LoadingModel
import NIOCore

/// What a session knows about where its origins may be reached over HTTP/3.
///
/// Confined to the session's loop, and kept in memory only.
final class HTTP3Directory: QUICDirectory {
    /// The number of choices after which an origin has no more endpoints.
    private static let maximumChoices = 8

    /// The alternative services that servers have announced.
    var alternatives = AlternativeServices()
    private var health = AlternativeHealth()
    private var assumed = AssumedOrigins()
    /// Whether the session demands HTTP/3, so that every origin is tried, and tried again after a failure.
    private let isDemanded: Bool
    /// Looks up HTTPS records, whose answers are kept for their TTL.
    private let records: ServiceBindingLookups
    private let loop: any EventLoop
    private var hasLookedUp = false
    private let now: () -> Double

    /// - Parameters:
    ///   - isDemanded: Whether the session demands HTTP/3.
    ///   - records: Looks up HTTPS records.
    ///   - loop: The session's loop.
    ///   - now: Returns the time in seconds of the session's clock.
    init(isDemanded: Bool, records: ServiceBindingLookups, loop: any EventLoop, now: @escaping () -> Double) {
        self.isDemanded = isDemanded
        self.records = records
        self.loop = loop
        self.now = now
    }

    // MARK: What the session learns

    /// Notes that the app says that an origin speaks HTTP/3.
    func assume(_ origin: Origin) { assumed.note(origin) }

    /// Handles a change of the machine's addresses: what failed in the last network may work in this one.
    func networkChanged() {
        alternatives.networkChanged()
        health.removeAll()
        forgetRecords()
    }

    func removeAll() {
        alternatives.removeAll()
        health.removeAll()
        assumed.removeAll()
        forgetRecords()
    }

    func forgetRecords() { if hasLookedUp { records.forget() } }

    /// Handles a server that says that it is not configured for an origin (421): none of the origin's endpoints is used for a while.
    func misdirected(_ origin: Origin) {
        // A choice has only the first of many endpoints.
        for _ in 0..<Self.maximumChoices {
            let endpoints = choice(of: origin).endpoints
            guard !endpoints.isEmpty else { return }
            for endpoint in endpoints { health.failed(endpoint.host, endpoint.port, of: origin, now: now()) }
        }
    }

    // MARK: Choosing

    /// Returns the endpoints for an origin, and why there are no others.
    func choice(of origin: Origin) -> HTTP3Choice {
        // Another session may have looked up the records, whose cache is shared.
        choice(of: origin, recorded: records.known(ServerName(host: origin.host, port: origin.port)) ?? [])
    }

    private func choice(of origin: Origin, recorded: [HTTPSEndpoint]) -> HTTP3Choice {
        let recorded = recorded.map { HTTP3Endpoint(host: $0.host, port: $0.port, source: .httpsRecord, addresses: $0.addresses) }
        let now = now()
        return HTTP3Choice(
            of: origin, announced: alternatives.services(of: origin, now: now), isAssumed: isDemanded || assumed.contains(origin),
            recorded: recorded, health: isDemanded ? AlternativeHealth() : health, now: now
        ) { host in
            // A name is looked up when it is dialed.
            guard let kind = AddressKind.named(host) else { return true }
            return kind == .global || AddressKind.named(origin.host)?.allows(kind) ?? false
        }
    }

    func endpoints(of origin: ServerName) -> [QUICEndpoint] { choice(of: Origin(origin)).endpoints.map(QUICEndpoint.init) }

    func lookUp(_ origin: ServerName, reply: @escaping ([QUICEndpoint]) -> Void) -> (() -> Void)? {
        hasLookedUp = true
        guard records.known(origin) == nil else { return nil }
        let bound = NIOLoopBound((directory: self, reply: reply), eventLoop: loop)
        return records.lookUp(origin, on: loop) { answer in
            let (directory, reply) = bound.value
            let found = (try? answer.get()) ?? []
            reply(directory.choice(of: Origin(origin), recorded: found).endpoints.map(QUICEndpoint.init))
        }
    }

    func succeeded(_ endpoint: QUICEndpoint, of origin: ServerName) {
        health.succeeded(endpoint.host, endpoint.port, of: Origin(origin))
    }

    func failed(_ endpoint: QUICEndpoint, of origin: ServerName) {
        health.failed(endpoint.host, endpoint.port, of: Origin(origin), now: now())
    }
}

extension Origin {
    /// The origin of an https URL.
    init(_ server: ServerName) { self.init(scheme: "https", host: server.host, port: server.port) }
}

extension QUICEndpoint {
    fileprivate init(_ endpoint: HTTP3Endpoint) {
        let source: Source =
            switch endpoint.source {
            case .assumption: .assumption
            case .alternativeService: .alternativeService
            case .httpsRecord: .httpsRecord
            }
        self.init(host: endpoint.host, port: endpoint.port, source: source, addresses: endpoint.addresses)
    }
}
