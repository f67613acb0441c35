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
    /// Whether anything may be there at all: false where a scan found no folder, and none was made since.
    ///
    /// With `touchingDisk`, it looks at the directory now and then, if the disk answers; without, it may be there where that is due.
    func mayHaveAny(now: Double, touchingDisk: Bool) -> Bool {
        let (isEmpty, seen) = state.withLock { state -> (Bool, FileTime.Stamp?) in
            let isEmpty = state.index.isComplete && state.index.count == 0 && state.folders.areNone && state.changes.areNone
            return (isEmpty, isEmpty ? state.folders.dueRoot(now: now) : nil)
        }
        guard isEmpty, let seen else { return !isEmpty }
        guard touchingDisk, !queue.isStuck(.answers), FileTime.stamp(directory) == seen else { return true }
        state.withLock { $0.folders.rootIsUnchanged(now: now) }
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
            if state.changes.concern(name) { return .unknown(.changes) }
            if state.changes.includeRemoval { return .miss }
            if state.changes.mayConcern(name) { return .unknown(.changes) }
            let isKnown = !wasSeen && state.folders.isKnown(name.folder, now: now)
            return isKnown && !state.index.hasEntry(of: name) ? .miss : .unknown(.answers)
        }
        if case .unknown(let lane) = foresight, queue.isStuck(lane) || queue.isStuck(.answers) { return .unavailable }
        return foresight
    }

    // MARK: On the queue

    /// Looks whether another process has changed the directory, or the folder; if so, the folder is scanned anew.
    func notice(_ folder: UInt8, now: Double) {
        let (root, isDue) = state.withLock { ($0.folders.dueRoot(now: now), $0.folders.isDue(folder, now: now)) }
        if let root, FileTime.stamp(directory) == root { state.withLock { $0.folders.rootIsUnchanged(now: now) } }
        guard isDue else { return }
        let stamp = FileTime.stamp(path(folder))
        guard state.withLock({ $0.folders.mustScan(folder, stamp, mayScan: $0.index.isComplete, now: now) }) else { return }
        queue.run(on: .upkeep) { [weak self] in
            self?.look(into: folder)
            self?.state.withLock { $0.folders.endScan(of: folder) }
        }
    }

    /// Changes the names in a folder: what is known of it stays known.
    func changing<Value>(_ folder: UInt8, _ work: () -> Value) -> Value {
        let path = path(folder)
        let before = FileTime.stamp(path)
        let value = work()
        let after = FileTime.stamp(path)
        state.withLock { $0.folders.changed(folder, from: before, to: after) }
        return value
    }
}

/// The 256 folders, and what they are in, as they were when they were last looked at.
struct FolderViews: Sendable {
    private struct View: Sendable {
        /// Whether the index has all that was in the folder when it was last changed, at `stamp`; nil if there was none.
        var isKnown = false
        var stamp: FileTime.Stamp?
        /// When that was last found to be so.
        var lastLook = -Double.greatestFiniteMagnitude
        var isScanning = false
    }

    private static let lookingInterval = 0.25

    private var views = [View](repeating: View(), count: 256)
    private var isScanning = false
    /// How many folders the last scan saw, and when the directory was changed before it.
    private var count = 0
    private var rootTime: FileTime.Stamp?
    /// When the directory was last looked at, because nothing was in it.
    private var lastLook = -Double.greatestFiniteMagnitude

    init() {}

    var areNone: Bool { count == 0 }

    private func isDue(_ lastLook: Double, _ now: Double) -> Bool { abs(now - lastLook) >= Self.lookingInterval }

    /// Where there is no folder, and it is time to look whether that is so still: what the directory looked like.
    func dueRoot(now: Double) -> FileTime.Stamp? { areNone && isDue(lastLook, now) ? rootTime : nil }

    mutating func rootIsUnchanged(now: Double) { lastLook = now }

    func isDue(_ folder: UInt8, now: Double) -> Bool { isDue(views[Int(folder)].lastLook, now) }

    /// Whether the index has all that is in a folder, as of just now.
    func isKnown(_ folder: UInt8, now: Double) -> Bool { views[Int(folder)].isKnown && !isDue(folder, now: now) }

    /// Whether a folder that looks like that is to be scanned, which then begins.
    mutating func mustScan(_ folder: UInt8, _ stamp: FileTime.Stamp?, mayScan: Bool, now: Double) -> Bool {
        let view = views[Int(folder)]
        if view.isKnown, view.stamp == stamp {
            views[Int(folder)].lastLook = now
            return false
        }
        guard mayScan, !isScanning, !view.isScanning else { return false }
        views[Int(folder)].isScanning = true
        return true
    }

    mutating func endScan(of folder: UInt8) { views[Int(folder)].isScanning = false }

    /// The index has all that was in a folder when it looked like that.
    mutating func scanned(_ folder: UInt8, _ stamp: FileTime.Stamp?) {
        views[Int(folder)].isKnown = true
        views[Int(folder)].stamp = stamp
        views[Int(folder)].lastLook = -Double.greatestFiniteMagnitude
    }

    /// A folder was changed here, and looked like that before and after.
    mutating func changed(_ folder: UInt8, from before: FileTime.Stamp?, to after: FileTime.Stamp?) {
        if views[Int(folder)].stamp == before { views[Int(folder)].stamp = after } else { views[Int(folder)].isKnown = false }
    }

    /// Begins to look at all folders; false where that is done already.
    mutating func beginScan(root: FileTime.Stamp?) -> Bool {
        guard !isScanning else { return false }
        (isScanning, count, rootTime) = (true, 0, root)
        return true
    }

    mutating func sawFolder() { count += 1 }

    mutating func endScan() { isScanning = false }
}
