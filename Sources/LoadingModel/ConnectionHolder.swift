// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials

/// Restricts a connection to its holder: a task whose own delegate alone accepted the server, or an identity for which the server has
/// authenticated the connection (NTLM, Negotiate), or a load whose server negotiates TLS again for a client certificate.
///
/// Two holders are equal only if they are the same object.
package final class ConnectionHolder: Sendable, Hashable {
    /// Set if TLS 1.2 may be negotiated again on the holder's connections.
    package let renegotiation: Renegotiation?

    package init(_ renegotiation: Renegotiation? = nil) { self.renegotiation = renegotiation }

    /// What a client presents when its server negotiates TLS again (RFC 5246, section 7.4.1.1), and what the server must present.
    package struct Renegotiation: Sendable {
        package let identity: ClientIdentity
        /// The server's certificate, in DER, and the keys of its chain (``ConnectionTrust/keys``), on the connection on which the
        /// server first asked.
        package let serverCertificate: Data
        package let keys: [Data]

        package init(identity: ClientIdentity, serverCertificate: Data, keys: [Data]) {
            self.identity = identity
            self.serverCertificate = serverCertificate
            self.keys = keys
        }
    }

    package static func == (left: ConnectionHolder, right: ConnectionHolder) -> Bool { left === right }

    package func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
