//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Synchronization

/// What is known of the directory without a look at the disk. What another process stores may stay unnoticed for a quarter of a second.
extension DiskTier {
    /// One of the 256 folders, as the index has it.
    struct FolderView: Sendable {
        /// Whether the index has all that was in the folder when it was last changed, at `stamp`; nil if there was none.
        var isKnown = false
        var stamp: FileTime.Stamp?
        /// When that was last found to be so.
        var lastLook = -Double.greatestFiniteMagnitude
        var isScanning = false
    }

    private static let lookingInterval = 0.25

    /// Whether anything may be there at all: false where a scan found no folder, and none was made since.
    ///
    /// With `touchingDisk`, it looks at the directory now and then, if the disk answers; without, it may be there where that is due.
    func mayHaveAny(now: Double, touchingDisk: Bool) -> Bool {
        let (isEmpty, seen) = state.withLock { state -> (Bool, FileTime.Stamp?) in
            guard state.index.isComplete, state.index.count == 0, state.folderCount == 0, state.pendingCount == 0
            else { return (false, nil) }
            return (true, abs(now - state.lastLook) >= Self.lookingInterval ? state.rootTime : nil)
        }
        guard isEmpty, let seen else { return !isEmpty }
        guard touchingDisk, !queue.isStuck(.answers), FileTime.stamp(directory) == seen else { return true }
        state.withLock { $0.lastLook = now }
        return false
    }

    enum Foresight {
        /// It is not there.
        case miss
        /// The disk does not answer.
        case unavailable
        /// It may be there; look it up on the lane.
        case unknown(DiskQueue.Lane)
    }

    /// What a look-up would find, as far as that is known without the disk.
    ///
    /// It matters whether something was seen there just now.
    func foresee(_ name: CacheEntryName, now: Double, wasSeen: Bool) -> Foresight {
        let foresight = state.withLock { state -> Foresight in
            if state.pending[name] != nil { return .unknown(.changes) }
            // What was there goes.
            if state.pendingRemovals > 0 { return .miss }
            if state.pendingForAll > 0 { return .unknown(.changes) }
            let folder = state.folders[Int(name.folder)]
            let isKnown = !wasSeen && folder.isKnown && abs(now - folder.lastLook) < Self.lookingInterval
            return isKnown && !state.index.hasEntry(of: name) ? .miss : .unknown(.answers)
        }
        if case .unknown(let lane) = foresight, queue.isStuck(lane) || queue.isStuck(.answers) { return .unavailable }
        return foresight
    }

    // MARK: On the queue

    /// Looks whether another process has changed the directory, or the folder; if so, the folder is scanned anew.
    func notice(_ folder: UInt8, now: Double) {
        let (root, isDue) = state.withLock { state -> (FileTime.Stamp?, Bool) in
            let isEmpty = state.folderCount == 0 && abs(now - state.lastLook) >= Self.lookingInterval
            return (isEmpty ? state.rootTime : nil, abs(now - state.folders[Int(folder)].lastLook) >= Self.lookingInterval)
        }
        if let root, FileTime.stamp(directory) == root { state.withLock { $0.lastLook = now } }
        guard isDue else { return }
        let stamp = FileTime.stamp(path(folder))
        let mustScan = state.withLock { state in
            let known = state.folders[Int(folder)]
            if known.isKnown, known.stamp == stamp {
                state.folders[Int(folder)].lastLook = now
                return false
            }
            guard state.index.isComplete, !state.isScanning, !known.isScanning else { return false }
            state.folders[Int(folder)].isScanning = true
            return true
        }
        guard mustScan else { return }
        queue.run(on: .upkeep) { [weak self] in
            self?.look(into: folder)
            self?.state.withLock { $0.folders[Int(folder)].isScanning = false }
        }
    }

    /// Changes the names in a folder: what is known of it stays known.
    func changing<Value>(_ folder: UInt8, _ work: () -> Value) -> Value {
        let path = path(folder)
        let before = FileTime.stamp(path)
        let value = work()
        let after = FileTime.stamp(path)
        state.withLock { state in
            if state.folders[Int(folder)].stamp == before {
                state.folders[Int(folder)].stamp = after
            } else {
                state.folders[Int(folder)].isKnown = false
            }
        }
        return value
    }
}
