// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Credentials in an encrypted file that only the user can read, for systems without a Secret Service.
///
/// The protection:
///
/// - The file and its key have mode 0600, in a folder that only the user can write to, and are refused otherwise: no other user
///   of the machine, except root, can read a password.
/// - The file alone reveals only its size, and so does a copy in a backup, a mail or a log. Damage and tampering are detected.
/// - **The key is stored beside it**, as `NAME.key`, because the copy in the kernel's keyring is lost when the machine restarts.
///   Anyone who can read both files (any program of this user, root, a thief of an unencrypted disk, a backup of the whole
///   folder) can read the passwords. A file that a program opens without asking the user cannot be protected better; the Secret
///   Service can, because the user's login password locks it.
///
/// The file is replaced as a whole, under a lock, and is durable when a change returns: after a crash at any moment, it has the
/// old or the new content. Several processes may change it without losing each other's changes. A file that cannot be opened is
/// set aside as `NAME.damaged`.
package final class SealedCredentialFile: PermanentCredentials {
    package static let envelope = StoreEnvelope(kind: "credentials", version: 1)
    private static let sizeLimit = SharedFile.sizeLimit / 2

    /// The result of reading the file.
    private enum Found {
        case missing
        case whole(CredentialBook, FileStamp)
        case damaged(String)
    }

    private struct State {
        /// The file as last read.
        var seen: SharedFile.Look?
        var hasRemovedLeftovers = false
    }

    private let file: SharedFile
    private let keys: CredentialKeys
    private let state = Mutex(State())

    /// - Parameters:
    ///   - path: The file; its folder is created on the first write.
    ///   - usesKeyring: Whether the key is also stored in the kernel's keyring, if there is one.
    ///   - fault: For tests.
    package init(path: String, usesKeyring: Bool = true, fault: FileStep.Fault? = nil) {
        file = SharedFile(path: path, fault: fault)
        keys = CredentialKeys(path: path + ".key", keyring: usesKeyring ? KernelKeyring(path: path) : nil, fault: fault)
    }

    package var place: String { file.path }

    package func mayHaveChanged() -> Bool {
        let look = file.look()
        return look != .unknown && look != state.withLock { $0.seen }
    }

    package func load() throws(StoreFailure) -> [StoredCredential]? {
        if let kept = kept(try found(try file.read())) { return kept }
        // Without the lock, damage cannot be distinguished from a key that another process is just replacing.
        let locked = try file.lock()
        let found = try found(try locked.read())
        if case .damaged(let reason) = found { try setAside(locked, reason) }
        return kept(found)
    }

    package func apply(_ changes: [CredentialChange], knowing known: [StoredCredential]) throws(StoreFailure) {
        let locked = try file.lock()
        let isFirst = state.withLock { state in
            defer { state.hasRemovedLeftovers = true }
            return !state.hasRemovedLeftovers
        }
        if isFirst { locked.removeLeftovers() }
        var book = CredentialBook()
        let before: CredentialBook
        let look: SharedFile.Look
        switch try found(try locked.read()) {
        case .missing:
            look = .missing
            before = book
        case .whole(let content, let stamp):
            look = .present(stamp)
            before = content
            book = content
        case .damaged(let reason):
            try setAside(locked, reason)
            look = .missing
            before = book
            book = CredentialBook(known)
        }
        book.apply(changes)
        guard book != before else { return }
        let text = CredentialFile.encode(book.kept)
        guard text.count <= Self.sizeLimit else { throw .refused("there are too many") }
        guard let body = CredentialSeal.seal(text, key: try keys.forSealing()) else { throw .refused("its key cannot be used") }
        let stamp = try locked.replace(with: Self.envelope.seal(body, Self.envelope.header(of: body)))
        state.withLock { state in
            // If another process has changed the file since it was loaded, `seen` stays, so that the caller loads that change.
            if state.seen == look { state.seen = .present(stamp) }
        }
    }

    private func found(_ content: SharedFile.Content) throws(StoreFailure) -> Found {
        switch content {
        case .missing: return .missing
        case .unusable(let reason): return .damaged(reason)
        case .bytes(let bytes, let stamp):
            switch Self.envelope.open(bytes) {
            case .newer: throw .refused("it was written by a newer version")
            case .damaged: return .damaged("it is damaged")
            case .whole(_, let start):
                let body = Array(bytes[start...])
                let keys = try keys.candidates()
                for key in keys {
                    guard let text = CredentialSeal.open(body, key: key) else { continue }
                    guard let kept = CredentialFile.decode(text) else { return .damaged("it is damaged") }
                    return .whole(CredentialBook(kept), stamp)
                }
                return .damaged(keys.isEmpty ? "its key is missing" : "its key does not decrypt it")
            }
        }
    }

    private func setAside(_ locked: borrowing LockedFile, _ reason: String) throws(StoreFailure) {
        StoreWarnings.warn("credentials in \(file.path): \(reason); it is set aside")
        try locked.setAside()
        state.withLock { $0.seen = .missing }
    }

    /// Returns nil if the file is damaged.
    private func kept(_ found: Found) -> [StoredCredential]? {
        let (look, kept): (SharedFile.Look, [StoredCredential])
        switch found {
        case .missing: (look, kept) = (.missing, [])
        case .whole(let book, let stamp): (look, kept) = (.present(stamp), book.kept)
        case .damaged: return nil
        }
        state.withLock { $0.seen = look }
        return kept
    }
}
