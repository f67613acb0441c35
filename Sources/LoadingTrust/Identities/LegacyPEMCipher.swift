// SPDX-License-Identifier: Apache-2.0

import Crypto
import FoundationEssentials

/// Decrypts the keys that OpenSSL wrote before PKCS #8, with the header `Proc-Type: 4,ENCRYPTED` (RFC 1421, section 4.6.1.1).
enum LegacyPEMCipher {
    static func decrypt(_ block: PEMBlock, password: String?) throws(IdentityFailure) -> Data {
        let info = block.headers["DEK-Info"]?.split(separator: ",") ?? []
        guard info.count == 2, let start = hexadecimal(info[1]), start.count >= 8 else {
            throw .malformed("the encrypted key does not name its cipher")
        }
        guard let password else { throw .passwordRequired }
        let cipher: BlockCipher
        switch info[0] {
        case "AES-128-CBC": cipher = .aes(key: key(password, start, 16), start: start)
        case "AES-192-CBC": cipher = .aes(key: key(password, start, 24), start: start)
        case "AES-256-CBC": cipher = .aes(key: key(password, start, 32), start: start)
        case "DES-EDE3-CBC": cipher = .tripleDES(key: key(password, start, 24), start: start)
        default: throw .unsupported("its cipher (\(info[0]))")
        }
        return try PrivateKeyForm.pkcs8(decrypted: try cipher.decrypt(block.bytes))
    }

    /// Derives a key like OpenSSL's `EVP_BytesToKey` with MD5 and one round.
    ///
    /// The salt is the beginning of the initialization vector.
    private static func key(_ password: String, _ start: [UInt8], _ count: Int) -> [UInt8] {
        var key: [UInt8] = []
        var digest: [UInt8] = []
        while key.count < count {
            digest = Array(Insecure.MD5.hash(data: digest + Array(password.utf8) + start.prefix(8)))
            key += digest
        }
        return Array(key.prefix(count))
    }

    private static func hexadecimal(_ text: Substring) -> [UInt8]? {
        let digits = text.compactMap(\.hexDigitValue)
        guard digits.count == text.count, digits.count % 2 == 0 else { return nil }
        return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
    }
}
