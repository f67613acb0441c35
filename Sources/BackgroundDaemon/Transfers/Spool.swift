//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import CLoadingSystem
import FoundationEssentials
import HTTPRules
import LoadingModel

#if canImport(Glibc)
import Glibc
#else
import Musl
#endif

/// The files of the transfers: a folder for each session, in which the engine writes what comes, and what is whole waits for its program.
///
/// Names come from here and from the engine, never from a program or a server, so that nobody names another's file. Every method may
/// wait for the disk.
struct Spool: Sendable {
    /// Absolute.
    let directory: String
    /// Of this start of the machine: what was written before another one is there only as far as it was synced.
    let bootID: String

    init(_ directory: String) throws(StorageFailure) {
        self.directory = directory
        bootID =
            (try? String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8))?.filter { !$0.isWhitespace } ?? ""
        try Self.make(directory)
    }

    func folder(of session: Int64) -> String { "\(directory)/\(session)" }

    /// What a program is given: another name of the file, so that it is there still if the program dies with it in its hands.
    static func handedName(_ number: Int64) -> String { "done-\(number)" }
    /// What resume data names that a program was given.
    static func keptName(_ number: Int64) -> String { "kept-\(number)" }
    static func isKept(_ file: String) -> Bool { file.hasPrefix("kept-") }

    /// Makes a folder for its owner alone.
    static func make(_ path: String) throws(StorageFailure) {
        let isNew = mkdir(path, 0o700) == 0
        if !isNew, errno != EEXIST { throw StorageFailure(errno, "The folder \(path) cannot be made") }
        // Or a loss of power might take it with all that is brought to the disk in it.
        if isNew { _ = sync(folder: path.split(separator: "/").dropLast().reduce("") { $0 + "/" + $1 }) }
        var facts = cls_file_facts()
        guard cls_path_facts(path, &facts) == 0, facts.kind == 2, facts.owner == geteuid(), facts.mode & 0o022 == 0
        else {
            throw .refused("The folder \(path) is not this user's alone.")
        }
    }

    // MARK: Files of programs

    /// What a file that is to be uploaded is like now.
    static func version(ofProgramFile path: String) -> Result<TransferRecord.FileVersion, LoadError> {
        let fd = cls_open_for_reading(path)
        guard fd >= 0 else {
            let kind: LoadError.Kind =
                switch -fd {
                case ENOENT, ENOTDIR: .fileDoesNotExist
                case EACCES, EPERM, ELOOP, ENXIO, ENAMETOOLONG: .noPermissionsToReadFile
                // No descriptors, no memory, a disk that does not answer: that may pass.
                default: .resourceUnavailable
                }
            return .failure(LoadError(kind, "the file to upload, \(path), cannot be opened: \(String(cString: strerror(-fd)))"))
        }
        defer { _ = cls_close(fd) }
        guard let version = version(fd) else {
            return .failure(
                LoadError(.fileIsDirectory, "\(path) is no regular file, which an upload in the background must be from"))
        }
        return .success(version)
    }

    // MARK: Room

    /// The least that is room.
    static let leastSpace: Int64 = 1 << 20

    /// Whether anything at all can be written.
    var hasSpace: Bool {
        let probe = directory + "/probe"
        _ = cls_unlink(probe)
        let fd = cls_create_private_file(probe)
        // Whatever else is wrong is nothing to wait for.
        guard fd >= 0 else { return fd != -ENOSPC && fd != -EDQUOT }
        defer {
            _ = cls_close(fd)
            _ = cls_unlink(probe)
        }
        let result = cls_preallocate(fd, 0, Self.leastSpace)
        return result != -ENOSPC && result != -EDQUOT
    }

    /// Bytes that are free; without end where the file system does not say.
    var freeSpace: Int64 {
        let fd = cls_open_directory(directory)
        guard fd >= 0 else { return .max }
        defer { _ = cls_close(fd) }
        let free = cls_free_space(fd)
        return free < 0 ? .max : free
    }

    private static func version(_ fd: CInt) -> TransferRecord.FileVersion? {
        var facts = cls_file_facts()
        guard cls_file_facts(fd, &facts) == 0, facts.kind == 1 else { return nil }
        return TransferRecord.FileVersion(size: facts.size, changed: facts.changed, inode: facts.inode)
    }

    // MARK: Files that come

    /// Bytes of an unfinished file that are there for certain.
    ///
    /// After another start of the machine these are those that were synced: what was written since may be holes, and is cut off.
    func usableBytes(of file: String, in folder: String, synced: Int64, bootID: String) -> Int64 {
        withFile(file, folder) { fd in
            guard let version = Self.version(fd) else { return nil }
            if !bootID.isEmpty, bootID == self.bootID || version.size <= synced { return version.size }
            return cls_truncate(fd, min(version.size, synced)) == 0 ? min(version.size, synced) : nil
        } ?? 0
    }

    /// Brings what is there of a file to the disk.
    ///
    /// - Returns: How much that is, or that some of it is lost; nil where there is no such file.
    func sync(_ file: String, in folder: String) -> Result<Int64, StorageFailure>? {
        withFile(file, folder) { fd in
            guard let version = Self.version(fd) else { return nil }
            let result = cls_sync(fd)
            return result == 0 ? .success(version.size) : .failure(.failed(String(cString: strerror(-result))))
        }
    }

    /// Brings a whole file to the disk, its name included.
    ///
    /// - Returns: What it is then; nil where the disk would not.
    func finish(_ file: String, in folder: String) -> TransferRecord.FileVersion? {
        let version = withFile(file, folder) { fd in cls_sync(fd) == 0 ? Self.version(fd) : nil }
        guard let version, Self.sync(folder: folder) == nil else { return nil }
        return version
    }

    /// Brings what was added to a folder, renamed or removed to the disk.
    ///
    /// - Returns: What keeps it from that; nothing does where the folder is missing, or its file system does not sync folders.
    static func sync(folder: String) -> String? {
        let fd = cls_open_directory(folder.isEmpty ? "/" : folder)
        guard fd >= 0 else { return fd == -ENOENT ? nil : String(cString: strerror(-fd)) }
        defer { _ = cls_close(fd) }
        let result = cls_sync(fd)
        return result == 0 || result == -EINVAL ? nil : String(cString: strerror(-result))
    }

    private func withFile<Value>(_ file: String, _ folder: String, _ body: (CInt) -> Value?) -> Value? {
        guard ResumePoint.isFileName(file) else { return nil }
        let fd = cls_open_existing_file(folder + "/" + file)
        guard fd >= 0 else { return nil }
        defer { _ = cls_close(fd) }
        return body(fd)
    }

    /// Gives a program a name of its own for a whole file.
    ///
    /// Where the file system has no links it is given the file itself.
    ///
    /// - Returns: The path; nil where the file is not what it was.
    func handOver(_ file: String, _ version: TransferRecord.FileVersion?, number: Int64, in folder: String) -> String? {
        guard let found = withFile(file, folder, { Self.version($0) }), version == nil || found == version else { return nil }
        let path = folder + "/" + Self.handedName(number)
        if link(folder + "/" + file, path) == 0 { return path }
        guard errno == EEXIST else { return folder + "/" + file }
        // The program may be at it at this moment.
        if withFile(Self.handedName(number), folder, { Self.version($0) })?.inode == found.inode { return path }
        _ = cls_unlink(path)
        return link(folder + "/" + file, path) == 0 ? path : nil
    }

    /// Has an unfinished file outlast its transfer.
    ///
    /// - Returns: Whether it does.
    func keep(_ file: String, number: Int64, in folder: String) -> Bool {
        guard ResumePoint.isFileName(file) else { return false }
        return rename(folder + "/" + file, folder + "/" + Self.keptName(number)) == 0 && Self.sync(folder: folder) == nil
    }

    func remove(_ file: String, in folder: String) {
        guard ResumePoint.isFileName(file) else { return }
        _ = cls_unlink(folder + "/" + file)
    }

    // MARK: Leftovers

    func remove(folder: String) {
        guard isFolder(folder) else {
            _ = cls_unlink(folder)
            return
        }
        for file in names(in: folder) where Self.isOwn(file) { _ = cls_unlink(folder + "/" + file) }
        rmdir(folder)
    }

    /// Removes what no transfer has a use for, as a daemon that was killed leaves it; what resume data names stays for a week.
    ///
    /// So does what was written before the machine was started: after a loss of power it may be the only copy of what a program took, on a
    /// file system that forgets what was synced. What the daemon did not make is left alone, and so are the folders of sessions that
    /// cannot be read.
    ///
    /// - Returns: How many files stay for the second reason.
    func tidy(sessions: Set<Int64>, files: [Int64: Set<String>], unreadable: Set<Int64>) -> Int {
        var count = 0
        for name in names(in: directory) {
            guard let number = Int64(name), String(number) == name, !unreadable.contains(number) else { continue }
            let folder = folder(of: number)
            // What a link leads to is not the daemon's.
            guard isFolder(folder) else {
                if !sessions.contains(number) { _ = cls_unlink(folder) }
                continue
            }
            var isEmpty = true
            for file in names(in: folder) where Self.isOwn(file) && files[number]?.contains(file) != true {
                if let age = age(of: folder + "/" + file), age < Self.keptAge {
                    let isOld = age > cls_boot_seconds()
                    if isOld { count += 1 }
                    if isOld || Self.isKept(file) && sessions.contains(number) {
                        isEmpty = false
                        continue
                    }
                }
                _ = cls_unlink(folder + "/" + file)
            }
            if isEmpty, !sessions.contains(number) { remove(folder: folder) }
        }
        return count
    }

    /// Seconds for which a file stays of which no transfer knows.
    private static let keptAge = 604_800.0

    /// No transfer has a higher number; a file whose name has is somebody else's.
    private static let lastNumber: Int64 = 1 << 53

    /// The highest number of a transfer that a file of the spool has.
    var highestNumber: Int64 {
        var highest: Int64 = 0
        for name in names(in: directory) where Int64(name) != nil {
            for file in names(in: directory + "/" + name) {
                guard let number = file.split(separator: "-").last.flatMap({ Int64($0) }), number < Self.lastNumber else {
                    continue
                }
                highest = max(highest, number)
            }
        }
        return highest
    }

    /// Whether a file's name is one that the daemon or its engine gives.
    private static func isOwn(_ file: String) -> Bool {
        file.hasPrefix("done-") || isKept(file) || file.hasPrefix("CFNetworkDownload_") && file.hasSuffix(".tmp")
    }

    private func isFolder(_ path: String) -> Bool {
        var facts = cls_file_facts()
        return cls_path_facts(path, &facts) == 0 && facts.kind == 2
    }

    private func age(of path: String) -> Double? {
        var facts = cls_file_facts()
        guard cls_path_facts(path, &facts) == 0 else { return nil }
        return Date().timeIntervalSince1970 - Double(facts.changed) / 1e9
    }

    private func names(in folder: String) -> [String] {
        guard let stream = opendir(folder) else { return [] }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names
    }
}
