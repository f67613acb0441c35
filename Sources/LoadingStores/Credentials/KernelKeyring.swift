// SPDX-License-Identifier: Apache-2.0

import CLoadingSystem
import Crypto
import FoundationEssentials
import HTTPWire

/// One key in the user's persistent keyring (keyrings(7), persistent-keyring(7)): kernel memory that outlives the process.
///
/// Every process of the user, and root, can read the key. The key is never on disk, and is lost when the machine restarts or the
/// keyring has not been used for some days. Many containers have no such keyring.
package struct KernelKeyring: Sendable {
    private let name: String

    /// Identifies the key for a file, without creating it in the keyring.
    ///
    /// The name is a hash of the path, since every process can see the names of keys.
    package init(path: String) {
        let hash = SHA256.hash(data: Array(path.utf8)).prefix(16)
        name = "urlloading:" + ASCII.hexadecimal(hash)
    }

    /// Whether the system has persistent keyrings and permits their use.
    package static var isAvailable: Bool { cls_persistent_keyring() >= 0 }

    /// Reads the key, which has `size` bytes; nil if there is no such key, or no keyring.
    package func read(size: Int) -> [UInt8]? {
        let keyring = cls_persistent_keyring()
        guard keyring >= 0 else { return nil }
        let key = cls_keyring_find(keyring, name)
        guard key >= 0 else { return nil }
        var length: Int64 = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: size) { buffer, count in
            length = cls_key_read(key, buffer.baseAddress, size)
            count = length == Int64(size) ? size : 0
        }
        return bytes.count == size ? bytes : nil
    }

    /// Stores the key; returns whether that succeeded.
    @discardableResult
    package func write(_ bytes: [UInt8]) -> Bool {
        let keyring = cls_persistent_keyring()
        guard keyring >= 0 else { return false }
        return cls_key_add(keyring, name, bytes, bytes.count) >= 0
    }

    package func remove() {
        let keyring = cls_persistent_keyring()
        guard keyring >= 0 else { return }
        let key = cls_keyring_find(keyring, name)
        if key >= 0 { _ = cls_key_remove(key, keyring) }
    }
}
