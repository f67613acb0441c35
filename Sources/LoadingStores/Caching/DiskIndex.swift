//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// What the disk tier knows of its files: how large they are, and which was used longest ago.
///
/// A value without I/O. It may be wrong, since other processes change the same directory: whoever acts on it looks at the file.
package struct DiskIndex: Sendable {
    package struct Record: Hashable, Sendable {
        package var size: Int64
        package var lastUse: Double
        /// Which use it was of this process: tells apart what happened at the same time.
        fileprivate var sequence: UInt64
        fileprivate var scan: UInt32
    }

    /// When an entry was used, as of some moment.
    package struct Use: Sendable {
        fileprivate var name: CacheEntryName
        fileprivate var lastUse: Double
        fileprivate var sequence: UInt64

        /// For ``DiskIndex/choose(_:)``: the one used longest ago comes last.
        package static func isYounger(_ one: Use, _ other: Use) -> Bool {
            (other.lastUse, other.sequence) < (one.lastUse, one.sequence)
        }
    }

    /// What counts of a file that says it is larger, as a sparse one may: so many of these as a folder can hold still have a sum.
    private static let largestSize: Int64 = 1 << 40

    private var records: [CacheEntryName: Record] = [:]
    /// How many of them are not in the first slot of their key.
    private var variantCount = 0
    /// As they were when they were sorted, the one used longest ago last.
    ///
    /// Whatever was used since is younger than all of these.
    private var candidates: [Use] = []
    private var sequence: UInt64 = 0
    private var scan: UInt32 = 0
    /// The newest time heard of, so that a clock that is set back does not make new entries the oldest.
    private var latest = -Double.greatestFiniteMagnitude
    package private(set) var totalSize: Int64 = 0
    /// Whether a scan has seen all files.
    package private(set) var isComplete = false

    package init() {}

    package var count: Int { records.count }
    package var names: [CacheEntryName] { Array(records.keys) }
    package subscript(name: CacheEntryName) -> Record? { records[name] }

    /// Whether a key, named by its first variant, has any entry.
    package func hasEntry(of name: CacheEntryName) -> Bool { records[name] != nil || hasSlot(after: name) }

    /// Whether a key has an entry in a later slot.
    package func hasSlot(after name: CacheEntryName) -> Bool {
        guard variantCount > 0 else { return false }
        return (name.slot + 1..<max(CacheEntryName.slotCount, name.slot + 1)).contains { records[name.at(slot: $0)] != nil }
    }

    /// An entry was written or used; answers the time to write down.
    @discardableResult
    package mutating func note(_ name: CacheEntryName, size: Int64, now: Double) -> Double {
        sequence += 1
        latest = max(latest, now)
        set(name, Record(size: size, lastUse: latest, sequence: sequence, scan: scan))
        return latest
    }

    /// An entry turns out to have been used by another process.
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

    /// The entry used longest ago; nil where the candidates are to be chosen first.
    package mutating func oldest() -> (name: CacheEntryName, lastUse: Double)? {
        while let candidate = candidates.popLast() {
            guard let record = records[candidate.name], record.sequence == candidate.sequence else { continue }
            // Whoever asks again without having removed it gets it again.
            candidates.append(candidate)
            return (candidate.name, record.lastUse)
        }
        return nil
    }

    /// What there is to choose from, in no order: sorting takes a while, and needs no lock.
    package var uses: [Use] {
        records.map { Use(name: $0.key, lastUse: $0.value.lastUse, sequence: $0.value.sequence) }
    }

    /// Those used longest ago are removed first.
    ///
    /// What was used or removed since ``uses`` was asked for is no candidate any more.
    package mutating func choose(_ sorted: [Use]) {
        candidates = sorted
    }

    // MARK: Scans

    /// What is not found from now on, and is not noted either, is gone when the scan ends.
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
