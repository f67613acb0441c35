// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import HTTPTransport
import LoadingModel
import LoadingTestKit
import NIOCore
import NIOPosix
import Testing

@Suite struct FileSourceTests {
    let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    @Test func `any part of a file can be read repeatedly`() async throws {
        let bytes = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 / 3) }
        let source = try await FileSource.open(path: directory.write(bytes, to: "body").path)
        #expect(source.length == 100_000)
        for offset in [0, 99_000, 0, 54_321] {
            let buffer = try source.readNow(offset: Int64(offset), count: 1_000).get()
            #expect(Array(buffer.readableBytesView) == Array(bytes[offset..<(offset + 1_000)]))
            let region = try #require(source.region(offset: Int64(offset), count: 1_000))
            #expect(region.readerIndex == offset && region.readableBytes == 1_000)
        }
    }

    @Test func `a part is read off the loop, and delivered on it`() async throws {
        let source = try await FileSource.open(path: directory.write(Array("abcdef".utf8), to: "body").path)
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let text = try await loop.flatSubmit { () -> EventLoopFuture<String> in
            let promise = loop.makePromise(of: String.self)
            source.read(offset: 2, count: 3, on: loop) { result in
                loop.preconditionInEventLoop()
                promise.completeWith(result.map { String(buffer: $0) }.mapError { $0 })
            }
            return promise.futureResult
        }.get()
        #expect(text == "cde")
    }

    @Test func `a symbolic link is followed, and an empty file is valid`() async throws {
        let link = directory.file("link")
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: directory.write([], to: "empty"))
        #expect(try await FileSource.open(path: link.path).length == 0)
    }

    @Test func `each file that cannot be sent has its own error`() async throws {
        #expect(mkfifo(directory.file("fifo").path, 0o600) == 0)
        try directory.write([1], to: "file")
        for (path, kind) in [
            (directory.file("missing").path, .fileDoesNotExist), (directory.file("file/below").path, .fileDoesNotExist),
            (directory.path, .fileIsDirectory), (directory.file("fifo").path, .cannotOpenFile), ("/dev/zero", .cannotOpenFile),
        ] as [(String, LoadError.Kind)] {
            let error = await #expect(throws: LoadError.self) { _ = try await FileSource.open(path: path) }
            #expect(error?.kind == kind, "\(path)")
        }
    }

    @Test(.enabled(if: geteuid() != 0, "root may read everything"))
    func `a file without read permission has its own error`() async throws {
        let file = try directory.write([1], to: "secret")
        #expect(chmod(file.path, 0) == 0)
        let error = await #expect(throws: LoadError.self) { _ = try await FileSource.open(path: file.path) }
        #expect(error?.kind == .noPermissionsToReadFile)
    }

    @Test func `a file that shrinks while it is sent fails`() async throws {
        let file = try directory.write([UInt8](repeating: 1, count: 10_000), to: "body")
        let source = try await FileSource.open(path: file.path)
        #expect(truncate(file.path, 5_000) == 0)
        #expect(try source.readNow(offset: 4_000, count: 1_000).get().readableBytes == 1_000)
        let reading = #expect(throws: LoadError.self) { try source.readNow(offset: 4_500, count: 1_000).get() }
        #expect(reading?.kind == .cannotOpenFile)
        #expect(source.region(offset: 4_500, count: 1_000) == nil)
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        for (end, kind) in [(5_000, nil), (5_001, .cannotOpenFile)] as [(Int64, LoadError.Kind?)] {
            let failure = try await loop.flatSubmit { () -> EventLoopFuture<LoadError.Kind?> in
                let promise = loop.makePromise(of: LoadError.Kind?.self)
                source.look(sendingUpTo: end, on: loop) { promise.succeed($0?.kind) }
                return promise.futureResult
            }.get()
            #expect(failure == kind)
        }
    }

    /// Creates a directory in a file system whose files can leave memory, unlike those of a tmpfs.
    private static func directoryOnDisk() throws -> TemporaryDirectory {
        let program = try SeparateProcess.executable().deletingLastPathComponent()
        for place in [FileManager.default.temporaryDirectory, URL(fileURLWithPath: "/var/tmp"), program] {
            if let directory = try? TemporaryDirectory(in: place), try canLeaveMemory(directory.write([1], to: "sample")) {
                return directory
            }
        }
        throw LoadError(.cannotOpenFile, "no folder whose files can leave memory")
    }

    private static func canLeaveMemory(_ file: URL) throws -> Bool {
        let descriptor = open(file.path, O_RDWR)
        defer { close(descriptor) }
        try #require(fsync(descriptor) == 0 && posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED) == 0)
        let page = try #require(mmap(nil, 1, PROT_READ, MAP_SHARED, descriptor, 0))
        defer { munmap(page, 1) }
        var residence: UInt8 = 0
        try #require(page != MAP_FAILED && mincore(page, 1, &residence) == 0)
        return residence & 1 == 0
    }

    /// If the kernel sent the part, the event loop would wait for the disk.
    @Test func `a part that is not in memory is not sent by the kernel`() async throws {
        let directory = try Self.directoryOnDisk()
        let file = try directory.write([UInt8](repeating: 1, count: 4 << 20), to: "body")
        let source = try await FileSource.open(path: file.path)
        #expect(source.region(offset: 0, count: 4 << 20) != nil)
        let descriptor = open(file.path, O_RDWR)
        defer { close(descriptor) }
        #expect(fsync(descriptor) == 0 && posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED) == 0)
        #expect(source.region(offset: 0, count: 4 << 20) == nil)
        #expect(source.region(offset: 2 << 20, count: 1 << 20) == nil)
        #expect(try source.readNow(offset: 2 << 20, count: 1 << 20).get().readableBytes == 1 << 20)
        #expect(source.region(offset: 2 << 20, count: 1 << 20) != nil)
        #expect(source.region(offset: 0, count: 4 << 20) == nil)
    }
}
