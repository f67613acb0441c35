// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import SwiftASN1

/// Finds a private key in PEM or DER, and decrypts it.
enum PrivateKeyReader {
    static func isKey(_ block: PEMBlock) -> Bool { block.label.hasSuffix("PRIVATE KEY") }

    static func key(in data: Data, password: String?) throws(IdentityFailure) -> Data {
        if let block = PEMBlock.blocks(in: data)?.first(where: isKey) { return try key(block, password: password) }
        let bytes = Array(data)
        do {
            return try PrivateKeyForm.pkcs8(bytes)
        } catch let failure {
            guard let key = try decrypted(bytes, password) else { throw failure }
            return key
        }
    }

    static func key(_ block: PEMBlock, password: String?) throws(IdentityFailure) -> Data {
        if block.isEncrypted { return try LegacyPEMCipher.decrypt(block, password: password) }
        if block.label != "ENCRYPTED PRIVATE KEY" { return try PrivateKeyForm.pkcs8(block.bytes) }
        guard let key = try decrypted(block.bytes, password) else { throw .malformed("the encrypted key is damaged") }
        return key
    }

    /// Returns nil if the bytes are not an encrypted key.
    private static func decrypted(_ bytes: [UInt8], _ password: String?) throws(IdentityFailure) -> Data? {
        guard let encrypted = (try? BER.parse(bytes)).flatMap(EncryptedValue.init(encryptedKey:)) else { return nil }
        guard let password else { throw .passwordRequired }
        var rounds = RoundBudget()
        return try PrivateKeyForm.pkcs8(decrypted: try encrypted.decrypted(with: PasswordBytes(password), &rounds))
    }
}
