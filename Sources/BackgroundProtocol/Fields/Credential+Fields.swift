// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import LoadingModel

extension LoadCredential: CodedKinds {
    init(kind: String, from coder: Coder) throws {
        let content: Kind
        switch kind {
        case "password": content = .password(user: try coder.required(2, "user"), password: try coder.required(3, "password"))
        case "identity":
            content = .identity(
                ClientIdentity(
                    certificates: try coder.list(4, "certificates", nil, .list("an identity", limit: Limits.certificates)),
                    privateKey: try coder.required(5, "privateKey")))
        case "trust": content = .trust
        default: throw coder.fault("has an unknown kind")
        }
        self.init(content, persistence: .none)
        try coder.choice(6, "persistence", .none, &persistence)
    }

    func write(to coder: Coder) throws {
        switch kind {
        case .password(let user, let password):
            try coder.kind("password")
            try coder.required(2, "user", user)
            try coder.required(3, "password", password)
        case .identity(let identity):
            try coder.kind("identity")
            try coder.required(4, "certificates", identity.certificates, .list("an identity", limit: Limits.certificates))
            try coder.required(5, "privateKey", identity.privateKey)
        case .trust: try coder.kind("trust")
        }
        var persistence = persistence
        try coder.choice(6, "persistence", .none, &persistence)
    }
}

extension AuthenticationMethod: Coded {}

extension ProtectionSpace: CodedFields {
    static var blank: Self { Self(host: "", port: 0, kind: "", method: .default) }

    mutating func visit(_ coder: Coder) throws {
        try coder.required(1, "host", &host)
        try coder.required(2, "port", &port, .port("a protection space's port"))
        try coder.required(3, "kind", &kind)
        try coder.defaulted(4, "isProxy", false, &isProxy)
        try coder.optional(5, "realm", &realm)
        try coder.required(6, "method", &method)
    }
}

extension ChallengeQuestion: CodedFields {
    static var blank: Self { Self(.blank) }

    mutating func visit(_ coder: Coder) throws {
        try coder.required(1, "space", &space)
        try coder.list(2, "serverTrust", &serverTrust)
        try coder.list(3, "distinguishedNames", &distinguishedNames)
        try coder.defaulted(4, "previousFailureCount", 0, &previousFailureCount, .atLeast(0))
        try coder.optional(5, "proposed", &proposed)
        try coder.optional(6, "response", &response)
    }
}

extension BackgroundSettings.KnownCredential: CodedFields {
    static var blank: Self { Self(space: .blank, credential: LoadCredential(.trust, persistence: .none), isDefault: false) }

    mutating func visit(_ coder: Coder) throws {
        try coder.required(1, "space", &space)
        try coder.required(2, "credential", &credential)
        try coder.defaulted(3, "isDefault", false, &isDefault)
    }
}
