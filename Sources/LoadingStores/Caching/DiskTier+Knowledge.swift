// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Remembers what the directory contains; changes by other processes may remain unnoticed for 250 ms.
extension DiskTier {
    /// Whether there may be any entries.
    ///
    /// False if a scan found no folder and none was created since.
    ///
    /// With `touchingDisk`, checks the directory from time to time, if the disk responds. Without it, returns true when such a
    /// check is due.
    func mayHaveEntries(now: Double, touchingDisk: Bool) -> Bool {
        let (isEmpty, seen) = state.withLock { state -> (Bool, FileTime.Stamp?) in
            let isEmpty = state.index.isComplete && state.index.count == 0 && state.folders.isEmpty && state.changes.isEmpty
            return (isEmpty, isEmpty ? state.folders.dueRoot(now: now) : nil)
        }
        guard isEmpty, let seen else { return !isEmpty }
        guard touchingDisk, !queue.isStuck(.answers), FileTime.stamp(directory) == seen else { return true }
        state.withLock { $0.folders.rootIsUnchanged(now: now) }
        return false
    }

    enum Prediction {
        /// There is no entry.
        case miss
        /// The disk does not respond.
        case unavailable
        /// There may be an entry; look it up on the lane.
        case unknown(DiskQueue.Lane)
    }

    /// The result of a lookup, as far as it is known without accessing the disk.
    ///
    /// `wasSeen` means that a lookup that did not wait for the disk found a file.
    func predict(_ name: CacheEntryName, now: Double, wasSeen: Bool) -> Prediction {
        let prediction = state.withLock { state -> Prediction in
            if state.changes.affects(name) { return .unknown(.changes) }
            if state.changes.includesRemoval { return .miss }
            if state.changes.mayAffect(name) { return .unknown(.changes) }
            let isKnown = !wasSeen && state.folders.isKnown(name.folder, now: now)
            return isKnown && !state.index.hasEntry(of: name) ? .miss : .unknown(.answers)
        }
        if case .unknown(let lane) = prediction, queue.isStuck(lane) || queue.isStuck(.answers) { return .unavailable }
        return prediction
    }

    // MARK: On the queue

    /// Checks whether another process has changed the directory or the folder; if so, the folder is scanned again.
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

    /// Runs `work`, which creates or removes files in a folder, without losing what is known about the folder.
    func changing<Value>(_ folder: UInt8, _ work: () -> Value) -> Value {
        let path = path(folder)
        let before = FileTime.stamp(path)
        let value = work()
        let after = FileTime.stamp(path)
        state.withLock { $0.folders.changed(folder, from: before, to: after) }
        return value
    }
}

/// What the last checks found out about the 256 folders and their parent directory.
struct FolderViews: Sendable {
    private struct View: Sendable {
        /// Whether the index had all files of the folder as of `stamp`; a nil stamp means that the folder did not exist.
        var isKnown = false
        var stamp: FileTime.Stamp?
        /// When `isKnown` and `stamp` were last confirmed.
        var lastCheck = -Double.greatestFiniteMagnitude
        var isScanning = false
    }

    private static let checkInterval = 0.25

    private var views = [View](repeating: View(), count: 256)
    private var isScanning = false
    /// The number of folders that the last scan saw, and the directory's stamp before the scan.
    private var count = 0
    private var rootTime: FileTime.Stamp?
    /// When the directory was last checked while it was empty.
    private var lastCheck = -Double.greatestFiniteMagnitude

    init() {}

    var isEmpty: Bool { count == 0 }

    private func isDue(_ lastCheck: Double, _ now: Double) -> Bool { abs(now - lastCheck) >= Self.checkInterval }

    /// The known stamp of the empty directory if a check is due; nil otherwise.
    func dueRoot(now: Double) -> FileTime.Stamp? { isEmpty && isDue(lastCheck, now) ? rootTime : nil }

    mutating func rootIsUnchanged(now: Double) { lastCheck = now }

    func isDue(_ folder: UInt8, now: Double) -> Bool { isDue(views[Int(folder)].lastCheck, now) }

    /// Whether the index has all files of a folder, confirmed within the last 250 ms.
    func isKnown(_ folder: UInt8, now: Double) -> Bool { views[Int(folder)].isKnown && !isDue(folder, now: now) }

    /// Whether a folder with that stamp has to be scanned; if so, the scan is marked as started.
    mutating func mustScan(_ folder: UInt8, _ stamp: FileTime.Stamp?, mayScan: Bool, now: Double) -> Bool {
        let view = views[Int(folder)]
        if view.isKnown, view.stamp == stamp {
            views[Int(folder)].lastCheck = now
            return false
        }
        guard mayScan, !isScanning, !view.isScanning else { return false }
        views[Int(folder)].isScanning = true
        return true
    }

    mutating func endScan(of folder: UInt8) { views[Int(folder)].isScanning = false }

    /// Records that the index has all files that a folder had as of that stamp.
    mutating func scanned(_ folder: UInt8, _ stamp: FileTime.Stamp?) {
        views[Int(folder)].isKnown = true
        views[Int(folder)].stamp = stamp
        views[Int(folder)].lastCheck = -Double.greatestFiniteMagnitude
    }

    /// Records that this process changed a folder, with the folder's stamps before and after the change.
    mutating func changed(_ folder: UInt8, from before: FileTime.Stamp?, to after: FileTime.Stamp?) {
        if views[Int(folder)].stamp == before { views[Int(folder)].stamp = after } else { views[Int(folder)].isKnown = false }
    }

    /// Begins a scan of all folders; false if one is already running.
    mutating func beginScan(root: FileTime.Stamp?) -> Bool {
        guard !isScanning else { return false }
        (isScanning, count, rootTime) = (true, 0, root)
        return true
    }

    mutating func sawFolder() { count += 1 }

    mutating func endScan() { isScanning = false }
}
