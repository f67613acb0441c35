// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import HTTPTransport
import HTTPWire
import LoadingModel
import LoadingStores

/// Decides which stored responses a load may use, and where the load's own responses are stored.
///
/// A store that other sessions read (``SessionStores``) takes a response only if every session would have accepted the response's
/// connection. Such a connection is in clear text, or leads to a server that the system's roots trust, without a client
/// certificate. In both cases, the server must have been found through the URL and the system's lookup. All other responses
/// belong to this session only (``OwnResponses``).
enum ResponseTrust {
    // MARK: Received responses

    /// Whether a connection's response may be stored where other sessions read it.
    @inline(__always)
    static func isForEveryone(_ facts: ConnectionFacts, _ request: LoadRequest, in session: SessionFacts) -> Bool {
        if session.mayReachOtherServers {
            guard let origin = request.url.flatMap({ Origin($0) }), mayUseSharedResponses(origin, in: session) else {
                return false
            }
        }
        guard let trust = facts.trust, !facts.isForwarded else { return true }
        return facts.isVerified && trust.clientCertificate == nil
    }

    /// Returns the store for the response to a hop.
    ///
    /// Nil if the session has no cache, or if the app has its own cache and the response is for this session only.
    static func keeper(of exchange: Exchange, _ hop: Hop, in load: Load) -> ResponseKeeper? {
        let session = load.session
        if isForEveryone(exchange.facts, hop.request, in: session) { return sharedKeeper(in: load) }
        guard let cache = session.stores.cache, !load.wants(.cache) else { return nil }
        let stores = hop.request.method == "GET" && load.mayUseCache
        if stores, session.own == nil { session.own = OwnResponses(partOf: cache) }
        return session.own?.part(for: circle(of: exchange.facts), making: stores).map { .store($0) }
    }

    /// Returns the session's cache, which other sessions may read.
    static func sharedKeeper(in load: Load) -> ResponseKeeper? {
        load.wants(.cache) ? .app : load.session.stores.cache.map { .store($0) }
    }

    /// Whether a response may change the content that the session reads from the shared stores.
    ///
    /// True if every session accepts the response's server, even if the response itself is for this session only.
    static func mayChangeSharedStores(_ exchange: Exchange, _ hop: Hop, in load: Load) -> Bool {
        if isForEveryone(exchange.facts, hop.request, in: load.session) { return true }
        guard exchange.facts.isVerified, let origin = hop.request.url.flatMap({ Origin($0) }) else { return false }
        return mayUseSharedResponses(origin, in: load.session)
    }

    private static func circle(of facts: ConnectionFacts) -> OwnResponses.Circle {
        guard let trust = facts.trust, !facts.isForwarded else {
            return OwnResponses.Circle(voucher: .roots, clientCertificate: nil)
        }
        return OwnResponses.Circle(
            voucher: facts.isVerified ? .roots : .app(trust.judge), clientCertificate: trust.clientCertificate)
    }

    /// Returns the TLS properties of an exchange's connection, to be stored with its response; nil in clear text.
    static func security(of facts: ConnectionFacts) -> ConnectionSecurity? {
        guard let trust = facts.trust, !facts.isForwarded, let version = facts.tlsVersion else { return nil }
        return ConnectionSecurity(
            version: version, cipherSuite: facts.tlsCipherSuite, hasStrongKeys: trust.hasStrongKeys, keys: trust.keys)
    }

    // MARK: Stored responses

    /// Whether a load to an origin may use responses that every session accepts.
    ///
    /// False if the load would reach a server other than the one that sent those responses, or if the session trusts other roots.
    @inline(__always)
    static func mayUseSharedResponses(_ origin: @autoclosure () -> Origin, in session: SessionFacts) -> Bool {
        session.mayReachOtherServers ? mayUseSharedResponses(origin(), by: session.policy) : true
    }

    static func mayUseSharedResponses(_ origin: Origin, by policy: SessionPolicy) -> Bool {
        !(origin.isSecure && policy.hasOwnTrustRoots || policy.substitutes(origin))
    }

    /// Whether the settings of a session allow the connection of a stored response.
    ///
    /// A response that the app stored itself has no connection; the app is responsible for the response.
    static func admits(
        _ stored: StoredResponse, _ origin: Origin, by security: AppTransportSecurity, _ policy: SessionPolicy
    ) -> Bool {
        guard origin.isSecure, let connection = stored.security else { return true }
        return admits(connection, origin.host, by: security, policy)
    }

    /// Whether the settings of a session allow a connection to a host.
    static func admits(
        _ connection: ConnectionSecurity, _ host: String, by security: AppTransportSecurity, _ policy: SessionPolicy
    ) -> Bool {
        guard case .allowed(let demands) = security.verdict(isSecure: true, host: host) else { return false }
        let lowest = policy.minimumTLSVersion ?? 0x0303
        return connection.satisfies(demands, versions: lowest...max(lowest, policy.maximumTLSVersion ?? .max))
    }

    /// Returns a response that is stored for this session only.
    static func ownHit(_ target: RequestTarget, _ sent: SentFields, in load: Load) -> (ResponseCache.Hit, ResponseCache)? {
        guard let own = load.session.own else { return nil }
        let server = ServerName(host: target.origin.host, port: target.origin.port)
        let judge = load.order.connectionHolder
        let identity = load.session.credentials.identity(for: server, judge: judge)
        for part in own.parts(admitting: judge, identity) {
            let found = part.lookUp(key: CacheKey.text(of: target), sent: sent, now: load.now, touchingDisk: false)
            guard case .hit(let hit) = found else { continue }
            own.use(part)
            return (hit, part)
        }
        return nil
    }

    // MARK: Failures

    /// Whether a failure means that the server is not trusted, or that the app rejects the server.
    ///
    /// A stored response must not hide such a failure.
    static func isRefusal(_ error: LoadError) -> Bool {
        switch error.kind {
        case .secureConnectionFailed, .serverCertificateHasBadDate, .serverCertificateUntrusted, .serverCertificateHasUnknownRoot,
            .serverCertificateNotYetValid, .clientCertificateRejected, .clientCertificateRequired, .cancelled,
            .userCancelledAuthentication, .userAuthenticationRequired, .appTransportSecurityRequiresSecureConnection:
            true
        default: false
        }
    }
}

/// Decides what happens to a stored response when a newer response updates it.
struct ResponseRenewal: Sendable {
    enum Outcome {
        case update(StoredResponse)
        case remove
        /// The stored response is left unchanged.
        case nothing
    }

    /// The connection security of the received response.
    private let security: ConnectionSecurity?
    private let isOfKnownCredential: Bool

    init(_ exchange: Exchange, _ sent: SentFields?) {
        security = ResponseTrust.security(of: exchange.facts)
        isOfKnownCredential = sent.map { $0.credential != .unknown } ?? false
    }

    /// Decides what happens to the stored response.
    ///
    /// Only loads that would accept both connections use an updated response. The stored response is left unchanged if the newer
    /// one came from another server, even one that the roots trust. The stored response is removed if the credential of the newer
    /// request is unknown.
    ///
    /// - Parameter renewed: The response with the received fields; nil if it must not be kept.
    /// - Returns: What to do with the stored response.
    func outcome(_ renewed: StoredResponse?) -> Outcome {
        guard var renewed, isOfKnownCredential else { return .remove }
        if let own = renewed.security {
            guard let common = security.flatMap({ own.common(with: $0) }) else { return .nothing }
            renewed.security = common
        } else {
            renewed.security = security
        }
        return .update(renewed)
    }
}

/// Where a response is stored.
enum ResponseKeeper {
    /// In the app's own cache, which has to be asked.
    case app
    case store(ResponseCache)

    var store: ResponseCache? {
        if case .store(let store) = self { store } else { nil }
    }

    /// Returns a request's fields in the form in which this store compares them.
    ///
    /// Nil if the response must not be stored: the credential is unknown, or the seal's key has not been read yet.
    func fields(of sent: SentFields?) -> HeaderBlock? {
        guard let sent, sent.credential != .unknown else { return nil }
        // The app's own cache receives the credential in clear text.
        guard let seal = store?.seal else { return sent.plain }
        return sent.sealed(by: seal)
    }

    func isSame(as other: ResponseKeeper?) -> Bool {
        switch (self, other) {
        case (.app, .app): true
        case (.store(let store), .store(let other)): store === other
        case (.app, _), (.store, _): false
        }
    }
}

extension SessionPolicy {
    func substitutes(_ origin: Origin) -> Bool { connections?.substitutes(host: origin.host, port: origin.port) ?? false }

    /// Whether the session may reach, or accept, a server for a URL that other sessions would not.
    var mayReachOtherServers: Bool {
        if hasOwnTrustRoots { return true }
        guard let connections else { return false }
        return connections.unixSocketPath != nil || !connections.nameServers.isEmpty || !connections.addresses.isEmpty
            || !connections.substitutions.isEmpty
    }
}
