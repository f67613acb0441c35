// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import HTTPTransport
import LoadingModel
import LoadingTestKit
import NIOCore
import Testing

@Suite(.timeLimit(.minutes(1))) struct FileSinkTests {
    let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    @Test func `a file has a random name, is private to its owner, and holds the bytes written in order`()
        async throws
    {
        let sink = try await FileSink.create(in: directory.path)
        var expected: [UInt8] = []
        for step in 0..<400 {
            let piece = (0..<(step * 37 % 9_000)).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ step) }
            expected += piece
            try await sink.write(ByteBuffer(bytes: piece))
        }
        #expect(try await sink.close() == Int64(expected.count))
        let path = sink.path
        #expect(path.wholeMatch(of: #/.*\/CFNetworkDownload_[A-Za-z0-9]{6}\.tmp/#) != nil)
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == Data(expected))
        #expect(try mode(of: path) == 0o600)
        #expect(try directory.names == [URL(fileURLWithPath: path).lastPathComponent])
    }

    @Test func `small writes are gathered`() async throws {
        let sink = try await FileSink.create(in: directory.path)
        for _ in 0..<100 { #expect(try sink.enqueue(ByteBuffer(string: "0123456789"))) }
        #expect(sink.bytesWritten == 0)
        try await sink.flush()
        #expect(sink.bytesWritten == 1_000)
        #expect(try await sink.close() == 1_000)
    }

    @Test func `a writer that is too fast waits`() async throws {
        let sink = try await FileSink.create(in: directory.path)
        let piece = ByteBuffer(repeating: 7, count: FileSink.outstandingLimit)
        #expect(try !sink.enqueue(piece))
        try await sink.room()
        for _ in 0..<20 { try await sink.write(piece) }
        #expect(try await sink.close() == Int64(21 * FileSink.outstandingLimit))
    }

    @Test(arguments: [0, 1_000, 700_000])
    func `space reserved beyond the end is released`(_ length: Int) async throws {
        let sink = try await FileSink.create(in: directory.path, expectedLength: 8 << 20)
        try await sink.write(ByteBuffer(repeating: 1, count: length))
        #expect(try await sink.close() == Int64(length))
        #expect(try Data(contentsOf: URL(fileURLWithPath: sink.path)).count == length)
        #expect(try space(of: sink) <= length + 65_536)
    }

    @Test func `space is reserved as data arrives, not by the announced length`() async throws {
        let sink = try await FileSink.create(in: directory.path, expectedLength: 1 << 30)
        #expect(try space(of: sink) <= 65_536)
        for count in 1...8 {
            try await sink.write(ByteBuffer(repeating: 1, count: 1 << 20))
            try await sink.flush()
            #expect(try (count << 20)...((2 * count + 1) << 20 + 65_536) ~= space(of: sink), "\(count) MiB")
        }
        #expect(try await sink.close() == 8 << 20)
        #expect(try space(of: sink) <= 8 << 20 + 65_536)
    }

    /// The bytes that the file occupies on disk.
    private func space(of sink: FileSink) throws -> Int {
        var status = stat()
        try #require(stat(sink.path, &status) == 0)
        return Int(status.st_blocks) * 512
    }

    @Test func `an absurd announced length reserves no more space than a correct one`() async throws {
        let sink = try await FileSink.create(in: directory.path, expectedLength: .max)
        #expect(try space(of: sink) <= 65_536)
        try await sink.write(ByteBuffer(repeating: 1, count: 1 << 20))
        try await sink.flush()
        #expect(try (1 << 20)...(3 << 20 + 65_536) ~= space(of: sink))
        await sink.abort()
        #expect(try directory.names.isEmpty)
    }

    @Test func `aborting deletes the file`() async throws {
        let sink = try await FileSink.create(in: directory.path)
        for _ in 0..<4 { _ = try sink.enqueue(ByteBuffer(repeating: 1, count: 1 << 20)) }
        await sink.abort()
        await sink.abort()
        #expect(try directory.names.isEmpty)
        #expect(throws: LoadError.self) { try sink.enqueue(ByteBuffer(string: "late")) }
    }

    @Test func `a released sink leaves no file`() async throws {
        for _ in 0..<3 { _ = try await FileSink.create(in: directory.path).enqueue(ByteBuffer(string: "a")) }
        while try !directory.names.isEmpty { await Task.yield() }
    }

    @Test func `a released sink that added nothing leaves the existing file`() async throws {
        let path = try directory.write(Array("begun".utf8), to: "file").path
        _ = try await FileSink.reopen(path: path, length: 5)
        // If the sink deleted the file, it would do so before a thread closes the file.
        while isOpen(path) { await Task.yield() }
        #expect(try String(contentsOfFile: path, encoding: .utf8) == "begun")
    }

    private func isOpen(_ path: String) -> Bool {
        let descriptors = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? []
        return descriptors.contains {
            let target = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")) ?? ""
            return target == path || target == path + " (deleted)"
        }
    }

    @Test func `a complete file that is not taken is deleted`() async throws {
        let sink = try await FileSink.create(in: directory.path)
        try await sink.write(ByteBuffer(string: "late"))
        // `abort` is called while a thread performs `close`.
        sink.close { _ in }
        await sink.abort()
        #expect(try directory.names.isEmpty)
        let other = try await FileSink.create(in: directory.path)
        _ = try await other.close()
        #expect(try directory.names.count == 1)
        await other.abort()
        #expect(try directory.names.isEmpty)
    }

    @Test func `a kept file is continued at its end`() async throws {
        let first = try await FileSink.create(in: directory.path, expectedLength: 1 << 20)
        try await first.write(ByteBuffer(string: "begun, "))
        let length = try await first.close()
        #expect(length == 7)
        let second = try await FileSink.reopen(path: first.path, length: length, expectedLength: 1 << 20)
        #expect(second.bytesWritten == 7)
        try await second.write(ByteBuffer(string: "ended"))
        #expect(try await second.close() == 12)
        #expect(try String(contentsOfFile: first.path, encoding: .utf8) == "begun, ended")
    }

    @Test func `a file that changed is not continued`() async throws {
        let file = try directory.write(Array("12345".utf8), to: "file")
        let link = directory.file("link")
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: file)
        let twin = try directory.write(Array("12345".utf8), to: "twin")
        try FileManager.default.linkItem(at: twin, to: directory.file("other-name"))
        #expect(mkfifo(directory.file("fifo").path, 0o600) == 0)
        for (path, length) in [
            (file.path, 4), (file.path, 6), (link.path, 5), (twin.path, 5), (directory.file("fifo").path, 0),
            (directory.path, 5), (directory.file("missing").path, 0), ("/dev/zero", 0),
        ] as [(String, Int64)] {
            let error = await #expect(throws: LoadError.self, "\(path), \(length) bytes") {
                _ = try await FileSink.reopen(path: path, length: length).close()
            }
            #expect(error?.kind == .cannotOpenFile)
        }
        #expect(try String(contentsOf: file, encoding: .utf8) == "12345")
    }

    @Test(arguments: ["missing", "file"])
    func `without its directory the file cannot be created`(_ name: String) async throws {
        try directory.write([1], to: "file")
        let error = await #expect(throws: LoadError.self) { _ = try await FileSink.create(in: directory.file(name).path) }
        #expect(error?.kind == .cannotCreateFile)
    }

    @Test func `a full disk fails the write and deletes the file`() async throws {
        // /dev/full stands in for the disk; the test checks that the name is removed.
        let named = try directory.write([1], to: "name")
        let descriptor = open("/dev/full", O_WRONLY | O_CLOEXEC)
        let sink = FileSink(path: named.path, descriptor: descriptor, written: 0)
        let error = await #expect(throws: LoadError.self) {
            for _ in 0..<64 { try await sink.write(ByteBuffer(repeating: 1, count: 1 << 20)) }
        }
        #expect(error?.kind == .cannotWriteToFile)
        #expect((error?.cause as? SystemFailure)?.code == ENOSPC)
        let again = await #expect(throws: LoadError.self) { _ = try await sink.close() }
        #expect(again?.kind == .cannotWriteToFile)
        #expect(try directory.names.isEmpty)
        await sink.abort()
    }

    @Test func `a full disk is reported by close too`() async throws {
        let named = try directory.write([1], to: "name")
        let sink = FileSink(path: named.path, descriptor: open("/dev/full", O_WRONLY | O_CLOEXEC), written: 0)
        #expect(try sink.enqueue(ByteBuffer(string: "little")))
        let error = await #expect(throws: LoadError.self) { _ = try await sink.close() }
        #expect(error?.kind == .cannotWriteToFile)
        #expect(try directory.names.isEmpty)
    }

    private func mode(of path: String) throws -> Int {
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        return (attributes[.posixPermissions] as? NSNumber)?.intValue ?? -1
    }
}
