// SPDX-License-Identifier: Apache-2.0

import CLoadingSystem
import FoundationEssentials
import HTTPRules
import LibC
import SystemThreads

/// A cache file under a temporary name while it is written.
///
/// A lookup of the entry finds the old file or the complete new one, never a partial one. A file that is not moved into place is
/// deleted.
///
/// Sendable because only one thread at a time uses it: the thread of the disk queue, or the thread that releases the last
/// reference.
final class TemporaryCacheFile: @unchecked Sendable {
    /// The subdirectory of the cache's directory.
    static let folder = "aside"

    private let directory: String
    // Used by one thread at a time: the thread of the disk queue, or the thread that releases the last reference.
    private var descriptor: CInt = -1
    private var path = ""
    private var checksum = ContentChecksum()
    private var bodyLength: Int64 = 0
    private(set) var hasFailed = false

    /// Set if the file stays open beyond one work item on the queue.
    private var reservation: FileReservation?

    init(directory: String, reservation: FileReservation? = nil) {
        self.directory = directory
        self.reservation = reservation
    }

    deinit { discard() }

    /// Appends bytes of the body.
    func append(_ bytes: UnsafeRawBufferPointer) {
        guard open(reserving: CacheEntryFile.preambleLength) else { return }
        checksum.update(bytes)
        write([bytes])
        bodyLength += Int64(bytes.count)
    }

    /// Copies the body of another entry, whose body checksum is also valid for the copy.
    func copyBody(of file: CacheFile, length: Int64) {
        guard open(reserving: CacheEntryFile.preambleLength) else { return }
        let offset = Int64(CacheEntryFile.preambleLength)
        if cls_seek_to(file.number, offset) != offset || cls_copy(file.number, descriptor, length) != length { hasFailed = true }
        bodyLength += length
    }

    /// Writes the head and the preamble around the body; returns the length of the file, or nil if it cannot be used.
    func seal(_ head: CacheEntryFile.Head, bodyChecksum: UInt64? = nil, lastUse: Double) -> Int64? {
        var head = head
        head.response.bodyLength = bodyLength
        guard !hasFailed, let parts = CacheEntryFile.encoded(head, bodyChecksum: bodyChecksum ?? checksum.value) else {
            return nil
        }
        guard open(reserving: CacheEntryFile.preambleLength) else { return nil }
        parts.head.withUnsafeBytes { write([$0]) }
        guard !hasFailed, cls_seek_to(descriptor, 0) == 0 else { return nil }
        parts.preamble.withUnsafeBytes { write([$0]) }
        FileTime.set(descriptor, lastUse)
        return hasFailed ? nil : Int64(parts.preamble.count) + bodyLength + Int64(parts.head.count)
    }

    /// Writes a complete entry whose body is in memory, with fewer system calls.
    func write(_ head: CacheEntryFile.Head, body: Data, lastUse: Double) -> Int64? {
        var head = head
        head.response.bodyLength = Int64(body.count)
        let checksum = body.withUnsafeBytes { ContentChecksum.of($0) }
        guard let parts = CacheEntryFile.encoded(head, bodyChecksum: checksum), open(reserving: 0) else { return nil }
        parts.preamble.withUnsafeBytes { preamble in
            body.withUnsafeBytes { body in parts.head.withUnsafeBytes { write([preamble, body, $0]) } }
        }
        FileTime.set(descriptor, lastUse)
        return hasFailed ? nil : Int64(parts.preamble.count + body.count + parts.head.count)
    }

    /// Renames the file to the entry's name.
    func move(to name: CacheEntryName) -> Bool {
        guard descriptor >= 0, !hasFailed else { return false }
        let target = directory + "/" + name.path
        if rename(path, target) != 0 {
            guard errno == ENOENT, mkdir(directory + "/" + CacheEntryName.folderName(name.folder), 0o700) == 0 || errno == EEXIST,
                rename(path, target) == 0
            else { return false }
        }
        path = ""
        discard()
        return true
    }

    func discard() {
        if !path.isEmpty { _ = cls_unlink(path) }
        path = ""
        if descriptor >= 0 { _ = cls_close(descriptor) }
        descriptor = -1
        reservation = nil
        hasFailed = true
    }

    private func open(reserving count: Int) -> Bool {
        if descriptor >= 0 || hasFailed { return !hasFailed }
        for attempt in 0..<4 {
            path = directory + "/" + Self.folder + "/" + String(UInt64.random(in: 0...UInt64.max), radix: 16)
            descriptor = cls_create_private_file(path)
            if descriptor >= 0 { break }
            let error = -descriptor
            path = ""
            // The directory was emptied, or it never existed.
            guard error == EEXIST || error == ENOENT && attempt == 0 && makeFolders() else { break }
        }
        guard descriptor >= 0 else {
            hasFailed = true
            return false
        }
        if count > 0, cls_seek_to(descriptor, Int64(count)) != Int64(count) { hasFailed = true }
        return !hasFailed
    }

    private func makeFolders() -> Bool {
        guard (try? StoreDirectory(directory, creating: true)) != nil else { return false }
        return mkdir(directory + "/" + Self.folder, 0o700) == 0 || errno == EEXIST
    }

    private func write(_ parts: [UnsafeRawBufferPointer]) {
        let pieces = parts.filter { !$0.isEmpty }.map { cls_piece(start: $0.baseAddress, length: $0.count) }
        var written: Int64 = 0
        guard !pieces.isEmpty else { return }
        if cls_write_all(descriptor, pieces, CInt(pieces.count), &written) != 0 { hasFailed = true }
    }
}
