// SPDX-License-Identifier: Apache-2.0

package import LoadingModel

/// Why a certificate is not trusted.
package struct TrustFailure: Error, Sendable, Hashable {
    package enum Reason: Sendable, Hashable {
        /// The certificate cannot be parsed.
        case malformed
        /// A certificate has a kind of key or signature that is not supported.
        case unsupported
        case expired
        case notYetValid
        case wrongHost
        case selfSigned
        /// The issuer's certificate was not sent and is unknown.
        case missingIssuer
        case unknownRoot
        /// A certificate that was configured as trusted cannot be parsed.
        case unreadableRoot
        /// The machine has no trust roots.
        case noRoots
        case weakKey
        case weakSignature
        /// The certificate is not valid for this use.
        case wrongUse
        /// No certificate of the chain has a pinned key.
        case pins
        /// The chain violates a rule of RFC 5280: name constraints, path length, critical extensions.
        case rules
        /// The certificate was not checked, because too many other checks are queued.
        case unchecked
    }

    package var kind: LoadError.Kind
    package var message: String
    package var reason: Reason
    /// Where the certificate of the missing issuer can be fetched; empty unless the chain lacks an issuer.
    package var issuerURLs: [String] = []

    init(_ reason: Reason, _ message: String, kind: LoadError.Kind = .serverCertificateUntrusted) {
        self.kind = kind
        self.message = message
        self.reason = reason
    }

    /// Creates the failure for a full queue of checks.
    package static func unchecked(_ host: String) -> TrustFailure {
        TrustFailure(
            .unchecked, "the certificate of \(host) was not checked: too many checks are queued", kind: .secureConnectionFailed
        )
    }
}
