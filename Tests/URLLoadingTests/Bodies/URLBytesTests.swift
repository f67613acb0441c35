// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// The bytes and lines of a URL, read without a session of the app.
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct URLBytesTests {
    @Test(.over(.http1)) func `the lines of a response arrive as they are read`() async throws {
        try await withScriptedServer(reply: { _ in .chunked(["one\ntw", "o\r\n\nth", "ree"]) }) { (server) async throws in
            var lines: [String] = []
            for try await line in server.url().lines { lines.append(line) }
            #expect(lines == ["one", "two", "three"])
        }
    }

    @Test(.over(.http1)) func `each iterator loads the URL when its first byte is requested`() async throws {
        try await withScriptedServer(reply: { .ok("\($0.order)") }) { (server) async throws in
            let bytes = server.url().resourceBytes
            var (first, second) = (bytes.makeAsyncIterator(), bytes.makeAsyncIterator())
            #expect(server.requests.isEmpty)
            #expect(try await second.next() == UInt8(ascii: "0"))
            #expect(try await first.next() == UInt8(ascii: "1"))
            #expect(try await first.next() == nil)
            #expect(try await first.next() == nil)
            #expect(server.requests.count == 2)
        }
    }

    @Test func `files can be read`() async throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write("a\nb".utf8, to: "lines")
        var lines: [String] = []
        for try await line in file.lines { lines.append(line) }
        #expect(lines == ["a", "b"])
    }

    @Test(.over(.http1)) func `a failed load throws once, and then ends the sequence`() async throws {
        try await withScriptedServer(reply: { _ in [.nonsense, .close] }) { (server) async throws in
            var iterator = server.url().resourceBytes.makeAsyncIterator()
            await #expect(throws: URLError.self) { try await iterator.next() }
            #expect(try await iterator.next() == nil)
        }
    }
}
