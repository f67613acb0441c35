// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials

/// The public keys to which a host is pinned (as in RFC 7469, in the form of `NSPinnedDomains`).
///
/// Each pin is the SHA-256 of a `SubjectPublicKeyInfo`.
package struct TrustPins: Sendable, Hashable {
    /// The pins, one of which the server's own key must match; if empty, any key is accepted.
    package var leaf: [Data]
    /// The pins, one of which the key of an issuer of the server's certificate must match; if empty, any key is accepted.
    package var ca: [Data]

    package static let none = TrustPins()

    package init(leaf: [Data] = [], ca: [Data] = []) {
        self.leaf = leaf
        self.ca = ca
    }

    package var isEmpty: Bool { leaf.isEmpty && ca.isEmpty }

    /// Checks a chain against the pins.
    ///
    /// If both kinds of pins are set, both must match.
    ///
    /// - Parameters:
    ///   - chain: The validated chain if there is one, otherwise the presented chain; in DER, starting with the server's own
    ///     certificate.
    ///   - host: The host name for the message.
    /// - Returns: The failure, or nil if the pins match.
    package func failure(of chain: [Data], host: String) -> TrustFailure? {
        if isEmpty { return nil }
        let hashes = chain.map { CertificateFacts(der: $0)?.spkiSHA256 }
        if !leaf.isEmpty, !hashes.prefix(1).contains(where: { $0.map(leaf.contains) ?? false }) {
            return TrustFailure(.pins, "the key of \(host)'s certificate is not one of its pinned keys")
        }
        if !ca.isEmpty, !hashes.dropFirst().contains(where: { $0.map(ca.contains) ?? false }) {
            return TrustFailure(.pins, "no issuer of \(host)'s certificate has one of the host's pinned keys")
        }
        return nil
    }
}
