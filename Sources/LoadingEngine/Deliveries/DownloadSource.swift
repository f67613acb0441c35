//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import FoundationEssentials
import HTTPRules
import HTTPTransport
import HTTPWire
import LoadingModel
import LoadingStores

/// Says what a download came by, and whether it may be continued by a load whose answer came by something else.
///
/// Every hop that led to the answer counts, since a redirect decides whose bytes come. What vouches for a hop's server is nothing in clear;
/// over TLS it is the system's roots, the session's own roots, or, where the app overruled them, the server's own key. The client certificate
/// that was shown and the end that was put in place of the URL's are part of it. Loads that agree in all of this accept each other's servers.
/// What a session demands of TLS besides, pins included, is applied to the stored bytes as to a connection.
///
/// A credential of the session's, or one that answered a challenge, is sealed under keys that are no part of resume data: the process's, and
/// the cache's or the daemon's, which last longer. Where no key is the same, and where the user is known to Kerberos alone, nothing shows that
/// the credential is the same.
enum DownloadSource {
    /// Of every cache without a directory, the key is its own; this one's is the process's.
    private static let processSeal = ResponseCache(memoryCapacity: 0, diskCapacity: 0, directory: nil).seal

    // MARK: What comes

    /// What an answer came by; unknown where it did not all come from the network.
    @inline(never)
    static func of(_ answer: Answer, in load: Load) async -> ResumePoint.Source {
        // Where a stored part completes it, it says 200 in place of 206.
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

    /// Whether what is there came by what the load's answer came by, and by no connection that the load would have refused.
    @inline(never)
    static func mayContinue(_ point: ResumePoint, by answer: Answer, in load: Load) async -> Bool {
        let session = load.session
        guard await of(answer, in: load).accepts(point.source) else { return false }
        return point.source.connections.allSatisfy { host, connection in
            ResponseTrust.admits(connection, host, by: session.security, session.policy)
        }
    }

    // MARK: Vouchers

    /// The parts of what vouched for the server of a hop; nil where that is not known.
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

    /// Whom the server of a hop took the request to come from.
    private enum User: Hashable {
        case none
        /// What the app said in the request.
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
        var isRequests = false
        var secrets: [String] = []
        for user in users {
            switch user {
            case .none: break
            case .request: isRequests = true
            case .credential(let text): secrets.append(text)
            case .unknown: return .unknown
            }
        }
        guard !secrets.isEmpty else { return isRequests ? .request : .none }
        // A length before each tells where it ends.
        let text = secrets.sorted().map { "\($0.utf8.count) \($0)" }.joined()
        let seals = await seals(of: "resume data \(isRequests) \(text)", in: load)
        return seals.isEmpty ? .unknown : .sealed(seals)
    }

    private static func seals(of text: String, in load: Load) async -> [String] {
        let stores = load.session.stores
        if let cache = stores.cache, !cache.seal.isReady { await readKey(of: cache, in: load) }
        return [processSeal.seal(text), stores.cache?.seal.seal(text), stores.resumeSeal?(text)].compactMap { $0 }
    }

    /// Has the key of the cache's seal read from its disk, as far as that comes in time.
    private static func readKey(of cache: ResponseCache, in load: Load) async {
        let sent = SentFields(HeaderBlock(), credential: .text(""))
        guard case .wait(let lookUp) = cache.lookUp(key: "", sent: sent, now: load.now, touchingDisk: false) else { return }
        _ = try? await CacheStage.found(by: lookUp, in: load.control, timeout: load.requestTimeout)
    }
}

extension ConnectionOptions {
    /// What is put in place of an origin's own end, in words.
    fileprivate func substitution(of origin: Origin) -> [String] {
        let destination = destination(host: origin.host, port: origin.port)
        return ["path", unixSocketPath ?? "", "to", destination.host, String(destination.port), "names"] + nameServers
            + ["addresses"] + (givenAddresses(host: destination.host, port: destination.port) ?? [])
    }
}
