// SPDX-License-Identifier: Apache-2.0

public import Foundation
import LoadingStores
import Synchronization

/// Stores responses in memory and on disk, by their URLs and the request fields that their `Vary` fields name (RFC 9111).
///
/// A session stores the responses that HTTP allows it to store, and uses them as its cache policy says. A session does not store a
/// response in memory if the body exceeds 5 % of the memory capacity; the same applies to the disk. An app may also store and look
/// up responses: a lookup returns stored responses of any age. When a capacity is exceeded, the least recently used entries are
/// removed. When a method returns, its changes have reached the files on disk and are visible to other objects and processes that
/// use the same directory; only `URLSession.flush` ensures that the changes survive a power failure.
///
/// A subclass may implement its own storage. A session calls the methods that take a task; by default, they call the methods that
/// take a request. Overriding either set is enough.
///
/// Sendable because a mutex guards its state, and its store has its own lock.
open class URLCache: NSObject, @unchecked Sendable {
    /// Where an entry may be stored.
    ///
    /// Raw values are Apple's.
    public enum StoragePolicy: UInt, Sendable {
        /// In memory and on disk.
        case allowed = 0
        /// In memory only.
        case allowedInMemoryOnly = 1
        /// Not at all.
        case notAllowed = 2
    }

    private static let defaultMemoryCapacity = 4 << 20
    private static let defaultDiskCapacity = 20 << 20
    /// Created lazily: if the program sets its own cache, the default directory is not touched.
    private static let sharedCache = Mutex<URLCache?>(nil)

    /// The store of the responses, which a session uses directly unless the cache is a subclass.
    let store: ResponseCache
    let hasDirectory: Bool
    /// The disk capacity that was set on a cache without a directory: it has no effect, but can be read.
    private let nominalDiskCapacity: Mutex<Int>

    /// The program's cache: 4 MiB in memory and 20 MiB on disk, in the program's own part of the user's cache directory.
    ///
    /// A program can replace it with another cache.
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

    /// Makes a cache with the entries that are already in its directory.
    ///
    /// - Parameters:
    ///   - memoryCapacity: The maximum number of bytes stored in memory; 0 stores nothing.
    ///   - diskCapacity: The maximum number of bytes stored on disk; 0 stores nothing.
    ///   - directory: The directory; if it does not exist, it is created with access only for the user. Nil means the program's
    ///     default directory, which the shared cache uses, too. With nil and a disk capacity of 0, the cache never uses the disk,
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
        nominalDiskCapacity = Mutex(max(0, diskCapacity))
        super.init()
    }

    /// Makes a cache with the entries that are already in its directory.
    ///
    /// Apple's documentation says that this initializer will be deprecated; use the initializer with a `directory` parameter.
    ///
    /// - Parameters:
    ///   - memoryCapacity: The maximum number of bytes stored in memory; 0 stores nothing.
    ///   - diskCapacity: The maximum number of bytes stored on disk; 0 stores nothing.
    ///   - path: The directory. A relative path is within the program's cache directory, as on iOS; nil is the default directory.
    public init(memoryCapacity: Int, diskCapacity: Int, diskPath path: String?) {
        let directory: String? =
            if let path, !path.isEmpty {
                path.hasPrefix("/") ? path : Self.programDirectory.map { $0 + "/" + path }
            } else {
                diskCapacity > 0 ? Self.defaultDirectory : nil
            }
        store = ResponseCache(memoryCapacity: memoryCapacity, diskCapacity: diskCapacity, directory: directory)
        hasDirectory = directory != nil
        nominalDiskCapacity = Mutex(max(0, diskCapacity))
        super.init()
    }

    /// Makes a cache of 4 MiB that is only in memory.
    public override init() {
        store = ResponseCache(memoryCapacity: Self.defaultMemoryCapacity, diskCapacity: 0, directory: nil)
        hasDirectory = false
        nominalDiskCapacity = Mutex(0)
        super.init()
    }

    // MARK: Entries of requests

    /// Returns the entry for a request, or nil.
    ///
    /// A URL may have two entries: a response that a session loaded, and one that a `URLProtocol` class delivered. The newer one is
    /// returned. A lookup counts as a use of the entry, and can block while reading from disk. The request must have the same
    /// values as the stored request in all fields that the response's `Vary` field names. An app can omit the fields that every
    /// session sends.
    ///
    /// - Returns: The entry, fresh or stale, or nil if there is none.
    open func cachedResponse(for request: URLRequest) -> CachedURLResponse? { lookUp(request) }

    /// Stores an entry for a request, replacing an existing one.
    ///
    /// This method has no effect if the entry's policy forbids storing, or if the request's method is not GET. An entry that is too
    /// large is not stored, but the entry that it would have replaced is removed.
    open func storeCachedResponse(_ cachedResponse: CachedURLResponse, for request: URLRequest) {
        keep(cachedResponse, request)
    }

    /// Removes all entries for a request's URL, whatever the values of the fields that `Vary` names.
    open func removeCachedResponse(for request: URLRequest) {
        guard let key = CacheKey(request) else { return }
        for key in [key.text, key.forProtocolResponse] { store.remove(key: key) }
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

    // MARK: Entries of tasks

    /// Stores an entry for a task's request; the default implementation calls ``storeCachedResponse(_:for:)-(_,URLRequest)``.
    open func storeCachedResponse(_ cachedResponse: CachedURLResponse, for dataTask: URLSessionDataTask) {
        guard let request = dataTask.requestForCache else { return }
        storeCachedResponse(cachedResponse, for: request)
    }

    /// Calls a completion handler with the entry for a task's request, or nil; the default implementation calls
    /// ``cachedResponse(for:)-(URLRequest)``.
    ///
    /// The handler is called synchronously unless the disk must be read or the URL has two entries; in these cases the handler is
    /// called on a global dispatch queue. In a subclass that does not override this method, the handler is always called
    /// synchronously.
    open func getCachedResponse(
        for dataTask: URLSessionDataTask, completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
    ) {
        guard let request = dataTask.requestForCache else { return completionHandler(nil) }
        guard Self.isPlain(self) else { return completionHandler(cachedResponse(for: request)) }
        lookUp(request, completionHandler)
    }

    /// Returns the entry for a task's request, or nil, as found by ``getCachedResponse(for:completionHandler:)``, the method that
    /// sessions call.
    ///
    /// - Returns: The entry, fresh or stale, or nil if there is none.
    open func cachedResponse(for dataTask: URLSessionDataTask) async -> CachedURLResponse? {
        await AnswerOnce.wait { getCachedResponse(for: dataTask, completionHandler: $0) }
    }

    /// Removes the entries for a task's request; the default implementation calls ``removeCachedResponse(for:)-(URLRequest)``.
    open func removeCachedResponse(for dataTask: URLSessionDataTask) {
        guard let request = dataTask.requestForCache else { return }
        removeCachedResponse(for: request)
    }

    // MARK: Sizes

    /// The maximum number of bytes stored in memory.
    ///
    /// Lowering it removes entries immediately; 0 stores nothing.
    open var memoryCapacity: Int {
        get { store.memoryCapacity }
        set { store.memoryCapacity = newValue }
    }

    /// The maximum number of bytes stored on disk.
    ///
    /// Lowering it removes entries immediately; 0 removes all.
    open var diskCapacity: Int {
        get { hasDirectory ? store.diskCapacity : nominalDiskCapacity.withLock { $0 } }
        set {
            nominalDiskCapacity.withLock { $0 = max(0, newValue) }
            store.diskCapacity = newValue
            waitForDisk()
        }
    }

    /// The approximate size of the entries in memory, in bytes.
    open var currentMemoryUsage: Int { store.currentMemoryUsage }

    /// The size of the entries on disk, in bytes.
    ///
    /// The value is too low for a moment after the cache was made, while its directory is scanned.
    open var currentDiskUsage: Int {
        waitForDisk()
        return store.currentDiskUsage
    }
}
