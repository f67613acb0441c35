// SPDX-License-Identifier: Apache-2.0

import Crypto
import FoundationEssentials

/// Encrypts the content of a ``SealedCredentialFile``: AES-256-GCM, with a random nonce for every write.
///
/// Without the key, the content cannot be read, and a change of it is detected. Replacing the file with an older version is not
/// detected.
package enum CredentialSeal {
    package static let keySize = 32
    /// The total length of the nonce and the tag, in bytes.
    static let overhead = 28
    /// Authenticated as additional data, so that nothing else sealed with the key is accepted as credentials.
    private static let purpose = Array("URLLoading credentials 1".utf8)

    package static func newKey() -> [UInt8] {
        SymmetricKey(size: .bits256).withUnsafeBytes { Array($0) }
    }

    /// Encrypts `text`; nil if the key has the wrong size.
    package static func seal(_ text: [UInt8], key: [UInt8]) -> [UInt8]? {
        guard key.count == keySize else { return nil }
        let sealed = try? AES.GCM.seal(text, using: SymmetricKey(data: key), authenticating: purpose)
        return (sealed?.combined).map { [UInt8]($0) }
    }

    /// Decrypts `bytes`; nil if they were not sealed with that key, or were changed since.
    package static func open(_ bytes: [UInt8], key: [UInt8]) -> [UInt8]? {
        guard key.count == keySize, bytes.count >= overhead, let sealed = try? AES.GCM.SealedBox(combined: bytes)
        else { return nil }
        let text = try? AES.GCM.open(sealed, using: SymmetricKey(data: key), authenticating: purpose)
        return text.map { [UInt8]($0) }
    }
}
