// SPDX-License-Identifier: Apache-2.0

import Crypto

/// Binds an authentication to its TLS connection, so that a man in the middle cannot relay the authentication (RFC 5929).
package struct ChannelBinding: Sendable, Hashable {
    /// The application data for GSS-API.
    package let applicationData: [UInt8]

    /// Creates a binding to the server's certificate.
    ///
    /// `hash` is the hash of the certificate's DER form (section 4.1).
    package static func tlsServerEndPoint(hash: [UInt8]) -> ChannelBinding {
        ChannelBinding(applicationData: Array("tls-server-end-point:".utf8) + hash)
    }

    /// The value for NTLM: the MD5 hash of a `gss_channel_bindings_struct` without addresses (MS-NLMP, section 2.2.2.1).
    package var ntlmHash: [UInt8] {
        let length = UInt32(truncatingIfNeeded: applicationData.count)
        // The type and length of the initiator's and of the acceptor's address, all zero.
        let head = [UInt8](repeating: 0, count: 16) + (0..<4).map { UInt8(truncatingIfNeeded: length >> UInt32($0 * 8)) }
        return Array(Insecure.MD5.hash(data: head + applicationData))
    }
}
