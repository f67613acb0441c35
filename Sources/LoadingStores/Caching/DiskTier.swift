//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import HTTPRules
import HTTPWire
import Synchronization

#if canImport(Glibc)
import Glibc
#else
import Musl
#endif

/// The entries that are kept in files: one for each, in 256 folders, found by their names.
///
/// All changes are made on the lane of the ``DiskQueue`` for them, in order; a look-up of what has changes before it waits for them
/// there. What is known of the directory's content is an index in memory, for sizes, for the order of use, and for saying without
/// a look at the disk that something is not there.
final class DiskTier: Sendable {
    enum Outcome {
        case hit(ResponseCache.Hit, CacheEntryName)
        /// A hit if its body is what was stored: look it up again after the check.
        case unchecked(BodyCheck)
        case miss
        case wait
    }

    /// Each part stands beside the functions that change it.
    struct State: Sendable {
        var index = DiskIndex()
        var room: CacheRoom
        var changes = PendingChanges()
        var folders = FolderViews()
        var uses = UnwrittenUses()
        var sound = SoundBodies()
        var syncs = CacheSyncs()
    }

    /// Bodies up to here are read at once, on the caller's thread, where they are in the page cache.
    static let readAtOnceLimit: Int64 = 256 << 10
    /// Bodies up to here are read as a whole, and checked before they are used.
    static let readWholeLimit: Int64 = 1 << 20

    let directory: String
    let queue: DiskQueue
    let state: Mutex<State>

    init(directory: String, capacity: Int, queue: DiskQueue) {
        self.directory = directory.count > 1 && directory.hasSuffix("/") ? String(directory.dropLast()) : directory
        self.queue = queue
        state = Mutex(State(room: CacheRoom(capacity: capacity)))
    }

    var capacity: Int { state.withLock { $0.room.capacity } }
    var isEnabled: Bool { state.withLock { $0.room.isEnabled } }
    var usage: Int { state.withLock { Int(clamping: $0.index.totalSize) } }

    func path(_ name: CacheEntryName) -> String { directory + "/" + name.path }
    func path(_ folder: UInt8) -> String { directory + "/" + CacheEntryName.folderName(folder) }

    // MARK: Looking up

    /// Tries a key's slots in turn until one is for the request.
    ///
    /// With `waiting`, on the queue.
    func lookUp(
        _ name: CacheEntryName,
        key: String,
        requestHeaders: HeaderBlock,
        now: Double,
        waiting: Bool
    ) -> Outcome {
        if !waiting, state.withLock({ $0.changes.mayConcern(name) }) { return .wait }
        for slot in 0..<CacheEntryName.slotCount {
            let name = name.at(slot: slot)
            switch CacheFile.open(path(name)) {
            case .absent:
                // There is a gap where one of several was removed; before the first scan, it may be anywhere.
                let goesOn = state.withLock { !$0.index.isComplete || $0.index.hasSlot(after: name) }
                if !goesOn { return .miss }
            case .foreign:
                removeUnfit(name, inode: nil)
            case .file(let file):
                switch hit(name, file, key: key, waiting: waiting) {
                case .wouldWait: return .wait
                case .damaged: removeUnfit(name, inode: file.inode)
                case .value(let (hit, preamble)):
                    guard CacheKey.matches(hit.response, requestHeaders: requestHeaders) else { continue }
                    if case .file = hit.body {
                        // Without a descriptor to spare it is as if there were none.
                        guard file.keepOpen() else { return .miss }
                        if !isKnownSound(name, file, preamble) {
                            return waiting ? .unchecked(BodyCheck(name, file, preamble)) : .wait
                        }
                    }
                    noteUse(name, size: file.length, now: now)
                    return .hit(hit, name)
                }
            }
        }
        return .miss
    }

    private func hit(
        _ name: CacheEntryName, _ file: CacheFile, key: String, waiting: Bool
    ) -> CacheFile.Reading<(ResponseCache.Hit, CacheEntryFile.Preamble)> {
        let result: CacheFile.Reading<(CacheEntryFile.Preamble, CacheEntryFile.Head, ResponseCache.Body)>
        // The head of most is shorter than what is added here; where not, it goes the other way.
        if file.length <= (waiting ? Self.readWholeLimit : Self.readAtOnceLimit) + 4096 {
            result = file.content(waiting: waiting).map { ($0.preamble, $0.head, .bytes($0.body)) }
        } else {
            result = large(name, file, waiting: waiting)
        }
        return result.flatMap { preamble, head, body in
            // The key's hash names the file: whatever has another key was not put there by us.
            guard head.key == key else { return .damaged }
            let hit = ResponseCache.Hit(
                response: head.response,
                body: body,
                attachment: nil,
                userInfo: head.userInfo,
                mayGoToDisk: true,
                storedAt: preamble.storedAt
            )
            return .value((hit, preamble))
        }
    }

    /// An entry whose body may be left in its file.
    private func large(
        _ name: CacheEntryName,
        _ file: CacheFile,
        waiting: Bool
    ) -> CacheFile.Reading<(CacheEntryFile.Preamble, CacheEntryFile.Head, ResponseCache.Body)> {
        file.head(waiting: waiting).flatMap { preamble, head in
            guard preamble.bodyLength <= Self.readWholeLimit else {
                let inode = file.inode
                let body = CacheBodyFile(file, preamble, queue: queue) { [weak self] in self?.removeUnfit(name, inode: inode) }
                return .value((preamble, head, .file(body)))
            }
            guard waiting else { return .wouldWait }
            return file.content(waiting: true).map { ($0.preamble, $0.head, .bytes($0.body)) }
        }
    }

    // MARK: Use

    /// An entry was used: in the index now, in its file when there is time.
    private func noteUse(_ name: CacheEntryName, size: Int64, now: Double) {
        let isFirst = state.withLock { state in
            state.index.note(name, size: size, now: now)
            return state.uses.note(name)
        }
        // Many uses are written down together.
        if isFirst { queue.run(on: .upkeep, after: 2) { [self] in writeUses() } }
    }

    /// An entry is used out of the memory tier.
    func noteUse(of name: CacheEntryName, now: Double) {
        guard let size = state.withLock({ $0.index[name]?.size }) else { return }
        noteUse(name, size: size, now: now)
    }

    /// On the lane for upkeep.
    func writeUses() {
        let uses = state.withLock { state in
            state.uses.take().compactMap { name in state.index[name].map { (name, $0.lastUse) } }
        }
        for (name, lastUse) in uses { setLastUse(name, lastUse) }
    }

    // MARK: Changes

    /// Runs a change on the queue; until it is done, look-ups of the key wait for it.
    ///
    /// Without a key, all look-ups do. Where too much waits already, everything is removed instead, once `insteadOf` was called.
    func change(
        _ key: CacheEntryName?, removesAll: Bool = false, insteadOf instead: () -> Void = {},
        _ work: @escaping @Sendable () -> Void
    ) {
        guard state.withLock({ $0.changes.begin(key, removesAll: removesAll) }) else {
            instead()
            if !state.withLock({ $0.changes.endInRemoval }) { removeAll() }
            return
        }
        queue.run(on: .changes) { [self] in
            if removesAll { state.withLock { $0.changes.removalRuns() } }
            work()
            state.withLock { $0.changes.end(key, removesAll: removesAll) }
        }
    }

    /// How many files are removed before other changes have their turn.
    static let removedAtOnce = 64

    /// Runs the rest of a change behind the changes that were made meanwhile.
    func goOn(_ work: @escaping @Sendable () -> Void) {
        state.withLock { $0.changes.goOn() }
        queue.run(on: .changes) { [self] in
            work()
            state.withLock { $0.changes.wentOn() }
        }
    }

    /// Waits until what was changed before has reached the files, or the disk does not answer.
    func waitForChanges() {
        // Its own thread would wait for itself.
        guard !queue.isCurrent else { return }
        repeat { queue.wait(for: .changes) } while state.withLock { $0.changes.areUnfinished } && !queue.isStuck(.changes)
    }

    /// Removes what is no entry of ours, unless another one has taken its place meanwhile.
    func removeUnfit(_ name: CacheEntryName, inode: ino_t?) {
        change(name.key) { [self] in
            var status = stat()
            guard lstat(path(name), &status) == 0, inode == nil || status.st_ino == inode else { return }
            if inode == nil, case .file = CacheFile.open(path(name)) { return }
            removeFile(name)
        }
    }

    /// On the lane for changes.
    func removeFile(_ name: CacheEntryName) {
        // A folder in its place is removed if it is empty; otherwise it stays a miss.
        let isRemoved = changing(name.folder) {
            unlink(path(name)) == 0 || errno == EISDIR && rmdir(path(name)) == 0
        }
        state.withLock { state in
            state.syncs.removed(name, isRemoved: isRemoved)
            state.index.remove(name)
            state.sound.forget(name)
        }
    }
}

/// Uses that are in the index, and not in the files' times yet: many are written down together.
struct UnwrittenUses: Sendable {
    private var names: Set<CacheEntryName> = []
    private var isDue = false

    /// Has the use written down with the next ones.
    mutating func add(_ name: CacheEntryName) { names.insert(name) }

    /// Answers whether they are to be written soon, which none before has asked for.
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
