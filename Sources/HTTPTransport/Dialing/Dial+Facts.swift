// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import LoadingModel
import NIOCore

/// The handshake, and the facts about a dialed connection.
extension Dialer.Dial {
    func secure(_ channel: any Channel) {
        guard !isOver else { return }
        let start = now()
        dialer.tls.secure(
            channel, to: ServerName(host: route.host, port: route.port), demands: demands, isInner: route.proxy?.kind == .https,
            versions: versions, advice: advice,
            reach: reach(channel), renegotiation: route.details?.holder?.renegotiation
        ) { [self] result in
            switch result {
            case .success(let agreed): finish(with: channel, secured: (agreed, start))
            case .failure(let error): finish(.failure(error))
            }
        }
    }

    func finish(
        with channel: any Channel, secured: (agreed: TLSSession.Agreement, start: Double)? = nil, early: ByteBuffer = ByteBuffer()
    ) {
        finish(
            .success(
                DialledChannel(
                    channel: channel, facts: facts(channel, secured: secured), keptChain: keptChain(channel, secured?.agreed),
                    early: early)))
    }

    private func keptChain(_ channel: any Channel, _ agreed: TLSSession.Agreement?) -> KeptChain? {
        guard let agreed, !agreed.serverChain.isEmpty else { return nil }
        return KeptChain(
            agreed.serverChain, reach: reach(channel) ?? .global,
            isForAllDelegates: agreed.isVerified && !agreed.wasAskedForCertificate && !advice.isTunnelAuthenticated,
            acceptedBy: agreed.acceptedBy)
    }

    /// The kind of the server's address; nil if a proxy connects to the server.
    func reach(_ channel: any Channel) -> AddressKind? {
        route.proxy == nil ? channel.remoteAddress.map(AddressKind.init) : nil
    }

    private func facts(_ channel: any Channel, secured: (agreed: TLSSession.Agreement, start: Double)?) -> ConnectionFacts {
        let end = now()
        return ConnectionFacts(
            localAddress: channel.localAddress?.ipAddress,
            localPort: channel.localAddress?.port,
            remoteAddress: channel.remoteAddress?.ipAddress,
            remotePort: channel.remoteAddress?.port,
            tlsVersion: secured?.agreed.version,
            tlsCipherSuite: secured?.agreed.cipherSuite,
            domainLookupStart: domainLookupStart,
            domainLookupEnd: domainLookupEnd,
            connectStart: connectStart,
            secureConnectionStart: secured?.start,
            secureConnectionEnd: secured == nil ? nil : end,
            connectEnd: end,
            wasAskedForCertificate: secured?.agreed.wasAskedForCertificate ?? false,
            sentClientCertificate: secured?.agreed.sentClientCertificate ?? false,
            isVerified: secured?.agreed.isVerified ?? false,
            serverCertificate: secured?.agreed.serverCertificate,
            isToProxy: route.proxy != nil,
            isMultipath: dialer.usesMultipath && SocketPreparation.isMultipath(channel),
            isForwarded: route.details?.isForwarded ?? false,
            interface: network?.interface(from: channel.localAddress?.ipAddress),
            usedNameServers: resolver.asksNameServers(for: peer.host, port: peer.port),
            isInTLS: secured != nil || route.proxy?.kind == .https,
            applicationProtocol: secured?.agreed.applicationProtocol,
            trust: trust(secured?.agreed)
        )
    }

    /// Notes that an adviser no longer waits for this connection.
    package func left(_ adviser: any HandshakeAdviser) { advice.left(adviser) }

    private func trust(_ agreed: TLSSession.Agreement?) -> ConnectionTrust? {
        guard var trust = agreed?.trust else { return nil }
        trust.judge = route.details?.judge ?? agreed?.acceptedBy.first ?? nil
        return trust
    }
}
