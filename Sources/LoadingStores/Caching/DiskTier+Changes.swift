// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import LibC
import Synchronization

/// Changes of files; all of them run on the disk queue.
extension DiskTier {
    /// Stores an entry: from the file that holds its body, or from memory.
    ///
    /// Calls `done` when the body's memory is no longer needed.
    func store(
        _ name: CacheEntryName, _ head: CacheEntryFile.Head, _ aside: TemporaryCacheFile?, rest: Data,
        done: @escaping @Sendable () -> Void
    ) {
        let giveUp = { [self] in
            discard(aside)
            done()
        }
        change(name.key, insteadOf: giveUp) { [self] in
            defer { done() }
            guard isEnabled else { return aside?.discard() ?? () }
            let file = aside ?? TemporaryCacheFile(directory: directory)
            let lastUse = head.response.responseTime
            let length: Int64?
            if aside == nil {
                length = file.write(head, body: rest, lastUse: lastUse)
            } else {
                rest.withUnsafeBytes { file.append($0) }
                length = file.seal(head, lastUse: lastUse)
            }
            guard let length else { return file.discard() }
            put(file, length, at: place(name, head.key, for: head.response), head.response)
            keepCapacity()
        }
    }

    func discard(_ aside: TemporaryCacheFile?) {
        guard let aside else { return }
        queue.run(on: .changes) { aside.discard() }
    }

    func removeReplaced(_ name: CacheEntryName, by response: StoredResponse) {
        change(name.key) { [self] in
            guard isEnabled else { return }
            for slot in slots(name, response.url) {
                guard let old = slot.response else { continue }
                if CacheVariant.isSame(old, response) || !CacheVariant.hasSameFields(old, response) { removeFile(slot.name) }
            }
        }
    }

    func update(_ response: StoredResponse, replacing old: StoredResponse?) {
        let name = CacheEntryName(key: response.url)
        change(name.key) { [self] in
            guard isEnabled else { return }
            for slot in 0..<CacheEntryName.slotCount {
                let name = name.at(slot: slot)
                guard let (file, preamble, head) = opened(name), head.key == response.url else { continue }
                let stored = head.response
                guard
                    old.map({ $0 == stored })
                        ?? (CacheVariant.isSame(stored, response) && CacheVariant.hasSameBody(stored, response))
                else { continue }
                rewrite(name, file, preamble, CacheEntryFile.Head(key: head.key, response: response, userInfo: head.userInfo))
            }
            keepCapacity()
        }
    }

    /// Writes the same body with a new head.
    ///
    /// If that fails, the old entry stays.
    private func rewrite(
        _ name: CacheEntryName, _ file: CacheFile, _ preamble: CacheEntryFile.Preamble, _ head: CacheEntryFile.Head
    ) {
        let aside = TemporaryCacheFile(directory: directory)
        aside.copyBody(of: file, length: preamble.bodyLength)
        let lastUse = max(file.lastUse, head.response.responseTime)
        guard let length = aside.seal(head, bodyChecksum: preamble.bodyChecksum, lastUse: lastUse) else { return aside.discard() }
        // The copy needs no new check if the original was verified.
        let isSound = isVerified(name, file, preamble)
        put(aside, length, at: name, head.response)
        if isSound, case .file(let copy) = CacheFile.open(path(name)), let preamble = try? copy.preamble(waiting: true) {
            noteVerified(name, copy, preamble)
        }
    }

    private func put(_ file: TemporaryCacheFile, _ length: Int64, at name: CacheEntryName, _ response: StoredResponse) {
        guard changing(name.folder, { file.move(to: name) }) else { return file.discard() }
        state.withLock { state in
            let time = state.index.note(name, size: length, now: response.responseTime)
            // If the clock was set back, the file's time differs from the time in the index.
            if time != response.responseTime { state.uses.add(name) }
            state.syncs.wrote(name)
            state.capacityState.wrote(length)
        }
    }

    // MARK: Slots

    private struct Slot {
        var name: CacheEntryName
        /// Nil if the slot is empty or its damaged file was removed.
        var response: StoredResponse?
        var lastUse: Double = 0
    }

    private func opened(
        _ name: CacheEntryName
    ) -> (file: CacheFile, preamble: CacheEntryFile.Preamble, head: CacheEntryFile.Head)? {
        guard case .file(let file) = CacheFile.open(path(name)), let (preamble, head) = try? file.head(waiting: true)
        else { return nil }
        return (file, preamble, head)
    }

    private func slots(_ name: CacheEntryName, _ key: String) -> [Slot] {
        (0..<CacheEntryName.slotCount).map { number in
            let name = name.at(slot: number)
            switch CacheFile.open(path(name)) {
            case .absent: return Slot(name: name)
            case .foreign: break
            case .file(let file):
                if let (_, head) = try? file.head(waiting: true), head.key == key {
                    return Slot(name: name, response: head.response, lastUse: file.lastUse)
                }
            }
            removeFile(name)
            return Slot(name: name)
        }
    }

    /// The slot for a response: that of the same variant, otherwise an empty one, otherwise the least recently used one.
    private func place(_ name: CacheEntryName, _ key: String, for response: StoredResponse) -> CacheEntryName {
        var same: CacheEntryName?
        var empty: CacheEntryName?
        var oldest: Slot?
        for slot in slots(name, key) {
            guard let old = slot.response else {
                empty = empty ?? slot.name
                continue
            }
            if !CacheVariant.hasSameFields(old, response) || same != nil && CacheVariant.isSame(old, response) {
                removeFile(slot.name)
                empty = empty ?? slot.name
            } else if CacheVariant.isSame(old, response) {
                same = slot.name
            } else if slot.lastUse < oldest?.lastUse ?? .infinity {
                oldest = slot
            }
        }
        return same ?? empty ?? oldest?.name ?? name
    }

    // MARK: Removing

    func remove(_ name: CacheEntryName, only old: StoredResponse?) {
        change(name.key) { [self] in
            guard mayTouchDisk else { return }
            for slot in 0..<CacheEntryName.slotCount where old.map({ isStored($0, at: name.at(slot: slot)) }) ?? true {
                removeFile(name.at(slot: slot))
            }
        }
    }

    private func isStored(_ response: StoredResponse, at name: CacheEntryName) -> Bool {
        opened(name)?.head.response == response
    }

    func removeAll() {
        change(nil, removesAll: true) { [self] in
            guard mayTouchDisk else { return }
            // The files are not removed in batches: an entry that is revalidated between two batches would be written again and
            // stay.
            forEachFile { name, _ in removeFile(name) }
        }
    }

    func removeEntries(storedAfter time: Double) {
        change(nil) { [self] in
            guard mayTouchDisk else { return }
            forEachFile { name, _ in
                guard case .file(let file) = CacheFile.open(path(name)), let preamble = try? file.preamble(waiting: true),
                    preamble.storedAt <= time
                else { return removeFile(name) }
            }
        }
    }

    private var mayTouchDisk: Bool { !state.withLock { $0.capacityState.isRefused } }

    /// All entries that a lookup would find.
    ///
    /// Runs on the caller's thread.
    func entries() -> [(response: StoredResponse, size: Int64, lastUse: Double)] {
        waitForChanges()
        guard isEnabled else { return [] }
        var found: [(response: StoredResponse, size: Int64, lastUse: Double)] = []
        forEachFile { name, _ in
            guard let (file, _, head) = opened(name) else { return }
            found.append((head.response, file.length, state.withLock { $0.index[name]?.lastUse } ?? file.lastUse))
        }
        return found
    }
}
