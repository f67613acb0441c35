// SPDX-License-Identifier: Apache-2.0

import CLoadingSystem
import FoundationEssentials
import HTTPRules
import LibC
import LoadingModel

/// The files of the transfers: a folder for each session, which holds partial files, and complete files that wait for their
/// program.
///
/// File names are chosen here and by the engine, never by a program or a server, so that no file name can name another transfer's
/// file.
/// Every method may block on the disk.
struct Spool: Sendable {
    /// An absolute path.
    let directory: String
    /// The ID of the machine's current boot; data from an earlier boot certainly exist only as far as they were synced.
    let bootID: String

    init(_ directory: String) throws(StorageFailure) {
        self.directory = directory
        bootID =
            (try? String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8))?.filter { !$0.isWhitespace } ?? ""
        try Self.make(directory)
    }

    func folder(of session: Int64) -> String { "\(directory)/\(session)" }

    /// Returns the name of the link that a program gets: the daemon keeps its own link, so that the file survives if the program
    /// crashes while handling the file.
    static func handedName(_ number: Int64) -> String { "done-\(number)" }
    /// Returns the name of a partial file to which a program's resume data refer.
    static func keptName(_ number: Int64) -> String { "kept-\(number)" }
    static func isKept(_ file: String) -> Bool { file.hasPrefix("kept-") }

    /// Creates a folder that only its owner can use.
    static func make(_ path: String) throws(StorageFailure) {
        let isNew = mkdir(path, 0o700) == 0
        if !isNew, errno != EEXIST { throw StorageFailure(errno, "The folder \(path) cannot be created") }
        // Without this sync, a power failure might remove the folder together with everything that was synced in it.
        if isNew { _ = sync(folder: path.split(separator: "/").dropLast().reduce("") { $0 + "/" + $1 }) }
        var facts = cls_file_facts()
        guard cls_path_facts(path, &facts) == 0, facts.kind == 2, facts.owner == geteuid(), facts.mode & 0o022 == 0
        else {
            throw .refused("The folder \(path) must belong to this user, and others must not be able to write to it.")
        }
    }

    // MARK: Files of programs

    /// Returns the current version of a file that is to be uploaded.
    static func version(ofProgramFile path: String) -> Result<TransferRecord.FileVersion, LoadError> {
        let fd = cls_open_for_reading(path)
        guard fd >= 0 else {
            let kind: LoadError.Kind =
                switch -fd {
                case ENOENT, ENOTDIR: .fileDoesNotExist
                case EACCES, EPERM, ELOOP, ENXIO, ENAMETOOLONG: .noPermissionsToReadFile
                // A lack of descriptors or memory, or a disk that does not respond, may be temporary.
                default: .resourceUnavailable
                }
            return .failure(LoadError(kind, "the file to upload, \(path), cannot be opened: \(String(cString: strerror(-fd)))"))
        }
        defer { _ = cls_close(fd) }
        guard let version = version(fd) else {
            return .failure(
                LoadError(.fileIsDirectory, "\(path) is not a regular file: an upload in the background must be from one"))
        }
        return .success(version)
    }

    // MARK: Disk space

    /// The minimum of free space, in bytes.
    static let minimumSpace: Int64 = 1 << 20

    /// Whether the minimum of free space can be written.
    var hasSpace: Bool {
        let probe = directory + "/probe"
        _ = cls_unlink(probe)
        let fd = cls_create_private_file(probe)
        // Waiting does not solve other errors.
        guard fd >= 0 else { return fd != -ENOSPC && fd != -EDQUOT }
        defer {
            _ = cls_close(fd)
            _ = cls_unlink(probe)
        }
        let result = cls_preallocate(fd, 0, Self.minimumSpace)
        return result != -ENOSPC && result != -EDQUOT
    }

    /// The number of free bytes; the maximum if the file system does not report it.
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

    // MARK: Partial files

    /// Returns the number of bytes of a partial file that certainly exist.
    ///
    /// After a reboot, only the synced bytes certainly exist: later bytes may be holes, and are cut off.
    func usableBytes(of file: String, in folder: String, synced: Int64, bootID: String) -> Int64 {
        withFile(file, folder) { fd in
            guard let version = Self.version(fd) else { return nil }
            if !bootID.isEmpty, bootID == self.bootID || version.size <= synced { return version.size }
            return cls_truncate(fd, min(version.size, synced)) == 0 ? min(version.size, synced) : nil
        } ?? 0
    }

    /// Syncs a partial file.
    ///
    /// - Returns: The number of synced bytes, or an error if some bytes are lost; nil if there is no such file.
    func sync(_ file: String, in folder: String) -> Result<Int64, StorageFailure>? {
        withFile(file, folder) { fd in
            guard let version = Self.version(fd) else { return nil }
            let result = cls_sync(fd)
            return result == 0 ? .success(version.size) : .failure(.failed(String(cString: strerror(-result))))
        }
    }

    /// Syncs a complete file and its directory entry.
    ///
    /// - Returns: The file's version; nil if the sync failed.
    func finish(_ file: String, in folder: String) -> TransferRecord.FileVersion? {
        let version = withFile(file, folder) { fd in cls_sync(fd) == 0 ? Self.version(fd) : nil }
        guard let version, Self.sync(folder: folder) == nil else { return nil }
        return version
    }

    /// Syncs a folder after files were added, renamed or removed.
    ///
    /// - Returns: The error; nil on success, and if the folder is missing or its file system does not sync folders.
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

    /// Creates a link to a complete file for a program.
    ///
    /// If the file system has no links, the program gets the file itself.
    ///
    /// - Returns: The path; nil if the file has changed.
    func handOver(_ file: String, _ version: TransferRecord.FileVersion?, number: Int64, in folder: String) -> String? {
        guard let found = withFile(file, folder, { Self.version($0) }), version == nil || found == version else { return nil }
        let path = folder + "/" + Self.handedName(number)
        if link(folder + "/" + file, path) == 0 { return path }
        guard errno == EEXIST else { return folder + "/" + file }
        // The link exists already, and the program may be using it.
        if withFile(Self.handedName(number), folder, { Self.version($0) })?.inode == found.inode { return path }
        _ = cls_unlink(path)
        return link(folder + "/" + file, path) == 0 ? path : nil
    }

    /// Keeps a partial file beyond its transfer.
    ///
    /// - Returns: Whether the file was kept.
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
        for file in names(in: folder) where Self.isManaged(file) { _ = cls_unlink(folder + "/" + file) }
        rmdir(folder)
    }

    /// Removes files that no transfer needs, such as those left by a killed daemon; files named in resume data stay for a week.
    ///
    /// Files from an earlier boot stay for a week, too: after a power failure on a file system that loses synced data, such a file
    /// may be the only copy of a download that its program has taken. Files that the daemon did not create are left alone, and so
    /// are the folders of unreadable sessions.
    ///
    /// - Returns: The number of files that are kept because they are older than the boot.
    func tidy(sessions: Set<Int64>, files: [Int64: Set<String>], unreadable: Set<Int64>) -> Int {
        var count = 0
        for name in names(in: directory) {
            guard let number = Int64(name), String(number) == name, !unreadable.contains(number) else { continue }
            let folder = folder(of: number)
            // The entry may be a link, whose target does not belong to the daemon.
            guard isFolder(folder) else {
                if !sessions.contains(number) { _ = cls_unlink(folder) }
                continue
            }
            var isEmpty = true
            for file in names(in: folder) where Self.isManaged(file) && files[number]?.contains(file) != true {
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

    /// How long a file without a transfer is kept, in seconds.
    private static let keptAge = 604_800.0

    /// The highest possible number of a transfer; a file with a higher number is not the daemon's.
    private static let lastNumber: Int64 = 1 << 53

    /// The highest transfer number among the files of the spool.
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

    /// Whether the daemon or its engine chose a file's name.
    private static func isManaged(_ file: String) -> Bool {
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
