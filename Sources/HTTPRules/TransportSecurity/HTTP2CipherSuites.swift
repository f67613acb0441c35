// SPDX-License-Identifier: Apache-2.0

/// The cipher suites that are allowed for HTTP/2 (RFC 9113, section 9.2.2).
package enum HTTP2CipherSuites {
    /// AES-GCM and ChaCha20 with ECDHE: BoringSSL's suites with an ephemeral key exchange and authenticated encryption.
    ///
    /// All of BoringSSL's other TLS 1.2 suites are on the list of prohibited suites in RFC 9113, appendix A.
    private static let permitted: Set<UInt16> = [0xC02B, 0xC02C, 0xC02F, 0xC030, 0xCCA8, 0xCCA9]

    /// Checks the result of a handshake.
    ///
    /// All suites of TLS 1.3 are allowed.
    ///
    /// - Parameters:
    ///   - version: The protocol's version number: 0x0303 is TLS 1.2. Nil without TLS.
    ///   - suite: The IANA number of the cipher suite; nil if unknown.
    /// - Returns: Whether HTTP/2 is allowed.
    package static func permit(version: UInt16?, suite: UInt16?) -> Bool {
        guard let version, version < 0x0304, let suite else { return true }
        return version == 0x0303 && permitted.contains(suite)
    }
}
