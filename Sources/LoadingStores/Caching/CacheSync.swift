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
