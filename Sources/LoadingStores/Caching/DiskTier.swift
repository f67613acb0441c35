// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import HTTPWire
import LibC
import Synchronization

/// The entries on disk: one file each, in 256 folders, found by name.
///
/// All changes run in order on the ``DiskQueue``'s lane for changes. A lookup of an entry with pending changes is queued behind
/// them. An index in memory has the sizes and the order of use, so that a lookup of an entry that does not exist needs no disk
/// access.
final class DiskTier: Sendable {
    enum Outcome {
        case hit(ResponseCache.Hit, CacheEntryName)
        /// A hit if its body passes the check. The caller runs the check, then repeats the lookup.
        case unchecked(BodyCheck)
        case miss
        case wait
    }

    /// The type of each property is declared next to the functions that change it.
    struct State: Sendable {
        var index = DiskIndex()
        var capacityState: CacheCapacity
        var changes = PendingChanges()
        var folders = FolderViews()
        var uses = UnwrittenUses()
        var verified = VerifiedBodies()
        var syncs = CacheSyncs()
    }

    /// Bodies up to this size are read immediately, on the caller's thread, if they are in the page cache.
    static let readAtOnceLimit: Int64 = 256 << 10
    /// Bodies up to this size are read as a whole and verified before use.
    static let readWholeLimit: Int64 = 1 << 20

    let directory: String
    let queue: DiskQueue
    let state: Mutex<State>

    init(directory: String, capacity: Int, queue: DiskQueue) {
        self.directory = directory.count > 1 && directory.hasSuffix("/") ? String(directory.dropLast()) : directory
        self.queue = queue
        state = Mutex(State(capacityState: CacheCapacity(capacity: capacity)))
    }

    var capacity: Int { state.withLock { $0.capacityState.capacity } }
    var isEnabled: Bool { state.withLock { $0.capacityState.isEnabled } }
    var usage: Int { state.withLock { Int(clamping: $0.index.totalSize) } }

    func path(_ name: CacheEntryName) -> String { directory + "/" + name.path }
    func path(_ folder: UInt8) -> String { directory + "/" + CacheEntryName.folderName(folder) }

    // MARK: Looking up

    /// Searches a key's slots for an entry that matches the request.
    ///
    /// With `waiting`, it may wait for the disk, so callers run it on the queue.
    func lookUp(
        _ name: CacheEntryName,
        key: String,
        requestHeaders: HeaderBlock,
        now: Double,
        waiting: Bool
    ) -> Outcome {
        if !waiting, state.withLock({ $0.changes.mayAffect(name) }) { return .wait }
        for slot in 0..<CacheEntryName.slotCount {
            let name = name.at(slot: slot)
            switch CacheFile.open(path(name)) {
            case .absent:
                // A removed variant leaves a gap. Before the first scan, gaps may be anywhere.
                let hasMore = state.withLock { !$0.index.isComplete || $0.index.hasSlot(after: name) }
                if !hasMore { return .miss }
            case .foreign:
                removeInvalid(name, inode: nil)
            case .file(let file):
                do throws(CacheFile.Failure) {
                    let (hit, preamble) = try hit(name, file, key: key, waiting: waiting)
                    guard CacheKey.matches(hit.response, requestHeaders: requestHeaders) else { continue }
                    if case .file = hit.body {
                        // If the limit on open files is reached, the entry is a miss.
                        guard file.keepOpen() else { return .miss }
                        if !isVerified(name, file, preamble) {
                            return waiting ? .unchecked(BodyCheck(name, file, preamble)) : .wait
                        }
                    }
                    noteUse(name, size: file.length, now: now)
                    return .hit(hit, name)
                } catch .wouldWait {
                    return .wait
                } catch {
                    removeInvalid(name, inode: file.inode)
                }
            }
        }
        return .miss
    }

    private func hit(
        _ name: CacheEntryName, _ file: CacheFile, key: String, waiting: Bool
    ) throws(CacheFile.Failure) -> (ResponseCache.Hit, CacheEntryFile.Preamble) {
        // Most heads fit into this margin. An entry with a longer head is treated as large.
        let isSmall = file.length <= (waiting ? Self.readWholeLimit : Self.readAtOnceLimit) + 4096
        let (preamble, head, body) =
            if isSmall { try small(file, waiting: waiting) } else { try large(name, file, waiting: waiting) }
        // The file's name is the hash of the key, so an entry with another key was not stored by this cache.
        guard head.key == key else { throw .damaged }
        let hit = ResponseCache.Hit(
            response: head.response, body: body, userInfo: head.userInfo, storedAt: preamble.storedAt)
        return (hit, preamble)
    }

    private func small(
        _ file: CacheFile, waiting: Bool
    ) throws(CacheFile.Failure) -> (CacheEntryFile.Preamble, CacheEntryFile.Head, ResponseCache.Body) {
        let content = try file.content(waiting: waiting)
        return (content.preamble, content.head, .bytes(content.body))
    }

    /// Looks up an entry whose body may stay in its file.
    private func large(
        _ name: CacheEntryName, _ file: CacheFile, waiting: Bool
    ) throws(CacheFile.Failure) -> (CacheEntryFile.Preamble, CacheEntryFile.Head, ResponseCache.Body) {
        let (preamble, head) = try file.head(waiting: waiting)
        guard preamble.bodyLength <= Self.readWholeLimit else {
            let inode = file.inode
            let body = CacheBodyFile(file, preamble, queue: queue) { [weak self] in self?.removeInvalid(name, inode: inode) }
            return (preamble, head, .file(body))
        }
        guard waiting else { throw .wouldWait }
        return try small(file, waiting: true)
    }

    // MARK: Use

    /// Records a use in the index immediately and in the file later.
    private func noteUse(_ name: CacheEntryName, size: Int64, now: Double) {
        let isFirst = state.withLock { state in
            state.index.note(name, size: size, now: now)
            return state.uses.note(name)
        }
        // Many uses are recorded together.
        if isFirst { queue.run(on: .upkeep, after: 2) { [self] in writeUses() } }
    }

    /// Records a use by the memory tier.
    func noteUse(of name: CacheEntryName, now: Double) {
        guard let size = state.withLock({ $0.index[name]?.size }) else { return }
        noteUse(name, size: size, now: now)
    }

    /// Writes the noted uses to the files' times; runs on the upkeep lane.
    func writeUses() {
        let uses = state.withLock { state in
            state.uses.take().compactMap { name in state.index[name].map { (name, $0.lastUse) } }
        }
        for (name, lastUse) in uses { setLastUse(name, lastUse) }
    }

    // MARK: Changes

    /// Runs a change on the queue.
    ///
    /// Until the change is done, lookups of the key are queued behind it.
    ///
    /// A change without a key makes all lookups wait. If too many changes are pending, calls `insteadOf` and removes all entries
    /// instead.
    func change(
        _ key: CacheEntryName?, removesAll: Bool = false, insteadOf instead: () -> Void = {},
        _ work: @escaping @Sendable () -> Void
    ) {
        guard state.withLock({ $0.changes.begin(key, removesAll: removesAll) }) else {
            instead()
            if !state.withLock({ $0.changes.endsInRemoval }) { removeAll() }
            return
        }
        queue.run(on: .changes) { [self] in
            if removesAll { state.withLock { $0.changes.removalStarted() } }
            work()
            state.withLock { $0.changes.end(key, removesAll: removesAll) }
        }
    }

    /// How many files are removed at a time, before other changes run.
    static let removedAtOnce = 64

    /// Queues the rest of a change behind the changes that were queued meanwhile.
    func proceed(_ work: @escaping @Sendable () -> Void) {
        state.withLock { $0.changes.proceed() }
        queue.run(on: .changes) { [self] in
            work()
            state.withLock { $0.changes.continuationEnded() }
        }
    }

    /// Waits until earlier changes have reached the files, or until the disk counts as unresponsive.
    func waitForChanges() {
        // A thread of the queue would wait for itself.
        guard !queue.isCurrent else { return }
        repeat { queue.wait(for: .changes) } while state.withLock { $0.changes.hasUnfinished } && !queue.isStuck(.changes)
    }

    /// Removes a file that is not a valid entry, unless another file has replaced it meanwhile.
    func removeInvalid(_ name: CacheEntryName, inode: ino_t?) {
        change(name.key) { [self] in
            var status = stat()
            guard lstat(path(name), &status) == 0, inode == nil || status.st_ino == inode else { return }
            if inode == nil, case .file = CacheFile.open(path(name)) { return }
            removeFile(name)
        }
    }

    /// Runs on the lane for changes.
    func removeFile(_ name: CacheEntryName) {
        // A folder with the entry's name is removed if it is empty; otherwise the entry stays a miss.
        let isRemoved = changing(name.folder) {
            unlink(path(name)) == 0 || errno == EISDIR && rmdir(path(name)) == 0
        }
        state.withLock { state in
            state.syncs.removed(name, isRemoved: isRemoved)
            state.index.remove(name)
            state.verified.forget(name)
        }
    }
}

/// Uses that are in the index but not in the files' times yet.
///
/// They are written in batches.
struct UnwrittenUses: Sendable {
    private var names: Set<CacheEntryName> = []
    private var isDue = false

    /// Adds a use to the next batch.
    mutating func add(_ name: CacheEntryName) { names.insert(name) }

    /// Adds a use; returns whether the caller has to schedule the batch.
    mutating func note(_ name: CacheEntryName) -> Bool {
        names.insert(name)
        defer { isDue = true }
        return !isDue
    }

    mutating func take() -> Set<CacheEntryName> {
        defer { self = UnwrittenUses() }
        return names
    }
}
