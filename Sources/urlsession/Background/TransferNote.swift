// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The information about a transfer that the tool, perhaps in another run, needs when the transfer is complete.
///
/// The note is stored as JSON in the task's description.
struct TransferNote: Codable, Sendable {
    /// The absolute path of the file to write; nil if an upload's response is not kept.
    var target: String?
    /// The path of the file for failures, without its suffix `.error`.
    var place: String
    /// Whether a file name that the server suggests replaces the name in `target`.
    var takesSuggestion = false
    /// Whether an existing file is replaced.
    var force = false
    /// The file's permissions.
    var mode: UInt16

    init(target: String?, place: String, takesSuggestion: Bool = false, force: Bool = false) {
        self.target = target
        self.place = place
        self.takesSuggestion = takesSuggestion
        self.force = force
        let mask = umask(0)
        umask(mask)
        mode = UInt16(truncatingIfNeeded: 0o666 & ~mask)
    }

    init?(_ description: String?) {
        guard let description, let note = try? JSONDecoder().decode(Self.self, from: Data(description.utf8)) else { return nil }
        self = note
    }

    var text: String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return (try? encoder.encode(self)).map { String(decoding: $0, as: UTF8.self) } ?? ""
    }

    /// Writes the reason for a failure to the `.error` file, for a user who looks for the missing file.
    func leave(_ reason: String) {
        let line = "\(Date.now.ISO8601Format()) \(reason)\n"
        let descriptor = open(place + ".error", O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, mode_t(mode))
        guard descriptor >= 0 else { return }
        try? FileHandle(fileDescriptor: descriptor, closeOnDealloc: true).write(contentsOf: Data(line.utf8))
    }

    // MARK: The place

    /// Moves a complete file to its place atomically, and returns its path.
    ///
    /// An existing file is replaced if `force` is set; otherwise a number is appended to the new file's name. If an earlier run
    /// moved the file but exited before it could confirm the move, the file is not stored twice. The file and its name are synced
    /// to disk when this method returns, because the daemon then forgets the file.
    func take(_ location: URL, named name: String? = nil) throws(ToolFailure) -> String {
        guard var target else { throw ToolFailure(23, "the transfer has no destination") }
        if takesSuggestion, let name {
            target = URL(fileURLWithPath: target).deletingLastPathComponent().appendingPathComponent(name).path
        }
        chmod(location.path, mode_t(mode))
        do throws(PutFailure) {
            return try put(location.path, at: target)
        } catch {
            guard error.number == EXDEV else { throw error.forTool }
        }
        // On another file system, too, the file must appear complete or not at all.
        let copy = target + ".urlsession-part"
        try? FileManager.default.removeItem(atPath: copy)
        do {
            try FileManager.default.copyItem(atPath: location.path, toPath: copy)
        } catch {
            unlink(copy)
            throw ToolFailure(23, "cannot write \(target): \(ToolFailure.reason(error))")
        }
        chmod(copy, mode_t(mode))
        defer { unlink(copy) }
        do throws(PutFailure) {
            return try put(copy, at: target)
        } catch {
            throw error.forTool
        }
    }

    private struct PutFailure: Error {
        let path: String
        let number = errno

        var forTool: ToolFailure { ToolFailure(23, "cannot write \(path): \(String(cString: strerror(number)))") }
    }

    /// Syncs the file to disk, gives it its final name, and syncs the folder.
    private func put(_ file: String, at target: String) throws(PutFailure) -> String {
        try Self.sync(file)
        let path = try name(file, target)
        try Self.sync(URL(fileURLWithPath: path).deletingLastPathComponent().path)
        return path
    }

    private static func sync(_ path: String) throws(PutFailure) {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        // A folder may be writable but not readable.
        if descriptor < 0, errno == EACCES { return }
        guard descriptor >= 0 else { throw PutFailure(path: path) }
        let result = fsync(descriptor)
        // Syncing a folder fails with EINVAL on file systems that do not support it.
        let failure = result == 0 || errno == EINVAL ? nil : PutFailure(path: path)
        close(descriptor)
        if let failure { throw failure }
    }

    private func name(_ file: String, _ target: String) throws(PutFailure) -> String {
        if force {
            guard rename(file, target) == 0 else { throw PutFailure(path: target) }
            return target
        }
        var number = 0
        while true {
            let path = number == 0 ? target : "\(target).\(number)"
            number += 1
            if link(file, path) == 0 {
                unlink(file)
                return path
            }
            switch errno {
            case EEXIST where number < 10_000:
                if Self.isSame(file, path) { return path }
            case EPERM, EOPNOTSUPP, EMLINK:
                // Without hard links, an empty file reserves the name, and the file is then renamed to it.
                let reserved = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode_t(mode))
                if reserved < 0, errno == EEXIST, number < 10_000 { continue }
                guard reserved >= 0 else { throw PutFailure(path: path) }
                close(reserved)
                guard rename(file, path) == 0 else {
                    let failure = PutFailure(path: path)
                    unlink(path)
                    throw failure
                }
                return path
            default: throw PutFailure(path: path)
            }
        }
    }

    private static func isSame(_ one: String, _ other: String) -> Bool {
        func identity(_ path: String) -> [NSNumber]? {
            let facts = try? FileManager.default.attributesOfItem(atPath: path)
            guard let device = facts?[.systemNumber] as? NSNumber, let number = facts?[.systemFileNumber] as? NSNumber else {
                return nil
            }
            return [device, number]
        }
        return identity(one).map { $0 == identity(other) } ?? false
    }
}
