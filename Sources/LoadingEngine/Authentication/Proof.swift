//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
import HTTPRules
import LoadingModel

/// A credential that a server or proxy accepted, and what of it requests share: the counts of a nonce, authenticated connections.
///
/// Confined to the session's loop.
final class Proof {
    let scheme: AuthenticationScheme
    let realm: String?
    /// Nil for the ticket of whoever runs the process (Kerberos).
    let credential: LoadCredential?
    var digest: DigestSession?
    /// Whose the connections are that were authenticated with it (NTLM, Negotiate).
    let holder: ConnectionHolder?
    /// Of the connection that Negotiate began over last.
    var binding: ChannelBinding?

    init(
        scheme: AuthenticationScheme, realm: String?, credential: LoadCredential?, digest: DigestSession? = nil,
        holder: ConnectionHolder? = nil
    ) {
        self.scheme = scheme
        self.realm = realm
        self.credential = credential
        self.digest = digest
        self.holder = holder
    }

    /// Whether a challenge is of the space that this was for.
    func isFor(_ scheme: AuthenticationScheme, _ challenge: AuthenticateHeader.Challenge) -> Bool {
        self.scheme == scheme && (scheme.hasLegs || realm == challenge.realm)
    }
}
