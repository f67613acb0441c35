// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials

/// The parameters of a trust check.
package struct TrustQuestion: Sendable, Hashable {
    /// The use of the leaf certificate.
    package enum Use: Sendable, Hashable { case server, client, anything }

    /// The certificates in DER: first the certificate in question, then the certificates that were sent with it.
    package var chain: [Data]
    /// The names and addresses; the certificate must be valid for all of them.
    package var hosts: [String]
    package var use = Use.server
    /// The trusted roots in DER; empty means the system's roots.
    package var roots: [Data] = []
    /// Certificates in DER that are trusted in addition to the roots.
    package var extraRoots: [Data] = []
    /// Whether only the extra roots are trusted, even if the list of extra roots is empty.
    package var trustsOnlyExtraRoots = false
    /// The time at which the certificates must be valid; nil means now.
    package var date: Date?
    /// Whether App Transport Security applies: EC keys need 256 bits, and SHA-1 is rejected even in a certificate that is
    /// configured as trusted.
    package var requiresStrongKeys = false
    package var pins = TrustPins.none

    package init(_ chain: [Data], hosts: [String]) {
        self.chain = chain
        self.hosts = hosts
    }
}

/// The result of a trust check.
package struct TrustJudgement: Sendable, Hashable {
    /// The reason why the chain is not trusted; nil if the chain is trusted.
    package var failure: TrustFailure?
    /// The validated chain in DER, from the certificate in question to a root; empty if no chain was validated.
    package var chain: [Data]
}

/// The result of a trust check, as the TLS connection that presented the chain remembers it.
package struct TrustVerdict: Sendable {
    /// The reason why the server is not trusted; nil if it is trusted.
    package let failure: TrustFailure?
    /// The validated chain, or, if validation failed, the path through the presented chain; in DER, the server's own first.
    package let path: [Data]
    /// The SHA-256 hashes of the keys in ``path``.
    package let keys: [Data]

    package init(_ failure: TrustFailure?, path: [Data] = []) {
        self.failure = failure
        self.path = path
        keys = path.map { CertificateFacts(der: $0)?.spkiSHA256 ?? Data() }
    }
}
