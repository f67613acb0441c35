// SPDX-License-Identifier: Apache-2.0

import LibC
import Synchronization

/// Maintenance of the directory, which runs on the disk queue.
///
/// Work that no lookup or change depends on runs on the upkeep lane.
extension DiskTier {
    /// The age in seconds at which a temporary file counts as a leftover of a process that ended while writing.
    private static let leftoverAge = 3600.0

    /// Prepares the directory in the background.
    func open() {
        guard capacity > 0 else { return }
        queue.run(on: .changes) { [weak self] in self?.prepare() }
    }

    func setCapacity(_ capacity: Int) {
        let old = state.withLock { $0.capacityState.set(capacity) }
        guard old != capacity else { return }
        // A tier that was disabled has not scanned its directory yet. Other capacity changes need no scan.
        queue.run(on: .changes) { [self] in
            if old == 0 { prepare() } else { evict() }
        }
    }

    private func prepare() {
        do {
            _ = try StoreDirectory(directory, creating: true)
            state.withLock { $0.capacityState.refuse(false) }
            removeLeftovers()
            scan()
        } catch {
            state.withLock { $0.capacityState.refuse(true) }
            StoreWarnings.warn("the response cache is in memory only: \(error.reason)")
        }
    }

    // MARK: Scanning

    /// Scans all folders, one at a time on the upkeep lane, so that other work can run in between; then enforces the capacity.
    func scan() {
        let rootTime = FileTime.stamp(directory)
        let begins = state.withLock { state in
            guard state.folders.beginScan(root: rootTime) else { return false }
            state.capacityState.scanBegan()
            state.index.beginScan()
            return true
        }
        if begins { queue.run(on: .upkeep) { [weak self] in self?.scan(folder: 0) } }
    }

    private func scan(folder: UInt8) {
        let isThere = look(into: folder)
        if isThere { state.withLock { $0.folders.sawFolder() } }
        if folder < UInt8.max { return queue.run(on: .upkeep) { [weak self] in self?.scan(folder: folder + 1) } }
        state.withLock { state in
            state.index.endScan()
            state.folders.endScan()
        }
        queue.run(on: .changes) { [weak self] in self?.evict() }
    }

    /// Updates the index from a folder; returns whether the folder exists.
    @discardableResult
    func look(into folder: UInt8) -> Bool {
        let stamp = FileTime.stamp(path(folder))
        var found: [(CacheEntryName, Int64, Double)] = []
        let isThere = forEachFile(in: folder) { found.append(($0, Int64($1.st_size), FileTime.seconds($1.st_mtim))) }
        state.withLock { state in
            for (name, size, lastUse) in found { state.index.found(name, size: size, lastUse: lastUse) }
            state.folders.scanned(folder, stamp)
        }
        return isThere
    }

    func forEachFile(_ visit: (CacheEntryName, stat) -> Void) {
        for folder in UInt8.min...UInt8.max { forEachFile(in: folder, visit) }
    }

    /// Visits the files whose names are entry names, and ignores all others.
    ///
    /// Returns whether the folder exists.
    @discardableResult
    private func forEachFile(in folder: UInt8, _ visit: (CacheEntryName, stat) -> Void) -> Bool {
        forEachName(in: path(folder)) { directory, start in
            guard let name = CacheEntryName(UnsafeRawBufferPointer(start: start, count: strlen(start))), name.folder == folder
            else { return }
            var status = stat()
            if fstatat(directory, start, &status, AT_SYMLINK_NOFOLLOW) == 0 { visit(name, status) }
        }
    }

    private func forEachName(in path: String, _ visit: (CInt, UnsafePointer<CChar>) -> Void) -> Bool {
        guard let stream = opendir(path) else { return false }
        defer { closedir(stream) }
        while let entry = readdir(stream) {
            withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                if let name = bytes.baseAddress?.assumingMemoryBound(to: CChar.self) { visit(dirfd(stream), name) }
            }
        }
        return true
    }

    private func removeLeftovers() {
        let now = time(nil)
        _ = forEachName(in: directory + "/" + TemporaryCacheFile.folder) { directory, name in
            var status = stat()
            guard fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) == 0, status.st_mode & S_IFMT == S_IFREG,
                Double(now) - Double(status.st_mtim.tv_sec) > Self.leftoverAge
            else { return }
            unlinkat(directory, name, 0)
        }
    }

    // MARK: Evicting

    /// Enforces the capacity after a write.
    ///
    /// Each time that a sixteenth of the capacity has been written, a scan finds the files of other processes.
    func keepCapacity() {
        evict()
        if state.withLock({ $0.index.isComplete && $0.capacityState.isScanDue }) { scan() }
    }

    private enum Eviction {
        case none
        case remove(CacheEntryName, lastUse: Double)
        case choose([DiskIndex.Use])
    }

    private func nextEviction() -> Eviction {
        state.withLock { state in
            guard state.capacityState.isExceeded(by: state.index) else { return .none }
            return state.index.oldest().map { .remove($0.name, lastUse: $0.lastUse) } ?? .choose(state.index.uses)
        }
    }

    /// Removes least recently used entries until the rest is within the capacity, in batches, so that other work can run in
    /// between.
    func evict() {
        for _ in 0..<Self.removedAtOnce {
            switch nextEviction() {
            case .none: return
            case .choose(var uses):
                // Sorted without holding the lock, which lookups need.
                uses.sort(by: DiskIndex.Use.isMoreRecent)
                state.withLock { $0.index.choose(uses) }
            case .remove(let name, let lastUse):
                var status = stat()
                if lstat(path(name), &status) == 0 {
                    let time = FileTime.seconds(status.st_mtim)
                    // Another process has used the entry since.
                    if time > lastUse + 0.001 {
                        state.withLock { $0.index.noteUse(name, at: time) }
                        continue
                    }
                }
                removeFile(name)
            }
        }
        guard state.withLock({ $0.capacityState.beginEvicting() }) else { return }
        proceed { [self] in
            state.withLock { $0.capacityState.continueEvicting() }
            evict()
        }
    }

    // MARK: Durability

    /// Calls `completion` on the queue when all earlier changes are durable.
    ///
    /// No lookup or change waits for the syncs.
    func flush(completion: @escaping @Sendable () -> Void) {
        // A lookup that is still running may lead to a change.
        queue.run(on: .answers) { [self] in flushChanges(completion) }
    }

    private func flushChanges(_ completion: @escaping @Sendable () -> Void) {
        queue.run(on: .changes) { [self] in
            // Earlier changes that are only partly done must become durable, too.
            if state.withLock({ $0.changes.hasUnfinished }) { return flushChanges(completion) }
            guard state.withLock({ $0.syncs.add(completion, isEnabled: $0.capacityState.isEnabled) }) else { return }
            queue.run(on: .upkeep) { [self] in
                writeUses()
                sync()
            }
        }
    }

    /// Runs one step and queues the rest, so that other work can run in between.
    ///
    /// Flushes run one at a time, because each syncs only its own changes.
    private func sync() {
        let (step, completion, hasMore) = state.withLock { $0.syncs.next() }
        switch step {
        case .file(let name)?: sync(path(name), O_RDONLY)
        case .folder(let folder)?: sync(path(folder), O_RDONLY | O_DIRECTORY)
        case .directory?: sync(directory, O_RDONLY | O_DIRECTORY)
        case nil: completion?()
        }
        if hasMore { queue.run(on: .upkeep) { [self] in sync() } }
    }

    private func sync(_ path: String, _ flags: CInt) {
        guard let descriptor = try? Descriptor(path, flags, doing: "syncing the cache") else { return }
        fsync(descriptor.number)
    }
}

/// The capacity of the disk tier, and whether a scan for files of other processes is due.
struct CacheCapacity: Sendable {
    private(set) var capacity: Int
    /// Whether the directory is not used, because it cannot be created or opened, or because other users own it or can write to it.
    private(set) var isRefused = false
    private var isEvicting = false
    private var writtenSinceScan: Int64 = 0

    init(capacity: Int) { self.capacity = max(0, capacity) }

    var isEnabled: Bool { capacity > 0 && !isRefused }
    var isScanDue: Bool { writtenSinceScan > Int64(capacity / 16) }

    func isExceeded(by index: DiskIndex) -> Bool {
        (index.isComplete || capacity == 0) && index.totalSize > Int64(capacity) && index.count > 0
    }

    /// Returns the previous capacity.
    mutating func set(_ capacity: Int) -> Int {
        defer { self.capacity = max(0, capacity) }
        return self.capacity
    }

    mutating func refuse(_ isRefused: Bool) { self.isRefused = isRefused }
    mutating func wrote(_ length: Int64) { writtenSinceScan += length }
    mutating func scanBegan() { writtenSinceScan = 0 }

    /// Marks the rest of an eviction as queued; returns false if it already was.
    mutating func beginEvicting() -> Bool {
        defer { isEvicting = true }
        return !isEvicting
    }

    mutating func continueEvicting() { isEvicting = false }
}
