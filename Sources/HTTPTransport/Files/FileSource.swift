//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import CLoadingSystem
package import LoadingModel
package import NIOCore
import NIOPosix
import Synchronization

/// A regular file that is sent as the body of a request; any part of it can be read again, so a body is rewound by starting over.
package final class FileSource: Sendable {
    package let path: String
    /// The length when it was opened, which is what the request announces.
    package let length: Int64
    private let descriptor: CInt
    /// The same descriptor in the form that NIO sends from; it owns it.
    private let handle: NIOFileHandle
    private let clear: Atomic<Bool>

    private init(path: String, length: Int64, descriptor: CInt) {
        self.path = path
        self.length = length
        self.descriptor = descriptor
        handle = NIOFileHandle(_deprecatedTakingOwnershipOfDescriptor: descriptor)
        clear = Atomic(true)
    }

    deinit {
        // Who sends a region keeps the source until the write is done, so the handle is not in use here.
        try? handle.close()
    }

    /// Opens the file off the event loop.
    package static func open(path: String) async throws(LoadError) -> FileSource {
        try await FileWork.run { () throws(LoadError) in try openNow(path: path) }
    }

    /// Opens the file, which may take as long as the file system does.
    package static func openNow(path: String) throws(LoadError) -> FileSource {
        let descriptor = cls_open_for_reading(path)
        guard descriptor >= 0 else { throw openingFailed(path, descriptor) }
        var facts = cls_file_facts()
        let status = cls_file_facts(descriptor, &facts)
        guard status == 0, facts.kind == 1 else {
            _ = cls_close(descriptor)
            if status < 0 { throw openingFailed(path, status) }
            if facts.kind == 2 { throw LoadError(.fileIsDirectory, "opening \(path): it is a directory") }
            throw LoadError(.cannotOpenFile, "opening \(path): not a regular file")
        }
        return FileSource(path: path, length: facts.size, descriptor: descriptor)
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

    /// Whether its parts go out by sendfile(2), in clear, or through memory, for TLS.
    ///
    /// The connection sets it before it starts.
    package var usesSendfile: Bool {
        get { clear.load(ordering: .relaxed) }
        set { clear.store(newValue, ordering: .relaxed) }
    }

    /// A part of the file for the kernel to send.
    ///
    /// NIO would try for ever to send what the file no longer has, so that is found
    /// out here. Keep the source until the write is done.
    package func region(offset: Int64, count: Int) throws(LoadError) -> FileRegion {
        var facts = cls_file_facts()
        guard cls_file_facts(descriptor, &facts) == 0, facts.size >= offset + Int64(count) else { throw shrank(at: facts.size) }
        return FileRegion(fileHandle: handle, readerIndex: Int(offset), endIndex: Int(offset) + count)
    }

    /// What is wrong with the file when it has become shorter than a part that is being sent from it; nil as long as it has not.
    package func failure(sendingUpTo end: Int64) -> LoadError? {
        var facts = cls_file_facts()
        guard cls_file_facts(descriptor, &facts) == 0, facts.size >= end else { return shrank(at: facts.size) }
        return nil
    }

    /// Reads a part off the event loop and answers on it.
    package func read(
        offset: Int64,
        count: Int,
        on loop: any EventLoop,
        reply: @escaping (Result<ByteBuffer, LoadError>) -> Void
    ) {
        let answer = NIOLoopBound(reply, eventLoop: loop)
        FileWork.submit {
            let result = self.readNow(offset: offset, count: count)
            loop.execute { answer.value(result) }
        }
    }

    /// Reads a part, which may take as long as the disk does.
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
        guard status == Int64(count) else { return .failure(shrank(at: offset + status)) }
        return .success(buffer)
    }

    private func shrank(at size: Int64) -> LoadError {
        LoadError(.requestBodyStreamExhausted, "sending \(path): it has \(size) bytes, \(length) were announced")
    }
}
