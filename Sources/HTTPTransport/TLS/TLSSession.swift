// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
package import HTTPRules
package import HTTPWire
package import LoadingModel
import LoadingTrust
import NIOCore
import NIOSSL

/// Performs TLS handshakes according to one policy; may be used on any loop.
package final class TLSSession: Sendable {
    /// The parameters that were negotiated in the handshake.
    package struct Agreement: Sendable, Hashable {
        /// The version number on the wire (0x0304 is TLS 1.3).
        package var version: UInt16?
        /// The IANA number of the cipher suite.
        package var cipherSuite: UInt16?
        /// The ALPN identifier; nil if the server chose none.
        package var applicationProtocol: String?
        /// Whether the server requested a client certificate.
        package var wasAskedForCertificate = false
        /// Whether the client presented a certificate.
        package var sentClientCertificate = false
        /// Whether the server's chain ends in a trusted root, rather than being trusted only by the app.
        package var isVerified = false
        /// The server's certificate, in DER.
        package var serverCertificate: Data? { serverChain.first }
        /// The chain that the server presented, the server's own certificate first.
        package var serverChain: [Data] = []
        package var trust = ConnectionTrust()
        /// The delegates that were asked about the server; nil stands for the session's.
        package var acceptedBy: [ConnectionHolder?] = []
    }

    package let policy: TLSPolicy

    package init(policy: TLSPolicy) { self.policy = policy }

    /// Prepares the TLS context for a first handshake, so that the context is available once the TCP connection is established.
    package func prepare(_ demands: TLSDemands, versions: HTTPVersions) {
        TLSContexts.context(for: policy.strengthened(by: demands, versions: versions)) { _ in }
        TrustRoots.prepare(policy.trustRoots)
    }

    /// Performs the client's handshake; call it on the channel's loop.
    ///
    /// - Parameters:
    ///   - channel: A connected channel that is not reading yet (`autoRead` off): the handshake may have to wait for the TLS
    ///     context, and what the server sends in the meantime must not be lost.
    ///   - server: The name or address that the server's certificate must be valid for.
    ///   - demands: The requirements of App Transport Security for this server.
    ///   - isInner: Whether the channel already uses TLS, with a proxy.
    ///   - versions: The versions of HTTP among which the server may choose.
    ///   - advice: Asked to judge the server's certificate, and for the client's certificate.
    ///   - reach: The kind of the server's address; nil if a proxy connects to the server.
    ///   - renegotiation: Set if the server may negotiate TLS again, once.
    ///   - completion: Called on the loop, once, within the event that decided the handshake. After a failure the channel is
    ///     closed.
    func secure(
        _ channel: any Channel, to server: ServerName, demands: TLSDemands, isInner: Bool = false,
        versions: HTTPVersions = .http1,
        advice: HandshakeAdvice, reach: AddressKind? = nil, renegotiation: ConnectionHolder.Renegotiation? = nil,
        completion: @escaping (Result<Agreement, LoadError>) -> Void
    ) {
        let loop = channel.eventLoop
        let judge = HandshakeJudge(
            of: server, roots: policy.trustRoots, demands: demands, advice: advice, reach: reach ?? .global,
            renegotiation: renegotiation, on: loop)
        let handshake = TLSHandshake(judgedBy: judge, policy: policy, completion: completion)
        let bound = NIOLoopBound((channel: channel, handshake: handshake), eventLoop: loop)
        let policy = policy.strengthened(by: demands, versions: versions)
        let begin: @Sendable (Result<NIOSSLContext, LoadError>) -> Void = { result in
            if loop.inEventLoop {
                Self.begin(bound.value.channel, server.host, result, bound.value.handshake, isInner: isInner)
            } else {
                loop.execute { Self.begin(bound.value.channel, server.host, result, bound.value.handshake, isInner: isInner) }
            }
        }
        if let renegotiation {
            TLSContexts.context(for: policy, presenting: renegotiation.identity, reply: begin)
        } else {
            TLSContexts.context(for: policy, reply: begin)
        }
    }

    private static func begin(
        _ channel: any Channel, _ host: String, _ context: Result<NIOSSLContext, LoadError>, _ handshake: TLSHandshake,
        isInner: Bool
    ) {
        do {
            guard channel.isActive else { throw ChannelError.eof }
            // SNI is for host names only (RFC 6066, section 3).
            let name = AddressLiteral.isAddress(host) ? nil : host.hasSuffix(".") ? String(host.dropLast()) : host
            let security = try NIOSSLClientHandler(
                context: try context.get(),
                serverHostname: name,
                customVerificationCallback: { handshake.verify($0, verdict: $1) }
            )
            handshake.security = security
            // The handlers are added from tail to head, so that all of them are in place when the TLS handler sends its
            // ClientHello.
            let pipeline = channel.pipeline.syncOperations
            try pipeline.addHandler(handshake)
            let outer = isInner ? try pipeline.handler(type: NIOSSLClientHandler.self) : nil
            try pipeline.addHandler(security, position: outer.map { .after($0) } ?? .first)
            try pipeline.addHandler(handshake.hello, position: outer.map { .after($0) } ?? .first)
            try channel.syncOptions?.setOption(.autoRead, value: true)
        } catch {
            channel.close(promise: nil)
            handshake.fail(error)
        }
    }
}

extension TLSPolicy {
    /// Returns this policy, combined with the demands of App Transport Security for one server and the versions to offer.
    func strengthened(by demands: TLSDemands, versions: HTTPVersions) -> TLSPolicy {
        var policy = self
        policy.versions = versions
        if let minimum = demands.minimumVersion { policy.minimumVersion = max(policy.minimumVersion, minimum) }
        policy.requiresForwardSecrecy = policy.requiresForwardSecrecy || demands.requiresForwardSecrecy
        return policy
    }
}
