//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

public import Foundation
import LoadingStores
import Synchronization

/// Keeps responses in memory and on disk, found by the URLs they came from and by what their `Vary` fields name (RFC 9111).
///
/// A session stores in it what HTTP allows, and answers from it as its cache policy says. An app may store and look up on its
/// own: it gets what is there, whatever its age. Entries whose bodies are larger than 5 % of a capacity are not kept there; of
/// the others, the least recently used ones go when a capacity is exceeded. What is changed here has reached the disk's files
/// when a method returns, so that other objects and processes on the same directory see it; that it outlasts a power failure too,
/// only `URLSession.flush` makes sure.
///
/// A subclass may keep responses elsewhere. A session asks it through the methods with tasks, which by default call those with
/// requests: to override either is enough.
///
/// Sendable because its state is under a mutex, and its store locks itself.
open class URLCache: NSObject, @unchecked Sendable {
    /// Where an entry may be kept.
    ///
    /// Raw values are Apple's.
    public enum StoragePolicy: UInt, Sendable {
        /// In memory and on disk.
        case allowed = 0
        /// In memory only.
        case allowedInMemoryOnly = 1
        /// Nowhere.
        case notAllowed = 2
    }

    private static let defaultMemoryCapacity = 4 << 20
    private static let defaultDiskCapacity = 20 << 20
    /// Made when it is first asked for: a program that sets its own leaves the default directory alone.
    private static let sharedCache = Mutex<URLCache?>(nil)

    /// Where the responses are: a session uses it directly where no subclass wants to be asked.
    let store: ResponseCache
    let hasDirectory: Bool
    /// What a cache without a directory was told: kept for code that reads it.
    private let idleDiskCapacity: Mutex<Int>

    /// The cache of the program: 4 MiB in memory and 20 MiB on disk, in the program's own part of the user's cache directory.
    ///
    /// Another one may be set.
    open class var shared: URLCache {
        get {
            sharedCache.withLock { cache in
                if let cache { return cache }
                let made = URLCache(memoryCapacity: defaultMemoryCapacity, diskCapacity: defaultDiskCapacity, directory: nil)
                cache = made
                return made
            }
        }
        set { sharedCache.withLock { $0 = newValue } }
    }

    /// Makes a cache, with what its directory holds already.
    ///
    /// - Parameters:
    ///   - memoryCapacity: Bytes of entries kept in memory; 0 keeps none.
    ///   - diskCapacity: Bytes of entries kept on disk; 0 keeps none.
    ///   - directory: Where to keep them; made if it does not exist, for the user's own eyes. Nil is the program's default
    ///     directory, which the shared cache uses too. With nil and a disk capacity of 0, the cache never touches the disk,
    ///     whatever capacity is set later.
    public init(memoryCapacity: Int, diskCapacity: Int, directory: URL? = nil) {
        let path: String? =
            if let directory {
                directory.isFileURL ? directory.absoluteURL.path : nil
            } else {
                diskCapacity > 0 ? Self.defaultDirectory : nil
            }
        store = ResponseCache(memoryCapacity: memoryCapacity, diskCapacity: diskCapacity, directory: path)
        hasDirectory = path != nil
        idleDiskCapacity = Mutex(max(0, diskCapacity))
        super.init()
    }

    /// Makes a cache, with what its directory holds already.
    ///
    /// Apple calls this initialiser one to be deprecated; use the one with a directory.
    ///
    /// - Parameters:
    ///   - memoryCapacity: Bytes of entries kept in memory; 0 keeps none.
    ///   - diskCapacity: Bytes of entries kept on disk; 0 keeps none.
    ///   - path: The directory to keep them in. A relative one is within the program's cache directory, as on iOS; nil is the
    ///     default directory.
    public init(memoryCapacity: Int, diskCapacity: Int, diskPath path: String?) {
        let directory: String? =
            if let path, !path.isEmpty {
                path.hasPrefix("/") ? path : Self.programDirectory.map { $0 + "/" + path }
            } else {
                diskCapacity > 0 ? Self.defaultDirectory : nil
            }
        store = ResponseCache(memoryCapacity: memoryCapacity, diskCapacity: diskCapacity, directory: directory)
        hasDirectory = directory != nil
        idleDiskCapacity = Mutex(max(0, diskCapacity))
        super.init()
    }

    /// Makes a cache of 4 MiB that lives in memory alone.
    public override init() {
        store = ResponseCache(memoryCapacity: Self.defaultMemoryCapacity, diskCapacity: 0, directory: nil)
        hasDirectory = false
        idleDiskCapacity = Mutex(0)
        super.init()
    }

    // MARK: By request

    /// The entry for a request, or nil.
    ///
    /// A URL may have two: what a session loaded, and what a `URLProtocol` class answered. This is the later one. A look-up counts as
    /// use, and may wait for the disk. What a stored response's `Vary` names must be the same in the request; the fields that every
    /// session sends need not be set for it.
    ///
    /// - Returns: The entry, fresh or stale, or nil where there is none.
    open func cachedResponse(for request: URLRequest) -> CachedURLResponse? { lookUp(request) }

    /// Keeps an entry for a request, in place of the one it has.
    ///
    /// Ignored where the entry's policy forbids storing, and for methods other than GET. An entry that is too large only removes
    /// the one that it would have replaced.
    open func storeCachedResponse(_ cachedResponse: CachedURLResponse, for request: URLRequest) {
        keep(cachedResponse, request)
    }

    /// Removes the entries for a request, whatever their `Vary` fields name.
    open func removeCachedResponse(for request: URLRequest) {
        guard let key = CacheKey(request) else { return }
        for key in [key.text, key.ofProtocolAnswer] { store.remove(key: key) }
        waitForDisk()
    }

    /// Removes all entries.
    open func removeAllCachedResponses() {
        store.removeAll()
        waitForDisk()
    }

    /// Removes the entries that were stored after a date.
    open func removeCachedResponses(since date: Date) {
        store.removeEntries(storedAfter: date.timeIntervalSinceReferenceDate)
        waitForDisk()
    }

    // MARK: By task

    /// Keeps an entry for a task's request: by default with ``storeCachedResponse(_:for:)-(_,URLRequest)``.
    open func storeCachedResponse(_ cachedResponse: CachedURLResponse, for dataTask: URLSessionDataTask) {
        guard let request = dataTask.requestForCache else { return }
        storeCachedResponse(cachedResponse, for: request)
    }

    /// Calls back with the entry for a task's request, or nil: by default that of ``cachedResponse(for:)-(URLRequest)``.
    ///
    /// The handler is called at once where the answer is known, and on a thread of the system's where the disk has to be waited
    /// for.
    open func getCachedResponse(
        for dataTask: URLSessionDataTask, completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
    ) {
        guard let request = dataTask.requestForCache else { return completionHandler(nil) }
        guard Self.isPlain(self) else { return completionHandler(cachedResponse(for: request)) }
        lookUp(request, completionHandler)
    }

    /// The entry for a task's request, or nil: that which ``getCachedResponse(for:completionHandler:)`` finds, which a session
    /// asks.
    ///
    /// - Returns: The entry, fresh or stale, or nil where there is none.
    open func cachedResponse(for dataTask: URLSessionDataTask) async -> CachedURLResponse? {
        await AnswerOnce.wait { getCachedResponse(for: dataTask, completionHandler: $0) }
    }

    /// Removes the entries for a task's request: by default with ``removeCachedResponse(for:)-(URLRequest)``.
    open func removeCachedResponse(for dataTask: URLSessionDataTask) {
        guard let request = dataTask.requestForCache else { return }
        removeCachedResponse(for: request)
    }

    // MARK: Sizes

    /// The most bytes kept in memory.
    ///
    /// Lowering it removes entries at once; 0 keeps none.
    open var memoryCapacity: Int {
        get { store.memoryCapacity }
        set { store.memoryCapacity = newValue }
    }

    /// The most bytes kept on disk.
    ///
    /// Lowering it removes entries at once; 0 removes all.
    open var diskCapacity: Int {
        get { hasDirectory ? store.diskCapacity : idleDiskCapacity.withLock { $0 } }
        set {
            idleDiskCapacity.withLock { $0 = max(0, newValue) }
            store.diskCapacity = newValue
            waitForDisk()
        }
    }

    /// Bytes that the entries take in memory, about.
    open var currentMemoryUsage: Int { store.currentMemoryUsage }

    /// Bytes that the entries take on disk.
    ///
    /// Just after a cache was made, while its directory is looked at, less.
    open var currentDiskUsage: Int {
        waitForDisk()
        return store.currentDiskUsage
    }
}
