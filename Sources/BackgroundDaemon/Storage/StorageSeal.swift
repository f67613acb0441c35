// SPDX-License-Identifier: Apache-2.0

import Crypto
import FoundationEssentials

/// Encrypts the parts of a program's requests that the store keeps: ChaCha20-Poly1305, with a random nonce for every write.
///
/// Each text is bound to one row and one column: the text cannot be decrypted in another place.
struct StorageSeal: Sendable, Equatable {
    static let keySize = 32
    /// The largest text in bytes, far below the limit of SQLite.
    static let limit = 512 << 20

    private let key: SymmetricKey

    /// Nil if the key has the wrong size.
    init?(key: [UInt8]) {
        guard key.count == Self.keySize else { return nil }
        self.key = SymmetricKey(data: key)
    }

    func seal(_ text: [UInt8], _ column: String, _ row: Int64) throws(StorageFailure) -> Data {
        guard text.count <= Self.limit else { throw .failed("\(text.count) bytes are too many to store.") }
        do {
            return try ChaChaPoly.seal(text, using: key, authenticating: Self.place(column, row)).combined
        } catch {
            throw .failed("The data could not be encrypted.")
        }
    }

    func open(_ sealed: Data, _ column: String, _ row: Int64) throws(StorageFailure) -> [UInt8] {
        do {
            let text = try ChaChaPoly.open(
                ChaChaPoly.SealedBox(combined: sealed), using: key, authenticating: Self.place(column, row))
            return [UInt8](text)
        } catch {
            throw .damaged("The \(column) of number \(row) was encrypted with another key or for another place, or was changed.")
        }
    }

    /// Returns the HMAC-SHA-256 of a credential, for resume data, under a key derived from the store's key.
    func resumeSeal(of credential: String) -> String {
        let own = HKDF<SHA256>.deriveKey(
            inputKeyMaterial: key, info: Data("URLLoading resume data 1".utf8), outputByteCount: Self.keySize)
        return Data(HMAC<SHA256>.authenticationCode(for: Data(credential.utf8), using: own)).base64EncodedString()
    }

    /// Returns the additional authenticated data: nothing that was sealed with the key for another purpose or place is accepted.
    private static func place(_ column: String, _ row: Int64) -> [UInt8] {
        Array("URLLoading transfers 1 \(column) \(row)".utf8)
    }
}
