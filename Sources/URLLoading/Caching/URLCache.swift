//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

public import Foundation
import Synchronization

/// Keeps responses in memory, found by the URLs they came from.
///
/// The least recently used entries go when ``memoryCapacity`` is exceeded. Nothing is written to disk: ``diskCapacity`` is kept for
/// code that reads it, and entries count against memory alone.
///
/// Differs from Apple's so far: a session's loads neither look into its cache nor store in it. What is in it was put there by the app,
/// or by a `URLProtocol` class of its own, and is there for both.
///
/// Sendable because its state is under a mutex.
open class URLCache: NSObject, @unchecked Sendable {
    /// Where an entry may be kept. Raw values are Apple's.
    public enum StoragePolicy: UInt, Sendable {
        /// In memory and on disk.
        case allowed = 0
        /// In memory only.
        case allowedInMemoryOnly = 1
        /// Nowhere.
        case notAllowed = 2
    }

    private struct Entry {
        var response: CachedURLResponse
        var stored: Date
        var lastUse: UInt64
        var cost: Int
    }

    private struct State {
        var memoryCapacity: Int
        var diskCapacity: Int
        var usage = 0
        var clock: UInt64 = 0
        var entries: [CacheKey: Entry] = [:]

        mutating func remove(_ key: CacheKey) {
            if let entry = entries.removeValue(forKey: key) { usage -= entry.cost }
        }

        /// Removes the least recently used entries until the rest fits.
        mutating func evict() {
            guard usage > memoryCapacity else { return }
            for (key, _) in entries.sorted(by: { $0.value.lastUse < $1.value.lastUse }) {
                remove(key)
                if usage <= memoryCapacity { return }
            }
        }
    }

    private static let sharedCache = Mutex(URLCache(memoryCapacity: 4 << 20, diskCapacity: 20 << 20, directory: nil))

    private let state: Mutex<State>

    /// The cache of the whole process. By default 4 MiB in memory; another one may be set.
    open class var shared: URLCache {
        get { sharedCache.withLock { $0 } }
        set { sharedCache.withLock { $0 = newValue } }
    }

    /// Makes an empty cache.
    ///
    /// - Parameters:
    ///   - memoryCapacity: Bytes of entries kept in memory; 0 keeps none.
    ///   - diskCapacity: Kept for code that reads it; nothing is written to disk.
    ///   - directory: Not used, since nothing is written to disk.
    public init(memoryCapacity: Int, diskCapacity: Int, directory: URL? = nil) {
        state = Mutex(State(memoryCapacity: memoryCapacity, diskCapacity: diskCapacity))
        super.init()
    }

    /// The entry for a request, or nil. Looking it up counts as use.
    open func cachedResponse(for request: URLRequest) -> CachedURLResponse? {
        guard let key = CacheKey(request) else { return nil }
        return state.withLock { state in
            state.clock += 1
            state.entries[key]?.lastUse = state.clock
            return state.entries[key]?.response
        }
    }

    /// Keeps an entry for a request, in place of the one it has. Ignored where the entry's policy forbids storing, or where it is
    /// larger than the cache.
    open func storeCachedResponse(_ cachedResponse: CachedURLResponse, for request: URLRequest) {
        guard cachedResponse.storagePolicy != .notAllowed, let key = CacheKey(request) else { return }
        // The body, and a guess at what the rest takes.
        let cost = cachedResponse.data.count + 1024
        state.withLock { state in
            guard cost <= state.memoryCapacity else { return state.remove(key) }
            state.remove(key)
            state.clock += 1
            state.entries[key] = Entry(response: cachedResponse, stored: Date(), lastUse: state.clock, cost: cost)
            state.usage += cost
            state.evict()
        }
    }

    /// Removes the entry for a request.
    open func removeCachedResponse(for request: URLRequest) {
        guard let key = CacheKey(request) else { return }
        state.withLock { $0.remove(key) }
    }

    /// Removes all entries.
    open func removeAllCachedResponses() {
        state.withLock { state in
            state.entries = [:]
            state.usage = 0
        }
    }

    /// Removes the entries that were stored after a date.
    open func removeCachedResponses(since date: Date) {
        state.withLock { state in
            for (key, entry) in state.entries where entry.stored > date { state.remove(key) }
        }
    }

    /// The most bytes kept in memory. Lowering it removes entries at once.
    open var memoryCapacity: Int {
        get { state.withLock { $0.memoryCapacity } }
        set {
            state.withLock { state in
                state.memoryCapacity = newValue
                state.evict()
            }
        }
    }

    /// Kept for code that reads it; nothing is written to disk.
    open var diskCapacity: Int {
        get { state.withLock { $0.diskCapacity } }
        set { state.withLock { $0.diskCapacity = newValue } }
    }

    /// Bytes that the entries take in memory, about.
    open var currentMemoryUsage: Int { state.withLock { $0.usage } }

    /// Always 0: nothing is written to disk.
    open var currentDiskUsage: Int { 0 }
}
