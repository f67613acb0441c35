//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import FoundationEssentials
import LoadingModel

struct WireCredential: WireValue {
    enum Kind: String { case password, identity, trust }

    var kind: String
    var user: String?
    var password: String?
    var certificates: [Data]?
    var privateKey: Data?
    var persistence: Int?

    private static let certificateLimit = 100

    init(_ credential: LoadCredential) {
        switch credential.kind {
        case .password(let user, let password):
            kind = Kind.password.rawValue
            self.user = user
            self.password = password
        case .identity(let identity):
            kind = Kind.identity.rawValue
            certificates = identity.certificates
            privateKey = identity.privateKey
        case .trust: kind = Kind.trust.rawValue
        }
        persistence = Int(exactly: credential.persistence.rawValue)?.unless(0)
    }

    func model() throws -> LoadCredential {
        let content: LoadCredential.Kind
        switch try Wire.need(Kind(rawValue: kind), "a credential's kind") {
        case .password: content = .password(user: try Wire.need(user, "a user"), password: try Wire.need(password, "a password"))
        case .identity:
            content = .identity(
                ClientIdentity(
                    certificates: try Wire.list(certificates, "an identity", limit: Self.certificateLimit),
                    privateKey: try Wire.need(privateKey, "a private key")))
        case .trust: content = .trust
        }
        let persistence = persistence.flatMap { UInt(exactly: $0) }.flatMap { LoadCredential.Persistence(rawValue: $0) }
        return LoadCredential(content, persistence: persistence ?? .none)
    }
}

struct WireSpace: WireValue {
    var host: String
    var port: Int
    var kind: String
    var isProxy: Bool?
    var realm: String?
    var method: String

    init(_ space: ProtectionSpace) {
        host = space.host
        port = space.port
        kind = space.kind
        isProxy = space.isProxy.unless(false)
        realm = space.realm
        method = space.method.rawValue
    }

    func model() throws -> ProtectionSpace {
        ProtectionSpace(
            host: host, port: try Wire.port(port, "a protection space's port"), kind: kind, isProxy: isProxy ?? false,
            realm: realm,
            method: try Wire.need(AuthenticationMethod(rawValue: method), "a method of authentication"))
    }
}

struct WireChallenge: WireValue {
    var space: WireSpace
    var serverTrust: [Data]?
    var distinguishedNames: [Data]?
    var previousFailureCount: Int?
    var proposed: WireCredential?
    var response: WireResponse?

    init(_ challenge: ChallengeQuestion) throws {
        space = WireSpace(challenge.space)
        serverTrust = challenge.serverTrust.unlessEmpty
        distinguishedNames = challenge.distinguishedNames.unlessEmpty
        previousFailureCount = challenge.previousFailureCount.unless(0)
        proposed = challenge.proposed.map { WireCredential($0) }
        response = try challenge.response.map { try WireResponse($0) }
    }

    func model() throws -> ChallengeQuestion {
        var challenge = ChallengeQuestion(try space.model())
        challenge.serverTrust = serverTrust ?? []
        challenge.distinguishedNames = distinguishedNames ?? []
        challenge.previousFailureCount = max(0, previousFailureCount ?? 0)
        challenge.proposed = try proposed?.model()
        challenge.response = try response?.model()
        return challenge
    }
}
