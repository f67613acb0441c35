// SPDX-License-Identifier: Apache-2.0

import LibC

/// The key of a ``SealedCredentialFile``: in the kernel's keyring, and in a file beside the credentials.
///
/// The file is needed because the keyring is lost when the machine restarts; the keyring is needed because a file can be lost or
/// damaged. Either is sufficient, and restores the other.
struct CredentialKeys: Sendable {
    private static let envelope = StoreEnvelope(kind: "credential-key", version: 1)

    private let file: SharedFile
    private let keyring: KernelKeyring?

    init(path: String, keyring: KernelKeyring?, fault: FileStep.Fault?) {
        file = SharedFile(path: path, fault: fault)
        self.keyring = keyring
    }

    /// The keys that may open the credentials, the most likely one first.
    func candidates() throws(StoreFailure) -> [[UInt8]] {
        let keys = [try inFile(), inKeyring()].compactMap { $0 }
        return keys.count == 2 && keys[0] == keys[1] ? [keys[0]] : keys
    }

    /// The durable key to seal with, which is generated if there is no key.
    ///
    /// The caller holds the lock of the credentials' file.
    func forSealing() throws(StoreFailure) -> [UInt8] {
        let known = inKeyring()
        if let key = try inFile() {
            if known != key { keyring?.write(key) }
            return key
        }
        let key = known ?? CredentialSeal.newKey()
        let folder = try StoreDirectory(file.directory, creating: true, fault: file.fault)
        for name in folder.names(prefix: file.name + AtomicFile.temporaryMark) { unlinkat(folder.number, name, 0) }
        let bytes = Self.envelope.seal(key, Self.envelope.header(of: key))
        _ = try AtomicFile.replace(file.name, in: folder, with: bytes, fault: file.fault)
        if known == nil { keyring?.write(key) }
        return key
    }

    private func inKeyring() -> [UInt8]? { keyring?.read(size: CredentialSeal.keySize) }

    /// The key in the file; nil if the file is missing or has no valid key.
    private func inFile() throws(StoreFailure) -> [UInt8]? {
        guard case .bytes(let bytes, _) = try file.read() else { return nil }
        switch Self.envelope.open(bytes) {
        case .damaged: return nil
        case .newer: throw .refused("its key was written by a newer version")
        case .whole(_, let start):
            let key = Array(bytes[start...])
            return key.count == CredentialSeal.keySize ? key : nil
        }
    }
}
