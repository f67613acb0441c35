// SPDX-License-Identifier: Apache-2.0

/// The steps of one flush: the files, then their folders, then the directory itself.
struct CacheSync: Sendable {
    enum Step: Sendable {
        case file(CacheEntryName)
        case folder(UInt8)
        case directory
    }

    private var names: [CacheEntryName]
    private var folders: [UInt8]
    private var isDirectoryDue: Bool
    /// Called after the last step.
    let completion: @Sendable () -> Void

    /// Takes the files that were written and the folders from which files were removed.
    init(_ names: Set<CacheEntryName>, _ folders: Set<UInt8>, _ completion: @escaping @Sendable () -> Void) {
        self.names = Array(names)
        self.folders = Array(folders.union(names.map(\.folder)))
        isDirectoryDue = !self.folders.isEmpty
        self.completion = completion
    }

    /// The next step; nil after the last.
    mutating func next() -> Step? {
        if let name = names.popLast() { return .file(name) }
        if let folder = folders.popLast() { return .folder(folder) }
        defer { isDirectoryDue = false }
        return isDirectoryDue ? .directory : nil
    }
}

/// The changes that are not durable yet, and the queued flushes, of which the first one is running.
///
/// Each flush syncs only its own changes.
struct CacheSyncs: Sendable {
    private var written: Set<CacheEntryName> = []
    private var foldersOfRemoved: Set<UInt8> = []
    private var flushes: [CacheSync] = []

    mutating func wrote(_ name: CacheEntryName) { written.insert(name) }

    mutating func removed(_ name: CacheEntryName, isRemoved: Bool) {
        if isRemoved { foldersOfRemoved.insert(name.folder) }
        written.remove(name)
    }

    /// Adds a flush; returns whether it is the only one in the queue.
    mutating func add(_ completion: @escaping @Sendable () -> Void, isEnabled: Bool) -> Bool {
        flushes.append(CacheSync(isEnabled ? written : [], isEnabled ? foldersOfRemoved : [], completion))
        if isEnabled { (written, foldersOfRemoved) = ([], []) }
        return flushes.count == 1
    }

    /// Returns the next step, or the completion handler of a finished flush, and whether more work remains.
    mutating func next() -> (CacheSync.Step?, (@Sendable () -> Void)?, hasMore: Bool) {
        guard !flushes.isEmpty else { return (nil, nil, false) }
        if let step = flushes[0].next() { return (step, nil, true) }
        let completion = flushes.removeFirst().completion
        return (nil, completion, !flushes.isEmpty)
    }
}
