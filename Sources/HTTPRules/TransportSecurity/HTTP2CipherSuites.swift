//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// Which cipher suites HTTP/2 may be spoken over (RFC 9113, section 9.2.2).
package enum HTTP2CipherSuites {
    /// AES-GCM and ChaCha20 with ECDHE: what BoringSSL has with an ephemeral key exchange and authenticated encryption.
    ///
    /// All others of TLS 1.2 that it has are on the list of RFC 9113, appendix A.
    private static let permitted: Set<UInt16> = [0xC02B, 0xC02C, 0xC02F, 0xC030, 0xCCA8, 0xCCA9]

    /// Judges what a handshake agreed on; suites of TLS 1.3 are all good.
    ///
    /// - Parameters:
    ///   - version: As on the wire: 0x0303 is TLS 1.2. Nil in clear.
    ///   - suite: The IANA number; nil where it is not known.
    /// - Returns: Whether it may.
    package static func permit(version: UInt16?, suite: UInt16?) -> Bool {
        guard let version, version < 0x0304, let suite else { return true }
        return version == 0x0303 && permitted.contains(suite)
    }
}
