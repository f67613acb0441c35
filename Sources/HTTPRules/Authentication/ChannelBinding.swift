//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Crypto

/// Ties an authentication to the TLS connection it goes over, so that a man in the middle cannot pass it on (RFC 5929).
package struct ChannelBinding: Sendable, Hashable {
    /// What GSSAPI takes as application data.
    package let applicationData: [UInt8]

    /// Of the server's certificate: `hash` is of its DER form (section 4.1).
    package static func tlsServerEndPoint(hash: [UInt8]) -> ChannelBinding {
        ChannelBinding(applicationData: Array("tls-server-end-point:".utf8) + hash)
    }

    /// What NTLM takes: the MD5 of a `gss_channel_bindings_struct` without addresses (MS-NLMP, section 2.2.2.1).
    package var ntlmHash: [UInt8] {
        let length = UInt32(truncatingIfNeeded: applicationData.count)
        // Type and length of the initiator's address, and of the acceptor's: none.
        let head = [UInt8](repeating: 0, count: 16) + (0..<4).map { UInt8(truncatingIfNeeded: length >> UInt32($0 * 8)) }
        return Array(Insecure.MD5.hash(data: head + applicationData))
    }
}
