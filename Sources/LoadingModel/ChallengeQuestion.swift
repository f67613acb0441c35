// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials

/// A challenge for the app: from a server or proxy that requires authentication (RFC 9110, section 11.3), or from a TLS handshake.
package struct ChallengeQuestion: Sendable {
    package var space: ProtectionSpace
    /// The certificates that the server presented, in DER, its own first; only for ``AuthenticationMethod/serverTrust``.
    package var serverTrust: [Data] = []
    /// Fetches the certificate of an issuer that the server did not send; nil if the session fetches none.
    ///
    /// The second argument limits the wait, in seconds. The function never waits for the app.
    package var fetchIssuer: (@Sendable (_ url: String, _ patience: Double) async -> IssuerAnswer)?
    /// The issuers whose client certificates the server accepts, in DER; empty if the server names none.
    package var distinguishedNames: [Data] = []
    package var previousFailureCount = 0
    package var proposed: LoadCredential?
    /// The response that contained the challenge; nil if no response contained it, as in a TLS handshake.
    package var response: LoadResponse?

    package init(_ space: ProtectionSpace) {
        self.space = space
    }
}

/// The result of fetching the certificate of an issuer that a server did not send.
package enum IssuerAnswer: Sendable {
    /// The certificates in DER.
    case certificates([Data])
    /// The reason is nil if the session does not fetch certificates.
    case unavailable(String?)
}

/// An app's decision about a server's certificates.
package enum TrustAnswer: Sendable {
    /// The server is trusted even if the check of its certificates fails; App Transport Security may still require that check.
    case trusted
    /// The system's roots, or the session's roots, decide.
    case checked
    case rejected
    case cancelled

    /// The error for a server that the app refused; nil if the answer is no refusal.
    package func refusal(of host: String) -> LoadError? {
        switch self {
        case .trusted, .checked: nil
        case .rejected: LoadError(.serverCertificateUntrusted, "the certificate of \(host) was rejected by the app")
        case .cancelled: LoadError(.cancelled, "the challenge about the certificate of \(host) was cancelled")
        }
    }
}

/// An app's answer to a server that requests a client certificate.
package enum IdentityAnswer: Sendable {
    case identity(ClientIdentity)
    case none
    case cancelled
}

package enum ChallengeAnswer: Sendable {
    /// Nil continues the load without a credential.
    case useCredential(LoadCredential?)
    case performDefaultHandling
    case cancel
    case rejectProtectionSpace
}
