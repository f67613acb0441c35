//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Synchronization

#if canImport(Glibc)
import Glibc
#else
import Musl
#endif

/// What keeps the directory in order: all of it on the queue, and what no look-up or change needs on the lane for upkeep.
extension DiskTier {
    /// What a process left that ended while it wrote: older than that, nobody writes it any more.
    private static let leftoverAge = 3600.0

    /// Looks at the directory in the background.
    func open() {
        guard capacity > 0 else { return }
        queue.run(on: .changes) { [weak self] in self?.prepare() }
    }

    func setCapacity(_ capacity: Int) {
        let old = state.withLock { state in
            defer { state.capacity = max(0, capacity) }
            return state.capacity
        }
        guard old != capacity else { return }
        // A tier that was off so far has not looked at its directory; the change of what is on waits for nothing.
        queue.run(on: .changes) { [self] in
            if old == 0 { prepare() } else { evict() }
        }
    }

    private func prepare() {
        do {
            _ = try StoreDirectory(directory, creating: true)
            state.withLock { $0.isRefused = false }
            removeLeftovers()
            scan()
        } catch {
            state.withLock { $0.isRefused = true }
            StoreWarnings.warn("the response cache works in memory: \(error.reason)")
        }
    }

    // MARK: Scanning

    /// Looks at all folders, one at a time on the lane for upkeep, so that other work comes in between; then holds the capacity.
    func scan() {
        let rootTime = FileTime.stamp(directory)
        let begins = state.withLock { state in
            guard !state.isScanning else { return false }
            state.isScanning = true
            state.writtenSinceScan = 0
            state.index.beginScan()
            state.folderCount = 0
            state.rootTime = rootTime
            return true
        }
        if begins { queue.run(on: .upkeep) { [weak self] in self?.scan(folder: 0) } }
    }

    private func scan(folder: UInt8) {
        let isThere = look(into: folder)
        if isThere { state.withLock { $0.folderCount += 1 } }
        if folder < UInt8.max { return queue.run(on: .upkeep) { [weak self] in self?.scan(folder: folder + 1) } }
        state.withLock { state in
            state.index.endScan()
            state.isScanning = false
        }
        queue.run(on: .changes) { [weak self] in self?.evict() }
    }

    /// Takes what is in a folder into the index; answers whether the folder is there.
    @discardableResult
    func look(into folder: UInt8) -> Bool {
        let stamp = FileTime.stamp(path(folder))
        var found: [(CacheEntryName, Int64, Double)] = []
        let isThere = forEachFile(in: folder) { found.append(($0, Int64($1.st_size), FileTime.seconds($1.st_mtim))) }
        state.withLock { state in
            for (name, size, lastUse) in found { state.index.found(name, size: size, lastUse: lastUse) }
            state.folders[Int(folder)].isKnown = true
            state.folders[Int(folder)].stamp = stamp
            state.folders[Int(folder)].lastLook = -Double.greatestFiniteMagnitude
        }
        return isThere
    }

    func forEachFile(_ visit: (CacheEntryName, stat) -> Void) {
        for folder in UInt8.min...UInt8.max { forEachFile(in: folder, visit) }
    }

    /// What has a name of ours; anything else is left alone.
    ///
    /// Answers whether the folder is there.
    @discardableResult
    private func forEachFile(in folder: UInt8, _ visit: (CacheEntryName, stat) -> Void) -> Bool {
        guard let stream = opendir(path(folder)) else { return false }
        defer { closedir(stream) }
        let number = dirfd(stream)
        while let entry = readdir(stream) {
            withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                guard let start = bytes.baseAddress?.assumingMemoryBound(to: CChar.self),
                    let name = CacheEntryName(UnsafeRawBufferPointer(start: start, count: strlen(start))), name.folder == folder
                else { return }
                var status = stat()
                if fstatat(number, start, &status, AT_SYMLINK_NOFOLLOW) == 0 { visit(name, status) }
            }
        }
        return true
    }

    private func removeLeftovers() {
        let folder = directory + "/" + AsideFile.folder
        guard let stream = opendir(folder) else { return }
        defer { closedir(stream) }
        let now = time(nil)
        while let entry = readdir(stream) {
            withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                guard let name = bytes.baseAddress?.assumingMemoryBound(to: CChar.self) else { return }
                var status = stat()
                guard fstatat(dirfd(stream), name, &status, AT_SYMLINK_NOFOLLOW) == 0, status.st_mode & S_IFMT == S_IFREG,
                    Double(now) - Double(status.st_mtim.tv_sec) > Self.leftoverAge
                else { return }
                unlinkat(dirfd(stream), name, 0)
            }
        }
    }

    // MARK: Evicting

    /// Holds the capacity after something was written.
    ///
    /// What other processes write is seen by scanning now and then: every sixteenth of the capacity.
    func keepCapacity() {
        evict()
        let isDue = state.withLock { $0.index.isComplete && $0.writtenSinceScan > Int64($0.capacity / 16) }
        if isDue { scan() }
    }

    private enum Eviction {
        case none
        case remove(CacheEntryName, lastUse: Double)
        case choose([DiskIndex.Use])
    }

    private func nextEviction() -> Eviction {
        state.withLock { state in
            let isKnown = state.index.isComplete || state.capacity == 0
            guard isKnown, state.index.totalSize > Int64(state.capacity), state.index.count > 0 else { return .none }
            return state.index.oldest().map { .remove($0.name, lastUse: $0.lastUse) } ?? .choose(state.index.uses)
        }
    }

    /// Removes what was used longest ago until the rest is within the capacity, some at a time, so that other work comes in between.
    func evict() {
        for _ in 0..<Self.removedAtOnce {
            switch nextEviction() {
            case .none: return
            case .choose(var uses):
                // Look-ups need the lock meanwhile.
                uses.sort(by: DiskIndex.Use.isYounger)
                state.withLock { $0.index.choose(uses) }
            case .remove(let name, let lastUse):
                var status = stat()
                if lstat(path(name), &status) == 0 {
                    let time = FileTime.seconds(status.st_mtim)
                    // Another process has used it since.
                    if time > lastUse + 0.001 {
                        state.withLock { $0.index.noteUse(name, at: time) }
                        continue
                    }
                }
                removeFile(name)
            }
        }
        let isFirst = state.withLock { state in
            defer { state.isEvicting = true }
            return !state.isEvicting
        }
        guard isFirst else { return }
        goOn { [self] in
            state.withLock { $0.isEvicting = false }
            evict()
        }
    }

    // MARK: Durability

    /// Calls back, on the queue, when all that was changed before is durable.
    ///
    /// No look-up and no change waits for the syncs.
    func flush(completion: @escaping @Sendable () -> Void) {
        // A look-up that was begun before may lead to a change.
        queue.run(on: .answers) { [self] in flushChanges(completion) }
    }

    private func flushChanges(_ completion: @escaping @Sendable () -> Void) {
        queue.run(on: .changes) { [self] in
            // What was begun before is to be durable, too.
            if state.withLock({ $0.unfinishedCount > 0 }) { return flushChanges(completion) }
            let isFirst = state.withLock { state in
                let isEnabled = state.capacity > 0 && !state.isRefused
                state.syncs.append(
                    CacheSync(isEnabled ? state.unsynced : [], isEnabled ? state.unsyncedFolders : [], completion)
                )
                if isEnabled { (state.unsynced, state.unsyncedFolders) = ([], []) }
                return state.syncs.count == 1
            }
            guard isFirst else { return }
            queue.run(on: .upkeep) { [self] in
                writeUses()
                sync()
            }
        }
    }

    /// Takes one step, so that other work comes in between; one flush after the other, since each syncs what is its own alone.
    private func sync() {
        let (step, completion, goesOn) = state.withLock { state -> (CacheSync.Step?, (@Sendable () -> Void)?, Bool) in
            guard !state.syncs.isEmpty else { return (nil, nil, false) }
            if let step = state.syncs[0].next() { return (step, nil, true) }
            let completion = state.syncs.removeFirst().completion
            return (nil, completion, !state.syncs.isEmpty)
        }
        switch step {
        case .file(let name)?: sync(path(name), O_RDONLY)
        case .folder(let folder)?: sync(path(folder), O_RDONLY | O_DIRECTORY)
        case .directory?: sync(directory, O_RDONLY | O_DIRECTORY)
        case nil: completion?()
        }
        if goesOn { queue.run(on: .upkeep) { [self] in sync() } }
    }

    private func sync(_ path: String, _ flags: CInt) {
        guard let descriptor = try? Descriptor(path, flags, doing: "syncing the cache") else { return }
        fsync(descriptor.number)
    }
}
