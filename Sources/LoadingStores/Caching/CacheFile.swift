// SPDX-License-Identifier: Apache-2.0

import CLoadingSystem
import FoundationEssentials
import LibC
import Synchronization
import SystemThreads

/// An open file of the disk tier, which is read as a whole, or without its body; a large body is then read in pieces.
///
/// It stays readable even if it is removed or replaced meanwhile.
final class CacheFile: Sendable {
    enum Opening {
        case file(CacheFile)
        case absent
        /// Not a regular file of this user, or too short for an entry.
        case foreign
    }

    enum Failure: Error {
        /// The data is not in the page cache, and the caller asked not to wait for the disk.
        case wouldWait
        case damaged
    }

    let length: Int64
    let inode: ino_t
    let lastUse: Double
    /// The stamp at the time of opening.
    let stamp: FileTime.Stamp
    private let descriptor: Descriptor
    /// Set while the file is kept open.
    private let reservation = Mutex<FileReservation?>(nil)

    private init(_ descriptor: consuming Descriptor, _ status: stat) {
        self.descriptor = descriptor
        length = Int64(status.st_size)
        inode = status.st_ino
        lastUse = FileTime.seconds(status.st_mtim)
        stamp = FileTime.Stamp(status)
    }

    var number: CInt { descriptor.number }

    /// Keeps the file open beyond one work item on the queue.
    ///
    /// Returns false if the limit on open files is reached.
    func keepOpen() -> Bool {
        guard let reservation = FileBudget.shared.take(.half) else { return false }
        self.reservation.withLock { $0 = reservation }
        return true
    }

    var currentStamp: FileTime.Stamp? {
        var status = stat()
        return fstat(number, &status) == 0 ? FileTime.Stamp(status) : nil
    }

    static func open(_ path: String) -> Opening {
        let descriptor: Descriptor
        do {
            descriptor = try Descriptor(path, O_RDONLY, doing: "opening a cache entry")
        } catch {
            // A symbolic link is not a cache file. Any other failure to open the file says nothing about the entry.
            var status = stat()
            return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFLNK ? .foreign : .absent
        }
        var status = stat()
        guard fstat(descriptor.number, &status) == 0 else { return .absent }
        guard status.st_mode & S_IFMT == S_IFREG, status.st_uid == geteuid(), status.st_size >= CacheEntryFile.preambleLength
        else { return .foreign }
        return .file(CacheFile(descriptor, status))
    }

    /// Fills the target from an offset in the file.
    func read(into target: UnsafeMutableRawBufferPointer, at offset: Int64, waiting: Bool) throws(Failure) {
        let count =
            waiting
            ? cls_read_at(number, target.baseAddress, target.count, offset)
            : cls_read_cached(number, target.baseAddress, target.count, offset)
        guard count == Int64(target.count) else { throw count == -Int64(EAGAIN) ? .wouldWait : .damaged }
    }

    func preamble(waiting: Bool) throws(Failure) -> CacheEntryFile.Preamble {
        try withUnsafeTemporaryAllocation(byteCount: CacheEntryFile.preambleLength, alignment: 8) {
            (bytes) throws(Failure) -> CacheEntryFile.Preamble in
            try read(into: bytes, at: 0, waiting: waiting)
            guard let preamble = CacheEntryFile.preamble(UnsafeRawBufferPointer(bytes), fileLength: length) else {
                throw .damaged
            }
            return preamble
        }
    }

    /// Everything but the body, verified.
    func head(waiting: Bool) throws(Failure) -> (preamble: CacheEntryFile.Preamble, head: CacheEntryFile.Head) {
        let preambleLength = CacheEntryFile.preambleLength
        let preamble = try preamble(waiting: waiting)
        let head = try withUnsafeTemporaryAllocation(byteCount: preambleLength + preamble.headLength, alignment: 8) {
            (bytes) throws(Failure) -> CacheEntryFile.Head? in
            let first = UnsafeMutableRawBufferPointer(rebasing: bytes[..<preambleLength])
            let second = UnsafeMutableRawBufferPointer(rebasing: bytes[preambleLength...])
            try read(into: first, at: 0, waiting: waiting)
            try read(into: second, at: preamble.headOffset, waiting: waiting)
            return CacheEntryFile.head(
                UnsafeRawBufferPointer(second), preamble: preamble, preambleBytes: UnsafeRawBufferPointer(first))
        }
        guard let head else { throw .damaged }
        return (preamble, head)
    }

    /// The whole file, verified; the body stays in the buffer it was read into.
    func content(waiting: Bool) throws(Failure) -> (preamble: CacheEntryFile.Preamble, head: CacheEntryFile.Head, body: Data) {
        guard let count = Int(exactly: length), let bytes = UnsafeMutableRawBufferPointer.allocated(count) else { throw .damaged }
        do throws(Failure) {
            try read(into: bytes, at: 0, waiting: waiting)
            guard let content = CacheEntryFile.content(UnsafeRawBufferPointer(bytes)) else { throw .damaged }
            return (content.preamble, content.head, bytes.takenData(of: content.body))
        } catch {
            bytes.deallocateAllocated()
            throw error
        }
    }
}
