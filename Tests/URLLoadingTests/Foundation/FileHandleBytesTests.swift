// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// `FileHandle.bytes`.
@Suite(.timeLimit(.minutes(1)))
struct FileHandleBytesTests {
    @Test(arguments: [0, 1, 16_383, 16_384, 16_385, 100_000])
    func `the bytes of a file are read to its end`(count: Int) async throws {
        let folder = try TemporaryDirectory()
        let content = Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) })
        let file = folder.url.appending(path: "file")
        try content.write(to: file)
        let handle = try FileHandle(forReadingFrom: file)
        var read = Data()
        for try await byte in handle.bytes { read.append(byte) }
        #expect(read == content)
        // The handle's offset is at the end.
        for try await byte in handle.bytes { Issue.record("\(byte)") }
    }

    @Test func `the lines of a pipe arrive as they are written`() async throws {
        let pipe = Pipe()
        var lines = pipe.fileHandleForReading.bytes.lines.makeAsyncIterator()
        for line in ["one", "two", "drei ü"] {
            try pipe.fileHandleForWriting.write(contentsOf: Data("\(line)\n".utf8))
            #expect(try await lines.next() == line)
        }
        try pipe.fileHandleForWriting.write(contentsOf: Data("rest".utf8))
        try pipe.fileHandleForWriting.close()
        #expect(try await lines.next() == "rest")
        #expect(try await lines.next() == nil)
    }

    @Test func `a handle that cannot be read throws`() async throws {
        let folder = try TemporaryDirectory()
        let handle = try FileHandle(forReadingFrom: folder.url)
        await #expect(throws: POSIXError(.EISDIR)) {
            for try await _ in handle.bytes {}
        }
    }

    @Test func `a handle that is always ready, or closed, does not block its reader`() async throws {
        let nothing = try #require(FileHandle(forReadingAtPath: "/dev/null"))
        for try await byte in nothing.bytes { Issue.record("\(byte)") }
        let zeros = try #require(FileHandle(forReadingAtPath: "/dev/zero"))
        var count = 0
        for try await byte in zeros.bytes {
            #expect(byte == 0)
            count += 1
            if count == 20_000 { break }
        }
        let closed = try #require(FileHandle(forReadingAtPath: "/dev/zero"))
        try closed.close()
        await #expect(throws: POSIXError(.EBADF)) {
            for try await _ in closed.bytes {}
        }
    }

    @Test func `cancelling ends a wait for bytes and consumes none that arrive later`() async throws {
        let pipe = Pipe()
        let handle = pipe.fileHandleForReading
        for round in UInt8(0)..<20 {
            let task = Task {
                var bytes = handle.bytes.makeAsyncIterator()
                return try await bytes.next()
            }
            for _ in 0..<round { await Task.yield() }
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            try pipe.fileHandleForWriting.write(contentsOf: Data([round]))
            var bytes = handle.bytes.makeAsyncIterator()
            #expect(try await bytes.next() == round)
        }
    }
}
