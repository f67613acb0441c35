// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
package import HTTPRules
package import HTTPWire
import Synchronization

/// Stores responses in a memory tier and a disk tier, each within its capacity (RFC 9111).
///
/// The cache rules decide which responses may be used.
///
/// Safe to use from any thread, and by several processes on one directory. Without a directory it never accesses the disk. Entries
/// that are not in the page cache are read on the ``DiskQueue``; lookups for an event loop read all disk entries there. All changes
/// on disk also run there, in order, so that a lookup sees every change made before it. A response whose body exceeds 5 % of a
/// tier's capacity is not stored in that tier.
package final class ResponseCache: Sendable {
    /// A stored response.
    package struct Hit: Sendable {
        package var response: StoredResponse
        package var body: Body
        /// The app's object, which is lost when the entry is no longer in memory.
        package var attachment: (any Sendable)?
        package var userInfo: [UInt8]?
        package var mayGoToDisk: Bool
        /// When the response was received.
        package var storedAt: Double

        package init(
            response: StoredResponse, body: Body, attachment: (any Sendable)? = nil, userInfo: [UInt8]? = nil,
            mayGoToDisk: Bool = true,
            storedAt: Double
        ) {
            self.response = response
            self.body = body
            self.attachment = attachment
            self.userInfo = userInfo
            self.mayGoToDisk = mayGoToDisk
            self.storedAt = storedAt
        }
    }

    package enum Body: Sendable {
        case bytes(Data)
        /// The body is too large for memory.
        case file(CacheBodyFile)
    }

    package enum Lookup: Sendable {
        case hit(Hit)
        case miss
        /// The disk does not respond: its entries are unknown and not available.
        case unavailable
        /// The lookup has to wait for the disk.
        case wait(DiskLookUp)
    }

    let memory: Mutex<MemoryTier>
    /// Held while an entry is stored in both tiers, so that both end up with the same entry.
    ///
    /// Work on the queue never takes this lock.
    let storing = Mutex(())
    let disk: DiskTier?
    /// Seals the credentials that requests carry.
    package let seal: CacheSeal
    let parts = Mutex(Parts())

    /// A capacity of 0 disables the tier; without a directory there is no disk tier.
    package init(memoryCapacity: Int, diskCapacity: Int, directory: String?, queue: DiskQueue = .shared) {
        memory = Mutex(MemoryTier(capacity: memoryCapacity))
        disk = directory.map { DiskTier(directory: $0, capacity: diskCapacity, queue: queue) }
        seal = CacheSeal(directory: directory)
        disk?.open()
    }

    // MARK: Reading

    /// Whether a lookup may find anything: false only if both tiers are known to be empty.
    ///
    /// An event loop passes false for `touchingDisk`.
    package func mayHaveEntries(now: Double, touchingDisk: Bool = true) -> Bool {
        if memory.withLock({ $0.count > 0 }) { return true }
        guard let disk, disk.isEnabled else { return false }
        return disk.mayHaveEntries(now: now, touchingDisk: touchingDisk)
    }

    /// Returns the entry that a request selects, whatever its age.
    ///
    /// Searches memory immediately, and with `touchingDisk` also the disk, if the file is in the page cache.
    ///
    /// An event loop passes false for `touchingDisk`.
    package func lookUp(key: String, requestHeaders: HeaderBlock, now: Double, touchingDisk: Bool = true) -> Lookup {
        let (found, changes) = memory.withLock { ($0.find(key, requestHeaders, now: now), $0.changes) }
        if let found {
            if let name = found.used { disk?.noteUse(of: name, now: now) }
            return .hit(found.hit)
        }
        guard let disk, disk.isEnabled else { return .miss }
        let name = CacheEntryName(key: key)
        var wasSeen = false
        if touchingDisk, !disk.queue.isStuck(.answers) {
            switch disk.lookUp(name, key: key, requestHeaders: requestHeaders, now: now, waiting: false) {
            case .miss: return .miss
            case .hit(let hit, let name):
                promote(key, name, hit, changes)
                return .hit(hit)
            case .wait, .unchecked: wasSeen = true
            }
        }
        switch disk.predict(name, now: now, wasSeen: wasSeen) {
        case .miss: return .miss
        case .unavailable: return .unavailable
        case .unknown(let lane):
            return .wait(
                DiskLookUp { [self] answer in
                    disk.queue.run(on: lane) { [self] in
                        guard answer.isWanted else { return }
                        disk.notice(name.folder, now: now)
                        lookUp(name, on: disk, key: key, requestHeaders: requestHeaders, now: now, changes, answer)
                    }
                })
        }
    }

    /// Looks up an entry on the queue, which can run other work while a large body is checked.
    ///
    /// The entry may change or be removed during the check; if that happens repeatedly, the result is a miss. The hit is promoted
    /// to memory only if `changes` is still current: an entry that was removed or replaced meanwhile may still be on disk.
    private func lookUp(
        _ name: CacheEntryName, on disk: DiskTier, key: String, requestHeaders: HeaderBlock, now: Double,
        checksLeft: Int = Int(CacheEntryName.slotCount), _ changes: UInt64, _ answer: PendingAnswer
    ) {
        switch disk.lookUp(name, key: key, requestHeaders: requestHeaders, now: now, waiting: true) {
        case .hit(let hit, let name):
            promote(key, name, hit, changes)
            answer.fulfill(hit)
        case .unchecked(let check) where checksLeft > 0:
            disk.run(check, for: answer) { [self] in
                lookUp(
                    name, on: disk, key: key, requestHeaders: requestHeaders, now: now, checksLeft: checksLeft - 1, changes,
                    answer)
            }
        case .unchecked, .miss, .wait: answer.fulfill(nil)
        }
    }

    /// Copies a small entry to the memory tier.
    private func promote(_ key: String, _ name: CacheEntryName, _ hit: Hit, _ changes: UInt64) {
        guard case .bytes(let body) = hit.body else { return }
        memory.withLock { memory in
            if memory.accepts(Int64(body.count)) { memory.insert(key, name, hit, ifNoneSince: changes) }
        }
    }

    /// Returns the entry that a request selects, with its credential sealed: see ``lookUp(key:requestHeaders:now:touchingDisk:)``.
    ///
    /// The sealing key is read from the disk once, even if the cache is empty, because it is needed to store the response.
    package func lookUp(key: String, sent: SentFields, now: Double, touchingDisk: Bool = true) -> Lookup {
        if let headers = sent.sealed(by: seal) {
            guard mayHaveEntries(now: now, touchingDisk: touchingDisk) else { return .miss }
            return lookUp(key: key, requestHeaders: headers, now: now, touchingDisk: touchingDisk)
        }
        guard let disk, disk.isEnabled else {
            seal.generateKey()
            return lookUp(key: key, sent: sent, now: now, touchingDisk: touchingDisk)
        }
        guard !disk.queue.isStuck(.changes) else { return .unavailable }
        return .wait(
            DiskLookUp { [self] answer in
                disk.queue.run(on: .changes) { [self] in
                    guard answer.isWanted else { return }
                    seal.prepare()
                    switch lookUp(key: key, sent: sent, now: now, touchingDisk: false) {
                    case .hit(let hit): answer.fulfill(hit)
                    case .miss, .unavailable: answer.fulfill(nil)
                    case .wait(let lookUp): lookUp(for: answer)
                    }
                }
            })
    }

    /// Returns a request's fields with the credential sealed; may wait for the disk.
    ///
    /// Returns nil if the sealing key cannot be read.
    package func sealed(_ sent: SentFields) -> HeaderBlock? {
        if let headers = sent.sealed(by: seal) { return headers }
        if let disk, disk.isEnabled {
            disk.queue.run(on: .changes) { [seal] in seal.prepare() }
            disk.waitForChanges()
        } else {
            seal.generateKey()
        }
        return sent.sealed(by: seal)
    }

    // MARK: Writing

    /// Makes a writer for a response whose body arrives in pieces; the entry is invisible until ``EntryWriter/finish()``.
    ///
    /// Returns nil if the expected length is too large, or both tiers are disabled. A negative length means that it is unknown.
    /// The key is `response.url`, and the time of storing is `response.responseTime`. If `isLimited` is false, as for entries that
    /// the app itself stores, a body may be as large as the capacity.
    package func writer(
        for response: StoredResponse,
        expectedLength: Int64 = -1,
        userInfo: [UInt8]? = nil,
        attachment: (any Sendable)? = nil,
        memoryOnly: Bool = false,
        isLimited: Bool = true
    ) -> EntryWriter? {
        let limit = bodyLimit(memoryOnly: memoryOnly, isLimited: isLimited)
        guard limit > 0, expectedLength <= limit else { return nil }
        return EntryWriter(
            cache: self,
            response: response,
            expectedLength: expectedLength,
            userInfo: userInfo,
            attachment: attachment,
            memoryOnly: memoryOnly,
            isLimited: isLimited
        )
    }

    /// The largest body that is stored.
    package func bodyLimit(memoryOnly: Bool, isLimited: Bool = true) -> Int64 {
        let part = isLimited ? 20 : 1
        if !memoryOnly, let disk, disk.isEnabled { return Int64(disk.capacity / part) }
        return Int64(memory.withLock { $0.capacity } / part)
    }

    /// Replaces the head of an entry, as after a 304 (RFC 9111, section 4.3.4); the body stays.
    ///
    /// `old` is the response that the new one is based on: if another response has replaced it meanwhile, nothing is changed.
    /// Without `old`, the variant, the length of the body and the validators have to match.
    package func update(_ response: StoredResponse, replacing old: StoredResponse? = nil) {
        // The disk comes first, here and below: a lookup in between waits for the change and does not promote the old entry again.
        disk?.update(response, replacing: old)
        memory.withLock { $0.update(response.url, response, replacing: old) }
    }

    /// Removes all variants of a key.
    ///
    /// With `old`, removes only that response; a response that has replaced it meanwhile stays.
    package func remove(key: String, only old: StoredResponse? = nil) {
        disk?.remove(CacheEntryName(key: key), only: old)
        memory.withLock { $0.remove(key, only: old) }
        if old == nil { forEachPart { $0.remove(key: key) } }
    }

    package func removeAll() {
        disk?.removeAll()
        memory.withLock { $0.removeAll() }
        forEachPart { $0.removeAll() }
    }

    package func removeEntries(storedAfter time: Double) {
        disk?.removeEntries(storedAfter: time)
        memory.withLock { $0.removeEntries(storedAfter: time) }
        forEachPart { $0.removeEntries(storedAfter: time) }
    }

    // MARK: Sizes

    /// A lower capacity evicts the excess immediately, from the parts as well.
    package var memoryCapacity: Int {
        get { memory.withLock { $0.capacity } }
        set {
            memory.withLock { $0.capacity = max(0, newValue) }
            forEachPart { part in if part.memoryCapacity > newValue { part.memoryCapacity = newValue } }
        }
    }

    /// A lower capacity evicts the excess in the background; 0 removes everything.
    package var diskCapacity: Int {
        get { disk?.capacity ?? 0 }
        set { disk?.setCapacity(newValue) }
    }

    package var currentMemoryUsage: Int { memory.withLock { $0.usage } }

    /// The size according to the index, which is incomplete shortly after the start.
    package var currentDiskUsage: Int { disk?.usage ?? 0 }

    // MARK: Tools

    /// All entries, for inspection.
    ///
    /// Waits for the disk.
    package func entries() -> [(response: StoredResponse, size: Int64, lastUse: Double)] {
        let onDisk = disk?.entries() ?? []
        let known = Set(onDisk.map(\.response))
        let inMemory = memory.withLock { $0.all }.filter { !known.contains($0.response) }
        return onDisk + inMemory.map { ($0.response, $0.response.bodyLength, $0.storedAt) }
    }

    /// Waits until earlier changes have reached the files, or until the disk counts as unresponsive.
    package func waitForChanges() { disk?.waitForChanges() }

    /// Calls `completion` when everything stored before is durable, or when the disk counts as unresponsive.
    ///
    /// The call is immediate if there is no directory; otherwise it is made on another thread.
    package func flush(completion: @escaping @Sendable () -> Void) {
        guard let disk else { return completion() }
        disk.flush(completion: disk.queue.calledEvenIfStuck(on: [.answers, .changes, .upkeep], completion))
    }
}
