// SPDX-License-Identifier: Apache-2.0

import CLoadingSystem
import FoundationEssentials
package import LoadingModel
package import NIOCore
import NIOPosix
import Synchronization
package import SystemThreads

/// An open regular file whose parts are read, or sent as the body of a request.
package final class FileSource: Sendable {
    package let path: String
    /// The state of the file when it was opened.
    let version: FileVersion
    /// The length of the file when it was opened.
    package var length: Int64 { version.size }
    /// Whether the content ends where its size says.
    ///
    /// False in procfs, sysfs and some file systems in user space, which make the content when it is read: their files have no size,
    /// or a nominal one.
    let isSizeExact: Bool
    package let place: FilePlace
    let identity: Identity
    private let descriptor: CInt
    /// NIO's handle of the file, which owns the descriptor.
    private let handle: NIOFileHandle
    private let clear: Atomic<Bool>
    /// The reservation, which is released when the file is closed; nil if the file is open only briefly.
    private let room: FileReservation?

    /// Identifies the file, independent of its names.
    struct Identity: Hashable, Sendable {
        var device: UInt64
        var inode: UInt64
    }

    private init(path: String, facts: cls_file_facts, descriptor: CInt, room: FileReservation?) {
        self.room = room
        version = FileSource.version(facts)
        identity = Identity(device: facts.device, inode: facts.inode)
        isSizeExact = FileSource.isSizeExact(facts, descriptor)
        self.path = path
        place = FilePlace(device: identity.device, path: path)
        self.descriptor = descriptor
        handle = NIOFileHandle(_deprecatedTakingOwnershipOfDescriptor: descriptor)
        clear = Atomic(true)
    }

    deinit {
        // A sender of a region keeps the source until the write is done, so the handle is not in use at this point.
        if handle.isOpen { FileWork.submit(at: place) { [handle, room] in withExtendedLifetime(room) { try? handle.close() } } }
    }

    /// Closes the file on the calling thread, which may block on the file system; the source cannot be used afterwards.
    func close() { try? handle.close() }

    /// Opens the file off the event loop.
    package static func open(path: String) async throws(LoadError) -> FileSource {
        try await FileWork.run(at: FilePlace(opening: path)) { () throws(LoadError) in try openNow(path: path) }
    }

    /// Opens the file; may block on the file system.
    package static func openNow(path: String, room: FileReservation? = nil) throws(LoadError) -> FileSource {
        let descriptor = cls_open_for_reading(path)
        guard descriptor >= 0 else { throw openingFailed(path, descriptor) }
        var facts = cls_file_facts()
        let status = cls_file_facts(descriptor, &facts)
        guard status == 0, facts.kind == 1 else {
            _ = cls_close(descriptor)
            if status < 0 { throw openingFailed(path, status) }
            if facts.kind == 2 { throw LoadError(.fileIsDirectory, "opening \(path): it is a directory") }
            throw LoadError(.cannotOpenFile, "opening \(path): it is not a regular file")
        }
        return FileSource(path: path, facts: facts, descriptor: descriptor, room: room)
    }

    /// Compares a file's size with its content, of which the last byte, and nothing after it, must be there.
    private static func isSizeExact(_ facts: cls_file_facts, _ descriptor: CInt) -> Bool {
        var bytes: (UInt8, UInt8) = (0, 0)
        let last = max(0, facts.size - 1)
        let count = withUnsafeMutableBytes(of: &bytes) { cls_read_at(descriptor, $0.baseAddress, $0.count, last) }
        // A read that fails here fails again when the content is read.
        if count < 0 || count == facts.size - last { return true }
        // An ordinary file may have changed meanwhile.
        var later = cls_file_facts()
        return cls_file_facts(descriptor, &later) == 0 && later.size != facts.size
    }

    private static func version(_ facts: cls_file_facts) -> FileVersion {
        FileVersion(size: facts.size, changed: facts.changed, inode: facts.inode)
    }

    private static func openingFailed(_ path: String, _ status: CInt) -> LoadError {
        let error = SystemFailure(status)
        let kind: LoadError.Kind =
            switch error.code {
            case SystemFailure.noSuchFile, SystemFailure.notADirectory: .fileDoesNotExist
            case SystemFailure.accessDenied, SystemFailure.notPermitted: .noPermissionsToReadFile
            default: .cannotOpenFile
            }
        return LoadError(kind, "opening \(path): \(error)", cause: error)
    }

    /// Whether the file is sent with sendfile(2); false for TLS, which needs the bytes in memory.
    ///
    /// The property must be set before the file is sent.
    package var usesSendfile: Bool {
        get { clear.load(ordering: .relaxed) }
        set { clear.store(newValue, ordering: .relaxed) }
    }

    /// Returns a part of the file for the kernel to send; nil if sending would wait for a disk, or if the file has become shorter.
    ///
    /// If the result is nil, read the part instead.
    ///
    /// Keep the source until the write is done, and check the file meanwhile (``look(sendingUpTo:on:reply:)``): NIO would try
    /// forever to send bytes that the file no longer has.
    package func region(offset: Int64, count: Int) -> FileRegion? {
        guard count > 0, cls_is_cached(descriptor, offset, Int64(count)) == 1 else { return nil }
        return FileRegion(fileHandle: handle, readerIndex: Int(offset), endIndex: Int(offset) + count)
    }

    /// Replies on the event loop with an error if the file has become shorter than `end`, the end of the part being sent, and
    /// otherwise with nil.
    package func look(sendingUpTo end: Int64, on loop: any EventLoop, reply: @escaping (LoadError?) -> Void) {
        let answer = NIOLoopBound(reply, eventLoop: loop)
        FileWork.submit(at: place) {
            var facts = cls_file_facts()
            let isThere = cls_file_facts(self.descriptor, &facts) == 0 && facts.size >= end
            let failure = isThere ? nil : self.shrank(at: facts.size)
            loop.execute { answer.value(failure) }
        }
    }

    /// Replies on the event loop with an error if the file has changed since it was opened, otherwise with nil.
    ///
    /// Only the open file is checked, not a file that has replaced it since.
    package func checkUnchanged(on loop: any EventLoop, reply: @escaping (LoadError?) -> Void) {
        let answer = NIOLoopBound(reply, eventLoop: loop)
        FileWork.submit(at: place) {
            var facts = cls_file_facts()
            let isSame = cls_file_facts(self.descriptor, &facts) == 0 && Self.version(facts) == self.version
            let failure = isSame ? nil : LoadError(.cannotOpenFile, "\(self.path) changed while it was being sent")
            loop.execute { answer.value(failure) }
        }
    }

    /// Reads a part off the event loop, and replies on the event loop.
    package func read(
        offset: Int64,
        count: Int,
        on loop: any EventLoop,
        reply: @escaping (Result<ByteBuffer, LoadError>) -> Void
    ) {
        let answer = NIOLoopBound(reply, eventLoop: loop)
        FileWork.submit(at: place) {
            let result = self.readNow(offset: offset, count: count)
            loop.execute { answer.value(result) }
        }
    }

    /// The maximum length of content without an exact size that is read into memory.
    private static let readingLimit = 16_777_216

    /// Reads content without an exact size to its end; may block on the file system.
    func readAllNow() throws(LoadError) -> Data {
        var content = Data()
        while content.count <= Self.readingLimit {
            let piece = try readNow(offset: Int64(content.count), count: 65_536).get()
            guard piece.readableBytes > 0 else { return content }
            content.append(contentsOf: piece.readableBytesView)
        }
        throw LoadError(
            .cannotOpenFile,
            "\(path) has no exact size, and more than \(Self.readingLimit) bytes: send its content as a stream (httpBodyStream)")
    }

    /// Reads a part; may block on the disk.
    ///
    /// Content without an exact size may end in the part or before it.
    package func readNow(offset: Int64, count: Int) -> Result<ByteBuffer, LoadError> {
        var buffer = ByteBufferAllocator().buffer(capacity: count)
        var status: Int64 = 0
        buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: count) { room in
            status = cls_read_at(descriptor, room.baseAddress, min(count, room.count), offset)
            return max(0, Int(status))
        }
        if status < 0 {
            let error = SystemFailure(CInt(truncatingIfNeeded: status))
            return .failure(LoadError(.cannotOpenFile, "reading \(path): \(error)", cause: error))
        }
        guard status == Int64(count) || !isSizeExact else { return .failure(shrank(at: offset + status)) }
        return .success(buffer)
    }

    private func shrank(at size: Int64) -> LoadError {
        LoadError(.cannotOpenFile, "\(path) changed while it was being read: it has \(size) bytes instead of \(length)")
    }
}
