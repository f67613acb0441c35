//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// What one flush of the cache makes durable: files, then the folders they are in, then the directory itself.
struct CacheSync: Sendable {
    enum Step: Sendable {
        case file(CacheEntryName)
        case folder(UInt8)
        case directory
    }

    private var names: [CacheEntryName]
    private var folders: [UInt8]
    private var isDirectoryDue: Bool
    /// To be called after the last step.
    let completion: @Sendable () -> Void

    /// Files that were written, and folders from which something was removed.
    init(_ names: Set<CacheEntryName>, _ folders: Set<UInt8>, _ completion: @escaping @Sendable () -> Void) {
        self.names = Array(names)
        self.folders = Array(folders.union(names.map(\.folder)))
        isDirectoryDue = !self.folders.isEmpty
        self.completion = completion
    }

    /// What to sync next; nil after the last.
    mutating func next() -> Step? {
        if let name = names.popLast() { return .file(name) }
        if let folder = folders.popLast() { return .folder(folder) }
        defer { isDirectoryDue = false }
        return isDirectoryDue ? .directory : nil
    }
}

/// What is not durable yet, and the flushes that wait for it, the first at work: each syncs what is its own alone.
struct CacheSyncs: Sendable {
    private var written: Set<CacheEntryName> = []
    private var foldersOfRemoved: Set<UInt8> = []
    private var line: [CacheSync] = []

    mutating func wrote(_ name: CacheEntryName) { written.insert(name) }

    mutating func removed(_ name: CacheEntryName, isRemoved: Bool) {
        if isRemoved { foldersOfRemoved.insert(name.folder) }
        written.remove(name)
    }

    /// Answers whether it is the only one in line.
    mutating func add(_ completion: @escaping @Sendable () -> Void, isEnabled: Bool) -> Bool {
        line.append(CacheSync(isEnabled ? written : [], isEnabled ? foldersOfRemoved : [], completion))
        if isEnabled { (written, foldersOfRemoved) = ([], []) }
        return line.count == 1
    }

    /// What to sync next, or whom to tell that all is synced; and whether there is more to do.
    mutating func next() -> (CacheSync.Step?, (@Sendable () -> Void)?, goesOn: Bool) {
        guard !line.isEmpty else { return (nil, nil, false) }
        if let step = line[0].next() { return (step, nil, true) }
        let completion = line.removeFirst().completion
        return (nil, completion, !line.isEmpty)
    }
}
