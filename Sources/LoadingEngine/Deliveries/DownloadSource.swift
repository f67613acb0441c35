// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import HTTPTransport
import HTTPWire
import LoadingModel
import LoadingStores

/// Describes where the bytes of a download came from, and decides whether a response from another source may continue the download.
///
/// Every hop that led to the response counts, because a redirect decides where the bytes come from. For each hop over TLS, the
/// description contains a voucher, which states why the server was trusted. The voucher names the system's roots, the session's
/// own roots or, if the app overruled the roots, the server's key. The voucher also covers the client certificate and a
/// substitute for the URL's endpoint. Loads with equal vouchers accept each other's servers. A hop in clear text has no voucher
/// for its server. The session's other TLS requirements, including pins, apply to the stored bytes as they would to a connection.
///
/// A credential of the session, or one that answered a challenge, is sealed with two keys that are not part of the resume data: the
/// key of the process, and a longer-lived key of the cache or the daemon. If the keys have changed, or if only Kerberos knows the
/// user, the credentials cannot be compared and are treated as different.
enum DownloadSource {
    /// Seals with a key of this process: a cache without a directory creates such a key.
    private static let processSeal = ResponseCache(memoryCapacity: 0, diskCapacity: 0, directory: nil).seal

    // MARK: Sources

    /// Returns the source of a response; the source is unknown unless all of the response came from the network.
    @inline(never)
    static func of(_ answer: Answer, in load: Load) async -> ResumePoint.Source {
        // A response that was completed with a stored part has the status 200, although the server sent 206.
        guard answer.transaction.exchange?.receivedHead.status == answer.response.head?.status else {
            return ResumePoint.Source()
        }
        var source = ResumePoint.Source()
        var vouchers: [[Data]] = []
        var users: Set<User> = []
        for transaction in load.followUp.redirected + [answer.transaction] {
            guard let origin = transaction.origin,
                let voucher = voucher(of: transaction, origin, in: load.session), let sent = transaction.sent
            else { return ResumePoint.Source() }
            vouchers.append(voucher)
            users.insert(User(origin, sent, of: transaction.request))
            guard let security = transaction.facts.flatMap({ ResponseTrust.security(of: $0) }) else { continue }
            source.connections[origin.host] = source.connections[origin.host]?.joined(with: security) ?? security
        }
        source.voucher = ResumePoint.Source.voucher(of: vouchers)
        source.credential = await credential(of: users, in: load)
        return source
    }

    /// Whether the existing part and the load's response have the same source, and the load would accept the connections of both.
    @inline(never)
    static func mayContinue(_ point: ResumePoint, by answer: Answer, in load: Load) async -> Bool {
        let session = load.session
        guard await of(answer, in: load).accepts(point.source) else { return false }
        return point.source.connections.allSatisfy { host, connection in
            ResponseTrust.admits(connection, host, by: session.security, session.policy)
        }
    }

    // MARK: Vouchers

    /// Returns the parts of the voucher for a hop's server; nil if they are not known.
    private static func voucher(of transaction: Transaction, _ origin: Origin, in session: SessionFacts) -> [Data]? {
        guard let facts = transaction.facts else { return nil }
        let policy = session.policy
        var parts: [Data]
        if let trust = facts.trust, !facts.isForwarded {
            guard ResponseTrust.security(of: facts) != nil else { return nil }
            if facts.isVerified {
                parts = [Data("roots".utf8)]
                if policy.hasOwnTrustRoots { parts.append(session.trustRootsDigest) }
            } else {
                guard let key = trust.keys.first else { return nil }
                parts = [Data("app".utf8), key]
            }
            if let certificate = trust.clientCertificate { parts += [Data("client".utf8), certificate] }
        } else {
            guard !origin.isSecure else { return nil }
            parts = [Data("clear".utf8)]
        }
        if policy.substitutes(origin), let connections = policy.connections {
            parts += connections.substitution(of: origin).map { Data($0.utf8) }
        }
        return parts
    }

    // MARK: Credentials

    /// The user to whom the server of a hop attributes the request.
    private enum User: Hashable {
        case none
        /// The app named the user in the request.
        case request
        case credential(String)
        case unknown

        init(_ origin: Origin, _ sent: SentFields, of request: LoadRequest) {
            switch sent.credential {
            case .field:
                guard let value = sent.headers.first(.authorization) else {
                    self = .none
                    return
                }
                self = value == request.headers.first(.authorization) ? .request : .credential(Self.text(origin, value))
            case .text(let text): self = .credential(Self.text(origin, text))
            case .unknown: self = .unknown
            }
        }

        private static func text(_ origin: Origin, _ credential: String) -> String {
            "\(origin.scheme) \(origin.host) \(origin.port) \(credential)"
        }
    }

    private static func credential(of users: Set<User>, in load: Load) async -> ResumePoint.Source.Credential {
        var isFromRequest = false
        var secrets: [String] = []
        for user in users {
            switch user {
            case .none: break
            case .request: isFromRequest = true
            case .credential(let text): secrets.append(text)
            case .unknown: return .unknown
            }
        }
        guard !secrets.isEmpty else { return isFromRequest ? .request : .none }
        // Each text is preceded by its length, so that different texts cannot produce the same result.
        let text = secrets.sorted().map { "\($0.utf8.count) \($0)" }.joined()
        let seals = await seals(of: "resume data \(isFromRequest) \(text)", in: load)
        return seals.isEmpty ? .unknown : .sealed(seals)
    }

    private static func seals(of text: String, in load: Load) async -> [String] {
        let stores = load.session.stores
        if let cache = stores.cache, !cache.seal.isReady { await readKey(of: cache, in: load) }
        return [processSeal.seal(text), stores.cache?.seal.seal(text), stores.resumeSeal?(text)].compactMap { $0 }
    }

    /// Reads the key of the cache's seal from the cache's disk, unless that takes too long.
    private static func readKey(of cache: ResponseCache, in load: Load) async {
        let sent = SentFields(HeaderBlock(), credential: .text(""))
        guard case .wait(let lookUp) = cache.lookUp(key: "", sent: sent, now: load.now, touchingDisk: false) else { return }
        _ = try? await CacheStage.found(by: lookUp, in: load.control, timeout: load.requestTimeout)
    }
}

extension ConnectionOptions {
    /// Describes the endpoint that replaces an origin's own endpoint.
    fileprivate func substitution(of origin: Origin) -> [String] {
        let destination = destination(host: origin.host, port: origin.port)
        return ["path", unixSocketPath ?? "", "to", destination.host, String(destination.port), "names"] + nameServers
            + ["addresses"] + (configuredAddresses(host: destination.host, port: destination.port) ?? [])
    }
}
