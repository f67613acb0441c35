// SPDX-License-Identifier: Apache-2.0

import CLoadingSystem
import LibC
package import LoadingModel
import NIOCore
package import SystemThreads
import TransportMachines

extension FileSink {
    /// The maximum free space, in bytes, that an announced length can require.
    private static let freeSpaceLimit: Int64 = 1 << 30
    private static let nameAttempts = 100
    private static let nameCharacters = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")

    /// Creates a new file that only its owner can read, with an unpredictable name; an existing file is never used.
    ///
    /// If the server announced a length, a disk without space for that length is detected before the download; the announcement
    /// alone reserves no space.
    package static func createNow(
        in directory: String, expectedLength: Int64? = nil, room: FileReservation? = nil
    ) throws(LoadError) -> FileSink {
        for _ in 0..<nameAttempts {
            let path = directory + (directory.hasSuffix("/") ? "" : "/") + randomName()
            let descriptor = cls_create_private_file(path)
            if descriptor >= 0 { return try opened(descriptor, path, written: 0, expectedLength, isFresh: true, room) }
            let error = SystemFailure(descriptor)
            guard error.code == SystemFailure.exists else {
                throw LoadError(.cannotCreateFile, "creating a file in \(directory): \(error)", cause: error)
            }
        }
        throw LoadError(.cannotCreateFile, "creating a file in \(directory): no unused name was found")
    }

    /// Reopens a file that an earlier sink kept, if it is still a regular file of this user with the same length.
    package static func reopenNow(
        path: String, length: Int64, expectedLength: Int64? = nil, room: FileReservation? = nil
    ) throws(LoadError) -> FileSink {
        let descriptor = cls_open_existing_file(path)
        guard descriptor >= 0 else {
            let error = SystemFailure(descriptor)
            throw LoadError(.cannotOpenFile, "opening \(path): \(error)", cause: error)
        }
        var facts = cls_file_facts()
        guard cls_file_facts(descriptor, &facts) == 0, facts.kind == 1, facts.owner == geteuid(), facts.link_count == 1,
            facts.size == length, cls_seek_to(descriptor, length) == length
        else {
            _ = cls_close(descriptor)
            throw LoadError(.cannotOpenFile, "opening \(path): it is no longer the partial file of \(length) bytes")
        }
        return try opened(descriptor, path, written: length, expectedLength, isFresh: false, room)
    }

    private static func opened(
        _ descriptor: CInt,
        _ path: String,
        written: Int64,
        _ expectedLength: Int64?,
        isFresh: Bool,
        _ room: FileReservation?
    ) throws(LoadError) -> FileSink {
        guard let expectedLength, expectedLength - written > FileSinkMachine.batchSize else {
            return FileSink(path: path, descriptor: descriptor, written: written, room: room)
        }
        let free = cls_free_space(descriptor)
        guard free >= 0, free < min(expectedLength - written, freeSpaceLimit) else {
            // An in-memory file system has no fragmentation to avoid.
            let reserved = cls_is_in_memory(descriptor) != 0 ? nil : expectedLength
            return FileSink(path: path, descriptor: descriptor, written: written, expectedLength: reserved, room: room)
        }
        _ = cls_close(descriptor)
        // The bytes of an earlier attempt may still be useful when there is space again.
        if isFresh { _ = cls_unlink(path) }
        throw writingFailed(path, -SystemFailure.noSpace)
    }

    private static func randomName() -> String {
        var generator = SystemRandomNumberGenerator()
        let letters = (0..<6).map { _ in nameCharacters[Int.random(in: nameCharacters.indices, using: &generator)] }
        return "CFNetworkDownload_\(String(letters)).tmp"
    }
}
