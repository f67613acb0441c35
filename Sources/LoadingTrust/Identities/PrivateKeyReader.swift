//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
import FoundationEssentials

/// Finds a private key in PEM or DER, and decrypts it.
enum PrivateKeyReader {
    static func isKey(_ block: PEMBlock) -> Bool { block.label.hasSuffix("PRIVATE KEY") }

    static func key(in data: Data, password: String?) throws(IdentityFailure) -> Data {
        if let block = PEMBlock.blocks(in: data)?.first(where: isKey) { return try key(block, password: password) }
        let bytes = Array(data)
        do {
            return try PrivateKeyForm.pkcs8(bytes)
        } catch let failure {
            guard EncryptedValue(encryptedKey: bytes) != nil else { throw failure }
            return try decrypted(bytes, password)
        }
    }

    static func key(_ block: PEMBlock, password: String?) throws(IdentityFailure) -> Data {
        if block.isEncrypted { return try LegacyPEMCipher.decrypt(block, password: password) }
        return block.label == "ENCRYPTED PRIVATE KEY"
            ? try decrypted(block.bytes, password) : try PrivateKeyForm.pkcs8(block.bytes)
    }

    private static func decrypted(_ bytes: [UInt8], _ password: String?) throws(IdentityFailure) -> Data {
        guard let encrypted = EncryptedValue(encryptedKey: bytes) else { throw .malformed("the encrypted key is damaged") }
        guard let password else { throw .passwordRequired }
        return try PrivateKeyForm.pkcs8(decrypted: try encrypted.decrypted(with: password))
    }
}
