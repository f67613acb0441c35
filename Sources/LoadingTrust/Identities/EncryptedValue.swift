// SPDX-License-Identifier: Apache-2.0

import SwiftASN1

/// Bytes encrypted with a password, and the algorithm: `EncryptedPrivateKeyInfo` (RFC 5958, section 3) and `EncryptedContentInfo`
/// (RFC 5652, section 6.1).
struct EncryptedValue {
    private let algorithm: ASN1Node
    private let bytes: [UInt8]

    init?(encryptedKey node: ASN1Node) {
        guard let parts = node.children(), parts.count == 2, parts[0].identifier == .sequence, let octets = parts[1].octets
        else { return nil }
        (algorithm, bytes) = (parts[0], octets)
    }

    init?(encryptedContent node: ASN1Node) {
        let tag = ASN1Identifier(tagWithNumber: 0, tagClass: .contextSpecific)
        guard let parts = node.children(), parts.count == 3, parts[1].identifier == .sequence, parts[2].identifier == tag,
            let octets = try? ASN1OctetString(berEncoded: parts[2], withIdentifier: tag)
        else { return nil }
        (algorithm, bytes) = (parts[1], Array(octets.bytes))
    }

    func decrypted(with password: PasswordBytes, _ rounds: inout RoundBudget) throws(IdentityFailure) -> [UInt8] {
        try BlockCipher(algorithm, password, &rounds).decrypt(bytes)
    }
}
