// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import LoadingModel

/// A credential that a server or proxy accepted, or that is being tried, with the state that requests share: nonce counts and
/// authenticated connections.
///
/// Confined to the session's loop.
final class Proof {
    let scheme: AuthenticationScheme
    let realm: String?
    /// Nil for the Kerberos ticket of the user who runs the process.
    let credential: LoadCredential?
    var digest: DigestSession?
    /// The holder of the connections that this credential has authenticated (NTLM, Negotiate).
    let holder: ConnectionHolder?
    /// The channel binding of the last connection on which Negotiate began.
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

    /// Whether a challenge belongs to the protection space of this proof.
    func isFor(_ scheme: AuthenticationScheme, _ challenge: AuthenticateHeader.Challenge) -> Bool {
        self.scheme == scheme && (scheme.isMultiStep || realm == challenge.realm)
    }
}
