// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import HTTPWire

/// The entries in memory; the least recently used ones are evicted first.
///
/// A value type; its owner locks it. Bodies are shared, never copied.
struct MemoryTier: Sendable {
    typealias Hit = ResponseCache.Hit

    private struct Entry: Sendable {
        let key: String
        /// The name of the key's file, if there may be one.
        let name: CacheEntryName?
        var hit: Hit
        var size: Int
        /// When a use of the entry was last reported to the disk tier.
        var lastReportedUse: Double
        /// The neighbor that was used more recently; -1 at the end.
        var newer = -1
        var older = -1
    }

    /// The maximum number of variants per URL, since each lookup searches all of them.
    private static let maximumVariants = 64
    /// The minimum time, in seconds, between two reports of an entry's use to the disk tier.
    ///
    /// The disk tier's order need not be exact for entries in memory.
    private static let reportInterval = 60.0

    private var entries: [Entry?] = []
    private var free: [Int] = []
    private var places: [String: [Int]] = [:]
    private var newest = -1
    private var oldest = -1
    private(set) var usage = 0
    /// Counts the changes after which a response that was read from the disk may be outdated.
    private(set) var changes: UInt64 = 0

    var capacity: Int {
        didSet { evict() }
    }

    init(capacity: Int) { self.capacity = max(0, capacity) }

    var count: Int { entries.count - free.count }

    /// The largest body that may be stored: "about 5 %" of the capacity, as `URLCache` documents.
    var bodyLimit: Int { capacity / 20 }

    /// Whether a body of that length may be stored.
    func accepts(_ bodyLength: Int64, isLimited: Bool = true) -> Bool {
        capacity > 0 && bodyLength <= Int64(isLimited ? bodyLimit : capacity)
    }

    // MARK: Looking up

    /// The entry for a request, and its file's name if the use is to be reported to the disk tier.
    mutating func find(_ key: String, _ requestHeaders: HeaderBlock, now: Double) -> (hit: Hit, used: CacheEntryName?)? {
        guard let indices = places[key] else { return nil }
        for index in indices {
            guard let hit = entries[index]?.hit, CacheKey.matches(hit.response, requestHeaders: requestHeaders) else { continue }
            if index != newest {
                unlink(index)
                link(index)
            }
            guard let told = entries[index]?.lastReportedUse, abs(now - told) >= Self.reportInterval else { return (hit, nil) }
            entries[index]?.lastReportedUse = now
            return (hit, entries[index]?.name)
        }
        return nil
    }

    var all: [Hit] { entries.compactMap { $0?.hit } }

    // MARK: Changing

    /// Stores an entry and removes those that it replaces.
    mutating func insert(_ key: String, _ name: CacheEntryName?, _ hit: Hit, isLimited: Bool = true) {
        removeReplaced(key, by: hit.response)
        guard case .bytes(let body) = hit.body, accepts(Int64(body.count), isLimited: isLimited) else { return }
        if let variants = places[key], variants.count >= Self.maximumVariants { remove(at: variants[0]) }
        let response = hit.response
        let size =
            400 + key.utf8.count * 2 + body.count + response.headers.bytes.count + response.headers.count * 16
            + response.varyFields.bytes.count + (hit.userInfo?.count ?? 0)
        let entry = Entry(key: key, name: name, hit: hit, size: size, lastReportedUse: response.responseTime)
        let index = free.popLast() ?? entries.count
        if index == entries.count { entries.append(entry) } else { entries[index] = entry }
        places[key, default: []].append(index)
        usage += size
        link(index)
        evict()
    }

    /// Stores an entry that was read from the disk, unless something has changed since the read began.
    mutating func insert(_ key: String, _ name: CacheEntryName, _ hit: Hit, ifNoneSince changes: UInt64) {
        guard changes == self.changes else { return }
        insert(key, name, hit)
        self.changes = changes
    }

    /// Removes the entries that a new response replaces, and those with a different `Vary`.
    mutating func removeReplaced(_ key: String, by response: StoredResponse) {
        changes &+= 1
        for index in places[key] ?? [] {
            guard let old = entries[index]?.hit.response else { continue }
            if CacheVariant.isSame(old, response) || !CacheVariant.hasSameFields(old, response) { remove(at: index) }
        }
    }

    /// Replaces the head of an entry.
    mutating func update(_ key: String, _ response: StoredResponse, replacing old: StoredResponse?) {
        changes &+= 1
        for index in places[key] ?? [] {
            guard var entry = entries[index] else { continue }
            let stored = entry.hit.response
            guard
                old.map({ $0 == stored }) ?? (CacheVariant.isSame(stored, response) && CacheVariant.hasSameBody(stored, response))
            else { continue }
            entry.hit.response = response
            entry.hit.response.bodyLength = stored.bodyLength
            entry.hit.storedAt = response.responseTime
            entries[index] = entry
        }
    }

    mutating func remove(_ key: String, only old: StoredResponse? = nil) {
        changes &+= 1
        for index in places[key] ?? [] where old == nil || entries[index]?.hit.response == old { remove(at: index) }
    }

    mutating func removeAll() {
        changes &+= 1
        entries = []
        free = []
        places = [:]
        newest = -1
        oldest = -1
        usage = 0
    }

    mutating func removeEntries(storedAfter time: Double) {
        changes &+= 1
        for index in entries.indices where (entries[index]?.hit.storedAt ?? time) > time { remove(at: index) }
    }

    // MARK: Order

    private mutating func evict() {
        while usage > max(0, capacity) || capacity <= 0 && oldest >= 0 {
            guard oldest >= 0 else { return }
            remove(at: oldest)
        }
    }

    private mutating func remove(at index: Int) {
        guard let entry = entries[index] else { return }
        unlink(index)
        entries[index] = nil
        free.append(index)
        usage -= entry.size
        places[entry.key]?.removeAll { $0 == index }
        if places[entry.key]?.isEmpty == true { places[entry.key] = nil }
    }

    private mutating func link(_ index: Int) {
        entries[index]?.older = newest
        entries[index]?.newer = -1
        if newest >= 0 { entries[newest]?.newer = index } else { oldest = index }
        newest = index
    }

    private mutating func unlink(_ index: Int) {
        guard let newer = entries[index]?.newer, let older = entries[index]?.older else { return }
        if newer >= 0 { entries[newer]?.older = older } else { newest = older }
        if older >= 0 { entries[older]?.newer = newer } else { oldest = newer }
    }
}
