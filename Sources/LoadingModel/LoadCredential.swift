// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials

/// The content of a `URLCredential`, as a value.
package struct LoadCredential: Sendable, Hashable {
    package enum Kind: Sendable, Hashable {
        case password(user: String, password: String)
        case identity(ClientIdentity)
        /// Trust in the server's certificate.
        case trust
    }

    /// Raw values as in `URLCredential.Persistence`.
    package enum Persistence: UInt, Sendable {
        case none = 0
        case forSession = 1
        case permanent = 2
        case synchronizable = 3
    }

    package var kind: Kind
    package var persistence: Persistence

    package init(_ kind: Kind, persistence: Persistence) {
        self.kind = kind
        self.persistence = persistence
    }

    package var user: String? {
        if case .password(let user, _) = kind { user } else { nil }
    }

    package var password: String? {
        if case .password(_, let password) = kind { password } else { nil }
    }
}

extension LoadCredential: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The kind and the persistence; secrets are never printed.
    package var description: String {
        switch kind {
        case .password: "a password (\(persistence))"
        case .identity: "a client certificate (\(persistence))"
        case .trust: "trust in a server"
        }
    }

    package var debugDescription: String { description }

    package var customMirror: Mirror { Mirror(self, children: ["persistence": persistence]) }
}

/// A client certificate with its private key.
package struct ClientIdentity: Sendable, Hashable {
    /// In DER: the client's own first, followed by its issuers'.
    package var certificates: [Data]
    /// PKCS #8 in DER, not encrypted.
    package var privateKey: Data

    package init(certificates: [Data], privateKey: Data) {
        self.certificates = certificates
        self.privateKey = privateKey
    }
}

extension ClientIdentity: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// A description without the key.
    package var description: String { "an identity with \(certificates.count) certificate\(certificates.count == 1 ? "" : "s")" }

    package var debugDescription: String { description }

    package var customMirror: Mirror { Mirror(self, children: ["certificates": certificates]) }
}
