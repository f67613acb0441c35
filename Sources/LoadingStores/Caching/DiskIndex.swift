// SPDX-License-Identifier: Apache-2.0

/// The disk tier's index of its files: their sizes and the order of their last use.
///
/// A value without I/O. It may be outdated, since other processes change the same directory: callers check the file before they
/// act.
package struct DiskIndex: Sendable {
    package struct Record: Hashable, Sendable {
        package var size: Int64
        package var lastUse: Double
        /// The number of the use within this process, which orders uses that have the same time.
        fileprivate var sequence: UInt64
        fileprivate var scan: UInt32
    }

    /// The last use of an entry at the time of a snapshot.
    package struct Use: Sendable {
        fileprivate var name: CacheEntryName
        fileprivate var lastUse: Double
        fileprivate var sequence: UInt64

        /// The order that ``DiskIndex/choose(_:)`` expects: the least recently used entry comes last.
        package static func isMoreRecent(_ one: Use, _ other: Use) -> Bool {
            (other.lastUse, other.sequence) < (one.lastUse, one.sequence)
        }
    }

    /// The maximum size counted for a file: a sparse file may claim to be larger, but the sum of all sizes must not overflow.
    private static let largestSize: Int64 = 1 << 40

    private var records: [CacheEntryName: Record] = [:]
    /// The number of records that are not in the first slot of their key.
    private var variantCount = 0
    /// A sorted snapshot, the least recently used entry last.
    ///
    /// Entries that were used after the snapshot are more recent than all candidates.
    private var candidates: [Use] = []
    private var sequence: UInt64 = 0
    private var scan: UInt32 = 0
    /// The latest time seen, so that new entries do not become the oldest if the clock is set back.
    private var latest = -Double.greatestFiniteMagnitude
    package private(set) var totalSize: Int64 = 0
    /// Whether a scan has seen all files.
    package private(set) var isComplete = false

    package init() {}

    package var count: Int { records.count }
    package subscript(name: CacheEntryName) -> Record? { records[name] }

    /// Whether a key, given by the name of its first variant, has any entry.
    package func hasEntry(of name: CacheEntryName) -> Bool { records[name] != nil || hasSlot(after: name) }

    /// Whether a key has an entry in a later slot.
    package func hasSlot(after name: CacheEntryName) -> Bool {
        guard variantCount > 0 else { return false }
        return (name.slot + 1..<max(CacheEntryName.slotCount, name.slot + 1)).contains { records[name.at(slot: $0)] != nil }
    }

    /// Records that an entry was written or used; returns the time to record in the file.
    @discardableResult
    package mutating func note(_ name: CacheEntryName, size: Int64, now: Double) -> Double {
        sequence += 1
        latest = max(latest, now)
        set(name, Record(size: size, lastUse: latest, sequence: sequence, scan: scan))
        return latest
    }

    /// Records that another process used an entry.
    package mutating func noteUse(_ name: CacheEntryName, at time: Double) {
        guard var record = records[name] else { return }
        sequence += 1
        record.lastUse = max(record.lastUse, time)
        record.sequence = sequence
        records[name] = record
    }

    package mutating func remove(_ name: CacheEntryName) {
        guard let record = records.removeValue(forKey: name) else { return }
        totalSize -= record.size
        if name.slot > 0 { variantCount -= 1 }
    }

    /// The least recently used entry; nil if new candidates have to be chosen first.
    package mutating func oldest() -> (name: CacheEntryName, lastUse: Double)? {
        while let candidate = candidates.popLast() {
            guard let record = records[candidate.name], record.sequence == candidate.sequence else { continue }
            // The candidate stays until it is removed.
            candidates.append(candidate)
            return (candidate.name, record.lastUse)
        }
        return nil
    }

    /// A snapshot of all uses, unsorted: sorting takes a while and is done without holding the lock.
    package var uses: [Use] {
        records.map { Use(name: $0.key, lastUse: $0.value.lastUse, sequence: $0.value.sequence) }
    }

    /// Sets the eviction candidates.
    ///
    /// Entries that were used or removed after the ``uses`` snapshot are no longer candidates.
    package mutating func choose(_ sorted: [Use]) {
        candidates = sorted
    }

    // MARK: Scans

    /// Begins a scan, whose end removes the records that were neither found nor noted during the scan.
    package mutating func beginScan() { scan &+= 1 }

    package mutating func found(_ name: CacheEntryName, size: Int64, lastUse: Double) {
        latest = max(latest, lastUse)
        var record = records[name] ?? Record(size: size, lastUse: lastUse, sequence: 0, scan: scan)
        record.size = size
        record.lastUse = max(record.lastUse, lastUse)
        record.scan = scan
        set(name, record)
    }

    package mutating func endScan() {
        for (name, record) in records where record.scan != scan { remove(name) }
        candidates = []
        isComplete = true
    }

    private mutating func set(_ name: CacheEntryName, _ record: Record) {
        var record = record
        record.size = min(max(record.size, 0), Self.largestSize)
        let old = records.updateValue(record, forKey: name)
        totalSize += record.size - (old?.size ?? 0)
        if old == nil, name.slot > 0 { variantCount += 1 }
    }
}
