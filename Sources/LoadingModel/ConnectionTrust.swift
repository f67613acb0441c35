// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials

/// The TLS facts of a connection that metrics do not report.
package struct ConnectionTrust: Sendable, Hashable {
    /// Set if a task's own delegate judged the server: the delegate's decision applies only to that task's loads.
    package var judge: ConnectionHolder?
    /// SHA-256 of the client certificate that was sent; nil if no certificate was sent.
    package var clientCertificate: Data?
    /// SHA-256 of the keys (SubjectPublicKeyInfo) in the server's chain, the server's own first.
    ///
    /// The chain is the validated chain, or the chain that the server sent if the app overruled the trust roots.
    package var keys: [Data]
    /// Whether App Transport Security's requirements for keys and signatures were checked and met.
    package var hasStrongKeys: Bool
    /// The URLs from which certificates of the chain were fetched that the server did not send.
    package var issuerURLs: [String]

    package init(
        judge: ConnectionHolder? = nil, clientCertificate: Data? = nil, keys: [Data] = [], hasStrongKeys: Bool = false,
        issuerURLs: [String] = []
    ) {
        self.issuerURLs = issuerURLs
        self.judge = judge
        self.clientCertificate = clientCertificate
        self.keys = keys
        self.hasStrongKeys = hasStrongKeys
    }
}
