//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Crypto
import FoundationEssentials

/// Encrypts what a ``SealedCredentialFile`` holds: AES-256-GCM, with a nonce drawn for every write.
///
/// Who does not have the key cannot read it, and cannot change it without being found out. He can put an older file in its place.
package enum CredentialSeal {
    package static let keySize = 32
    /// The smallest sealed text: a nonce and a tag.
    static let overhead = 28
    /// Sealed along, so that nothing that was made with the key for another purpose is taken for credentials.
    private static let purpose = Array("URLLoading credentials 1".utf8)

    package static func newKey() -> [UInt8] {
        SymmetricKey(size: .bits256).withUnsafeBytes { Array($0) }
    }

    /// Nil where the key is none.
    package static func seal(_ text: [UInt8], key: [UInt8]) -> [UInt8]? {
        guard key.count == keySize else { return nil }
        let sealed = try? AES.GCM.seal(text, using: SymmetricKey(data: key), authenticating: purpose)
        return (sealed?.combined).map { [UInt8]($0) }
    }

    /// Nil where it was not sealed with that key, or was changed since.
    package static func open(_ bytes: [UInt8], key: [UInt8]) -> [UInt8]? {
        guard key.count == keySize, bytes.count >= overhead, let sealed = try? AES.GCM.SealedBox(combined: bytes)
        else { return nil }
        let text = try? AES.GCM.open(sealed, using: SymmetricKey(data: key), authenticating: purpose)
        return text.map { [UInt8]($0) }
    }
}
