// SPDX-License-Identifier: Apache-2.0

public import Foundation
internal import LoadingModel
package import LoadingStores

/// Stores credentials by protection space.
///
/// Each credential's ``URLCredential/persistence`` determines how long the credential is stored: not at all, for the lifetime of
/// the storage, or beyond the end of the process. Client certificates never outlive the process. Spaces match only if host, port,
/// protocol, realm and method are all equal.
///
/// A subclass may implement its own storage. A session calls the methods that take a task; by default, they call the methods that
/// take no task.
///
/// Sendable because its store has its own lock.
open class URLCredentialStorage: NSObject, @unchecked Sendable {
    private static let programStorage = URLCredentialStorage(store: .program(ProcessInfo.processInfo.processName))

    /// The store of the credentials.
    ///
    /// A session uses it directly unless the storage is a subclass.
    package let store: CredentialStore

    /// The program's own storage, which other programs do not share.
    ///
    /// All processes of the same program share it.
    ///
    /// Permanent credentials are stored in the desktop's Secret Service (GNOME Keyring, KWallet), which the user's login unlocks.
    /// If there is no Secret Service, as on a server, they are stored in an encrypted file in the user's data directory, which only
    /// the user may read. **The key is stored beside the file**: the encryption protects against other users, and against theft of
    /// the file alone. It does not protect against programs of the same user, or against theft of the whole disk.
    open class var shared: URLCredentialStorage { programStorage }

    /// Makes an empty storage that keeps its credentials only in memory.
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

    /// Returns the credentials of a space by user name; nil if there are none.
    ///
    /// The first call blocks until the stored credentials have been read; the user may first have to unlock a keyring.
    ///
    /// - Returns: The credentials by user name, or nil if there are none.
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
            all[URLProtectionSpace(space)] = credentials.compactMapValues(URLCredential.make)
        }
        return all.filter { !$0.value.isEmpty }
    }

    /// Stores a credential for a space, replacing a credential of the same user.
    ///
    /// A credential with ``URLCredential/Persistence/none`` persistence is not stored.
    ///
    /// The first credential of a space becomes the space's default.
    open func set(_ credential: URLCredential, for space: URLProtectionSpace) {
        guard let credential = credential.forEngine else { return }
        store.set(credential, for: space.space)
    }

    /// Removes the stored credential that has the same user name, unless the stored credential is synchronizable.
    open func remove(_ credential: URLCredential, for space: URLProtectionSpace) {
        remove(credential, for: space, options: nil)
    }

    /// Removes the stored credential that has the same user name, from memory and from permanent storage.
    ///
    /// - Parameters:
    ///   - credential: A credential with the user name of the credential to remove.
    ///   - space: The protection space.
    ///   - options: With ``NSURLCredentialStorageRemoveSynchronizableCredentials`` set to true, also removes a credential with
    ///     ``URLCredential/Persistence/synchronizable`` persistence; otherwise such a credential remains.
    open func remove(_ credential: URLCredential, for space: URLProtectionSpace, options: [String: Any]? = [:]) {
        guard let credential = credential.forEngine else { return }
        let option = options?[NSURLCredentialStorageRemoveSynchronizableCredentials]
        let includesSynchronizable = option as? Bool ?? (option as? NSNumber)?.boolValue ?? false
        store.remove(credential, for: space.space, includingSynchronizable: includesSynchronizable)
    }

    /// Returns the credential that answers a space's challenges by default; nil if none was set.
    ///
    /// - Returns: The default credential, or nil if none was set.
    open func defaultCredential(for space: URLProtectionSpace) -> URLCredential? {
        store.prepareAndWait()
        return store.defaultCredential(for: space.space).flatMap(URLCredential.make)
    }

    /// Stores a credential for a space like ``set(_:for:)``, and makes it the space's default.
    open func setDefaultCredential(_ credential: URLCredential, for space: URLProtectionSpace) {
        guard let credential = credential.forEngine else { return }
        store.setDefault(credential, for: space.space)
    }

    // MARK: Credentials of tasks

    /// Calls a completion handler with the credentials of a space.
    ///
    /// The default implementation calls ``credentials(for:)`` without blocking the caller.
    open func getCredentials(
        for protectionSpace: URLProtectionSpace, task: URLSessionTask,
        completionHandler: @escaping @Sendable ([String: URLCredential]?) -> Void
    ) {
        store.prepare { completionHandler(self.credentials(for: protectionSpace)) }
    }

    /// Stores a credential that answered a task's challenge.
    ///
    /// The default implementation calls ``set(_:for:)``.
    open func set(_ credential: URLCredential, for protectionSpace: URLProtectionSpace, task: URLSessionTask) {
        set(credential, for: protectionSpace)
    }

    /// Removes a credential of a space on behalf of a task.
    ///
    /// The default implementation calls ``remove(_:for:options:)``.
    open func remove(
        _ credential: URLCredential, for protectionSpace: URLProtectionSpace, options: [String: Any]? = [:],
        task: URLSessionTask
    ) {
        remove(credential, for: protectionSpace, options: options)
    }

    /// Calls a completion handler with the default credential of a space.
    ///
    /// The default implementation calls ``defaultCredential(for:)`` without blocking the caller.
    open func getDefaultCredential(
        for space: URLProtectionSpace, task: URLSessionTask, completionHandler: @escaping @Sendable (URLCredential?) -> Void
    ) {
        store.prepare { completionHandler(self.defaultCredential(for: space)) }
    }

    /// Sets the default credential of a space on behalf of a task.
    ///
    /// The default implementation calls ``setDefaultCredential(_:for:)``.
    open func setDefaultCredential(_ credential: URLCredential, for protectionSpace: URLProtectionSpace, task: URLSessionTask) {
        setDefaultCredential(credential, for: protectionSpace)
    }

    // MARK: Description

    /// The class and the number of spaces that have credentials, without details of the spaces or credentials.
    open override var description: String { "<\(type(of: self)) spaces count:\(store.all().count)>" }
}

extension URLCredentialStorage {
    /// Returns the credentials of a space.
    ///
    /// Calls ``getCredentials(for:task:completionHandler:)``, which a subclass may override.
    ///
    /// - Returns: The credentials by user name, or nil if there are none.
    public func credentials(for protectionSpace: URLProtectionSpace, task: URLSessionTask) async -> [String: URLCredential]? {
        await AnswerOnce.wait { getCredentials(for: protectionSpace, task: task, completionHandler: $0) }
    }

    /// Returns the default credential of a space.
    ///
    /// Calls ``getDefaultCredential(for:task:completionHandler:)``, which a subclass may override.
    ///
    /// - Returns: The default credential, or nil if none was set.
    public func defaultCredential(for space: URLProtectionSpace, task: URLSessionTask) async -> URLCredential? {
        await AnswerOnce.wait { getDefaultCredential(for: space, task: task, completionHandler: $0) }
    }

    /// Whether a storage is an instance of `URLCredentialStorage` itself, so that a session may use its ``store`` directly.
    static func isPlain(_ storage: URLCredentialStorage) -> Bool { type(of: storage) == URLCredentialStorage.self }

    /// Writes the credentials, waits for completion, and returns whether they will be available in the next run.
    package func makeDurable() -> Bool { store.flushAndWait() }

    private func observe() {
        store.onChange { [weak self] in
            guard let self else { return }
            ChangeNotices.post(.NSURLCredentialStorageChanged, self)
        }
    }
}
