// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import HTTPTransport
import LoadingModel
import NIOCore

/// Prepares a hop for a server that negotiates TLS 1.2 again to request a client certificate for a part of its site, as IIS and
/// Apache can.
///
/// Connections do not allow that, because of its history of attacks, and HTTP/2 forbids it (RFC 9113, section 9.2.1). If there is an
/// identity to present, the request is sent again, on a connection of its own that speaks HTTP/1.1 and allows it once.
enum Renegotiation {
    /// Returns whether the request is to be sent again.
    static func prepare(_ hop: Hop, in load: Load) async throws(LoadError) -> Bool {
        guard hop.authentication.renegotiating == nil,
            RetryPolicy.mayRepeat(method: hop.request.method, bodyIsReplayable: hop.request.body.isReplayable),
            let facts = load.transaction?.exchange?.facts, !facts.isForwarded, !facts.sentClientCertificate,
            let certificate = facts.serverCertificate, let keys = facts.trust?.keys,
            let origin = hop.request.url.flatMap({ Origin($0) }), origin.isSecure,
            let identity = try await identity(for: ServerName(host: origin.host, port: origin.port), of: load)
        else { return false }
        hop.authentication.renegotiating = ConnectionHolder(
            ConnectionHolder.Renegotiation(identity: identity, serverCertificate: certificate, keys: keys))
        return true
    }

    private static func identity(for server: ServerName, of load: Load) async throws(LoadError) -> ClientIdentity? {
        load.control.enter(.elsewhere)
        load.control.hold(now: .now())
        defer { load.control.endHold(now: .now()) }
        let slot = LoopSlot<IdentityAnswer>(load.control)
        load.findIdentity(for: server, isQueued: false) { answer in
            slot.fill(answer)
            return true
        }
        switch try await slot.wait() {
        case .identity(let identity): return identity
        case .none: return nil
        case .cancelled:
            throw LoadError(.cancelled, "the challenge for a client certificate of \(server.host) was cancelled")
        }
    }
}
