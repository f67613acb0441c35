// SPDX-License-Identifier: Apache-2.0

import Crypto
import FoundationEssentials
import Synchronization

/// Seals credentials, so that a cache can recognize the credential of a response without storing it.
///
/// A seal is the HMAC-SHA-256 of the credential under a random key of the store. The key of a directory is in its file `key`,
/// which only the user may read (mode 0600); a cache without a directory generates its own. If the key is lost, responses that
/// were stored with it are no longer used for requests with a credential.
///
/// Safe to use from any thread.
package final class CacheSeal: Sendable {
    private static let envelope = StoreEnvelope(kind: "cache-key", version: 1)
    private static let keySize = 32

    /// Nil for a cache without a directory.
    private let file: SharedFile?
    private let key = Mutex<SymmetricKey?>(nil)

    init(directory: String?) {
        file = directory.map { SharedFile(path: $0 + "/key") }
        if directory == nil { generateKey() }
    }

    /// Generates a random key unless there is one: a cache in memory needs no persistent key.
    func generateKey() { key.withLock { $0 = $0 ?? SymmetricKey(size: .bits256) } }

    /// Whether the key was read or generated.
    package var isReady: Bool { key.withLock { $0 != nil } }

    /// Reads the key, or generates one if the file is missing.
    ///
    /// Waits for the disk.
    func prepare() {
        guard let file, !isReady else { return }
        let bytes = (try? Self.storedKey(in: file)) ?? (try? Self.createdKey(in: file))
        // If the directory cannot be used, nothing is stored there, and the key is only for the memory tier.
        key.withLock { $0 = $0 ?? bytes.map { SymmetricKey(data: $0) } ?? SymmetricKey(size: .bits256) }
    }

    /// Returns nil if the key has not been read yet.
    package func seal(_ credential: String) -> String? {
        guard let key = key.withLock({ $0 }) else { return nil }
        return Data(HMAC<SHA256>.authenticationCode(for: Data(credential.utf8), using: key)).base64EncodedString()
    }

    private static func storedKey(in file: SharedFile) throws(StoreFailure) -> [UInt8]? { key(in: try file.read()) }

    /// Generates the key under the file's lock: if two processes find no key, the first to take the lock generates it.
    private static func createdKey(in file: SharedFile) throws(StoreFailure) -> [UInt8] {
        let locked = try file.lock()
        if let key = key(in: try locked.read()) { return key }
        let key = SymmetricKey(size: .bits256).withUnsafeBytes { Array($0) }
        _ = try locked.replace(with: envelope.seal(key, envelope.header(of: key)))
        return key
    }

    private static func key(in content: SharedFile.Content) -> [UInt8]? {
        guard case .bytes(let bytes, _) = content, case .whole(_, let start) = envelope.open(bytes),
            bytes.count - start == keySize
        else { return nil }
        return Array(bytes[start...])
    }
}
