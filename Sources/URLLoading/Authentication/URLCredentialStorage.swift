//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

public import Foundation
internal import LoadingModel
package import LoadingStores

/// Keeps credentials by the protection space that they are good for.
///
/// How long depends on each credential's ``URLCredential/persistence``: not at all, as long as the storage lives, or beyond the
/// process. Client certificates are never kept beyond the process. A space is found again only if its host, port, protocol,
/// realm and method are all the same.
///
/// A subclass may keep credentials of its own. A session asks it through the methods with a task, which by default call those
/// without.
///
/// Sendable because its store locks itself.
open class URLCredentialStorage: NSObject, @unchecked Sendable {
    private static let programStorage = URLCredentialStorage(store: .program(ProcessInfo.processInfo.processName))

    /// Where the credentials are.
    ///
    /// A session uses it directly where no subclass wants to be asked.
    package let store: CredentialStore

    /// The program's own storage, apart from those of other programs.
    ///
    /// Several processes of the same program share it.
    ///
    /// Permanent credentials are in the desktop's Secret Service (GNOME Keyring, KWallet), which the user's login unlocks. Where
    /// there is none, as on a server, they are in an encrypted file that only the user may read, in the user's data directory.
    /// **Its key lies beside it**, so that it protects from other users, and from copies of the file alone, but not from
    /// programs of the same user, nor from who has the whole disk.
    open class var shared: URLCredentialStorage { programStorage }

    /// Makes an empty storage of its own, in memory alone.
    public override init() {
        store = CredentialStore(permanent: nil)
        super.init()
        observe()
    }

    package init(store: CredentialStore) {
        self.store = store
        super.init()
        observe()
    }

    // MARK: Credentials

    /// The credentials of a space by user name; nil where there are none.
    ///
    /// The first time, waits until those that are kept are read, for which the user may have to unlock a keyring.
    ///
    /// - Returns: The credentials by user name, or nil where there are none.
    open func credentials(for space: URLProtectionSpace) -> [String: URLCredential]? {
        store.prepareAndWait()
        let credentials = store.credentials(for: space.space).compactMapValues(URLCredential.make)
        return credentials.isEmpty ? nil : credentials
    }

    /// All credentials by space and user name.
    open var allCredentials: [URLProtectionSpace: [String: URLCredential]] {
        store.prepareAndWait()
        var all: [URLProtectionSpace: [String: URLCredential]] = [:]
        for (space, credentials) in store.all() {
            all[.make(space)] = credentials.compactMapValues(URLCredential.make)
        }
        return all.filter { !$0.value.isEmpty }
    }

    /// Keeps a credential for a space, in place of one of the same user, if its persistence is not
    /// ``URLCredential/Persistence/none``.
    ///
    /// The first of a space becomes its default.
    open func set(_ credential: URLCredential, for space: URLProtectionSpace) {
        guard let credential = credential.forEngine else { return }
        store.set(credential, for: space.space)
    }

    /// Removes the credential of the same user, unless it is synchronizable.
    open func remove(_ credential: URLCredential, for space: URLProtectionSpace) {
        remove(credential, for: space, options: nil)
    }

    /// Removes the credential of the same user from memory and from where it is kept.
    ///
    /// - Parameters:
    ///   - credential: Whose user is meant.
    ///   - space: Where it is kept.
    ///   - options: With ``NSURLCredentialStorageRemoveSynchronizableCredentials`` and true, a credential whose persistence is
    ///     ``URLCredential/Persistence/synchronizable`` is removed too; without, that is ignored.
    open func remove(_ credential: URLCredential, for space: URLProtectionSpace, options: [String: Any]? = [:]) {
        guard let credential = credential.forEngine else { return }
        let option = options?[NSURLCredentialStorageRemoveSynchronizableCredentials]
        let isMeant = option as? Bool ?? (option as? NSNumber)?.boolValue ?? false
        store.remove(credential, for: space.space, includingSynchronizable: isMeant)
    }

    /// The credential that answers a space's challenges if nobody says otherwise; nil where none was set.
    ///
    /// - Returns: The default credential, or nil where none was set.
    open func defaultCredential(for space: URLProtectionSpace) -> URLCredential? {
        store.prepareAndWait()
        return store.defaultCredential(for: space.space).flatMap(URLCredential.make)
    }

    /// Keeps a credential for a space, as ``set(_:for:)`` does, and has it answer the space's challenges.
    open func setDefaultCredential(_ credential: URLCredential, for space: URLProtectionSpace) {
        guard let credential = credential.forEngine else { return }
        store.setDefault(credential, for: space.space)
    }

    // MARK: By task

    /// Calls back with the credentials of a space.
    ///
    /// By default: ``credentials(for:)``, without keeping the caller waiting.
    open func getCredentials(
        for protectionSpace: URLProtectionSpace, task: URLSessionTask,
        completionHandler: @escaping @Sendable ([String: URLCredential]?) -> Void
    ) {
        store.prepare { completionHandler(self.credentials(for: protectionSpace)) }
    }

    /// Keeps a credential that answered a task's challenge.
    ///
    /// By default: ``set(_:for:)``.
    open func set(_ credential: URLCredential, for protectionSpace: URLProtectionSpace, task: URLSessionTask) {
        set(credential, for: protectionSpace)
    }

    /// Removes a credential for a task.
    ///
    /// By default: ``remove(_:for:options:)``.
    open func remove(
        _ credential: URLCredential, for protectionSpace: URLProtectionSpace, options: [String: Any]? = [:],
        task: URLSessionTask
    ) {
        remove(credential, for: protectionSpace, options: options)
    }

    /// Calls back with the default credential of a space.
    ///
    /// By default: ``defaultCredential(for:)``, without keeping the caller waiting.
    open func getDefaultCredential(
        for space: URLProtectionSpace, task: URLSessionTask, completionHandler: @escaping @Sendable (URLCredential?) -> Void
    ) {
        store.prepare { completionHandler(self.defaultCredential(for: space)) }
    }

    /// Sets the default credential of a space for a task.
    ///
    /// By default: ``setDefaultCredential(_:for:)``.
    open func setDefaultCredential(_ credential: URLCredential, for protectionSpace: URLProtectionSpace, task: URLSessionTask) {
        setDefaultCredential(credential, for: protectionSpace)
    }

    // MARK: As an object

    /// The class and the number of spaces that credentials are known for; nothing of them.
    open override var description: String { "<\(type(of: self)) spaces count:\(store.all().count)>" }
}

extension URLCredentialStorage {
    /// The credentials of a space.
    ///
    /// See ``getCredentials(for:task:completionHandler:)``, which a subclass overrides.
    ///
    /// - Returns: The credentials by user name, or nil where there are none.
    public func credentials(for protectionSpace: URLProtectionSpace, task: URLSessionTask) async -> [String: URLCredential]? {
        await AnswerOnce.wait { getCredentials(for: protectionSpace, task: task, completionHandler: $0) }
    }

    /// The default credential of a space.
    ///
    /// See ``getDefaultCredential(for:task:completionHandler:)``, which a subclass overrides.
    ///
    /// - Returns: The default credential, or nil where none was set.
    public func defaultCredential(for space: URLProtectionSpace, task: URLSessionTask) async -> URLCredential? {
        await AnswerOnce.wait { getDefaultCredential(for: space, task: task, completionHandler: $0) }
    }

    /// Whether a storage is of this very class, so that a session may go to its ``store`` and ask nobody.
    static func isPlain(_ storage: URLCredentialStorage) -> Bool { type(of: storage) == URLCredentialStorage.self }

    /// Has the credentials written, waits for it, and answers whether they will be there for the next run.
    package func makeDurable() -> Bool { store.flushAndWait() }

    private func observe() {
        store.onChange { [weak self] in
            guard let self else { return }
            ChangeNotices.post(.NSURLCredentialStorageChanged, self)
        }
    }
}
