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

    enum Reading<Value> {
        case value(Value)
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
    func read(into target: UnsafeMutableRawBufferPointer, at offset: Int64, waiting: Bool) -> Reading<Void> {
        let count =
            waiting
            ? cls_read_at(number, target.baseAddress, target.count, offset)
            : cls_read_cached(number, target.baseAddress, target.count, offset)
        if count == Int64(target.count) { return .value(()) }
        return count == -Int64(EAGAIN) ? .wouldWait : .damaged
    }

    func preamble(waiting: Bool) -> Reading<CacheEntryFile.Preamble> {
        withUnsafeTemporaryAllocation(byteCount: CacheEntryFile.preambleLength, alignment: 8) { bytes in
            switch read(into: bytes, at: 0, waiting: waiting) {
            case .wouldWait: return .wouldWait
            case .damaged: return .damaged
            case .value:
                guard let preamble = CacheEntryFile.preamble(UnsafeRawBufferPointer(bytes), fileLength: length) else {
                    return .damaged
                }
                return .value(preamble)
            }
        }
    }

    /// Everything but the body, verified.
    func head(waiting: Bool) -> Reading<(preamble: CacheEntryFile.Preamble, head: CacheEntryFile.Head)> {
        let preambleLength = CacheEntryFile.preambleLength
        let preamble: CacheEntryFile.Preamble
        switch self.preamble(waiting: waiting) {
        case .wouldWait: return .wouldWait
        case .damaged: return .damaged
        case .value(let value): preamble = value
        }
        return withUnsafeTemporaryAllocation(byteCount: preambleLength + preamble.headLength, alignment: 8) { bytes in
            let first = UnsafeMutableRawBufferPointer(rebasing: bytes[..<preambleLength])
            let second = UnsafeMutableRawBufferPointer(rebasing: bytes[preambleLength...])
            for (part, offset) in [(first, 0), (second, preamble.headOffset)] {
                switch read(into: part, at: offset, waiting: waiting) {
                case .wouldWait: return .wouldWait
                case .damaged: return .damaged
                case .value: continue
                }
            }
            let head = CacheEntryFile.head(
                UnsafeRawBufferPointer(second),
                preamble: preamble,
                preambleBytes: UnsafeRawBufferPointer(first)
            )
            guard let head else { return .damaged }
            return .value((preamble, head))
        }
    }

    /// The whole file, verified; the body stays in the buffer it was read into.
    func content(waiting: Bool) -> Reading<(preamble: CacheEntryFile.Preamble, head: CacheEntryFile.Head, body: Data)> {
        guard let count = Int(exactly: length), let bytes = UnsafeMutableRawBufferPointer.allocated(count) else {
            return .damaged
        }
        switch read(into: bytes, at: 0, waiting: waiting) {
        case .wouldWait:
            bytes.deallocateAllocated()
            return .wouldWait
        case .damaged:
            bytes.deallocateAllocated()
            return .damaged
        case .value:
            guard let content = CacheEntryFile.content(UnsafeRawBufferPointer(bytes)) else {
                bytes.deallocateAllocated()
                return .damaged
            }
            return .value((content.preamble, content.head, bytes.takenData(of: content.body)))
        }
    }
}

extension CacheFile.Reading {
    func flatMap<Other>(_ transform: (Value) -> CacheFile.Reading<Other>) -> CacheFile.Reading<Other> {
        switch self {
        case .value(let value): transform(value)
        case .wouldWait: .wouldWait
        case .damaged: .damaged
        }
    }

    func map<Other>(_ transform: (Value) -> Other) -> CacheFile.Reading<Other> {
        flatMap { .value(transform($0)) }
    }
}
