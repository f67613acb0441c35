// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Decoding of brotli and zstd in a session, on systems that have their libraries.
@Suite(.timeLimit(.minutes(2)), .everyVersion)
struct LibraryCodingLoadTests {
    private static let content = Array(String(repeating: "a line of text, and another one\n", count: 4_000).utf8)

    struct Coding: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var field: String
        var encode: @Sendable ([UInt8]) throws -> [UInt8]

        func reply(_ content: [UInt8], _ fields: [(String, String)] = []) throws -> ScriptedReply {
            .ok(try encode(content), [("Content-Encoding", field)] + fields)
        }
    }

    static let codings = [
        Coding(testDescription: "brotli", field: "br") { try BrotliBytes.compress($0) },
        Coding(testDescription: "zstd", field: "zstd") { try ZstandardBytes.compress($0) },
        Coding(testDescription: "two frames of zstd", field: "zstd") {
            try ZstandardBytes.compress($0.prefix(1_000)) + ZstandardBytes.skippable([1])
                + ZstandardBytes.compress($0.dropFirst(1_000))
        },
        Coding(testDescription: "brotli in gzip", field: "br, gzip") { GzipBytes.stored(try BrotliBytes.compress($0)) },
    ]

    @Test func `requests list the supported codings unless they set Accept-Encoding`() async throws {
        try await withScenario(reply: { _ in .ok() }) { (server, session) async throws in
            _ = try await session.text(server.url())
            _ = try await session.text(URLRequest(server.url(), headers: ["accept-encoding": "br;q=1.0, *;q=0"]))
            #expect(try await server.request(0).values(of: "Accept-Encoding") == ["gzip, deflate, br, zstd"])
            #expect(try await server.request(1).values(of: "Accept-Encoding") == ["br;q=1.0, *;q=0"])
        }
        try await withScenario(
            configure: { $0.httpAdditionalHeaders = ["Accept-Encoding": "identity"] }, reply: { _ in .ok() }
        ) { (server, session) async throws in
            _ = try await session.text(server.url())
            #expect(try await server.request(0).values(of: "Accept-Encoding") == ["identity"])
        }
    }

    @Test(arguments: codings) func `a body is decoded for every kind of task, even if the coding was not requested`(
        coding: Coding
    ) async throws {
        let recorder = EventRecorder()
        try await withScenario(delegate: recorder, reply: { _ in try coding.reply(Self.content) }) {
            (server, session) async throws in
            let (data, response) = try await session.data(for: URLRequest(server.url(), headers: ["Accept-Encoding": "identity"]))
            #expect(data == Data(Self.content))
            #expect(response.expectedContentLength == -1)
            #expect((response as? HTTPURLResponse)?.value(forHTTPHeaderField: "Content-Encoding") == coding.field)
            let (file, _) = try await session.download(from: server.url())
            #expect(try Data(contentsOf: file) == Data(Self.content))
            try FileManager.default.removeItem(at: file)
            let task = session.dataTask(with: server.url())
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.body == Data(Self.content))
            let counts = try #require(record.metrics?.transactionMetrics.first)
            #expect(counts.countOfResponseBodyBytesReceived == Int64(try coding.encode(Self.content).count))
            #expect(counts.countOfResponseBodyBytesAfterDecoding == Int64(Self.content.count))
            var lines = 0
            for try await line in try await session.bytes(from: server.url()).0.lines {
                #expect(line == "a line of text, and another one")
                lines += 1
            }
            #expect(lines == 4_000)
            #expect(server.connectionCount == 1)
        }
    }

    @Test(arguments: codings) func `a body in small pieces is decoded, with and without a length`(coding: Coding) async throws {
        let bytes = try coding.encode(Self.content)
        try await withScenario(
            reply: { request in
                let framing = request.path == "/chunks" ? ("Transfer-Encoding", "chunked") : ("Content-Length", "\(bytes.count)")
                let head = SocketEffect.head(200, [("Content-Encoding", coding.field), framing])
                return ScriptedReply([head] + bytes.map { SocketEffect.content([$0]) } + [.end(trailers: [])])
            }
        ) { (server, session) async throws in
            #expect(try await session.data(from: server.url("/length")).0 == Data(Self.content))
            #expect(try await session.data(from: server.url("/chunks")).0 == Data(Self.content))
            #expect(server.connectionCount == 1)
        }
    }

    @Test(arguments: ["br", "zstd", "br, zstd", "zstd, gzip"])
    func `a Content-Encoding without a body is ignored`(field: String) async throws {
        try await withScenario(
            reply: { request in
                switch request.path {
                case "/204": .bare(204, [("Content-Encoding", field)])
                case "/head": .bare(200, [("Content-Encoding", field), ("Content-Length", "1234")])
                default: .ok("", [("Content-Encoding", field)])
                }
            }
        ) { (server, session) async throws in
            #expect(try await session.text(URLRequest(server.url("/204"))).response.statusCode == 204)
            let head = try await session.text(URLRequest(server.url("/head"), method: "HEAD"))
            #expect(head.text.isEmpty && head.response.expectedContentLength == 1_234)
            #expect(try await session.text(server.url("/empty")) == "")
            #expect(server.connectionCount == 1)
        }
    }

    @Test(arguments: codings) func `the cache stores the decoded body`(coding: Coding) async throws {
        let fields = [("Cache-Control", "max-age=60"), ("Vary", "Accept-Encoding")]
        try await withCachedScenario(reply: { _ in try coding.reply(Self.content, fields) }) {
            (server, session, scene) async throws in
            for _ in 0..<2 { #expect(try await session.data(from: server.url()).0 == Data(Self.content)) }
            #expect(scene.cache.cachedResponse(for: URLRequest(server.url()))?.data == Data(Self.content))
            await session.flush()
            try await withSession(on: scene.reopened()) { (session) async throws in
                #expect(try await session.data(from: server.url()).0 == Data(Self.content))
            }
            #expect(server.requests.count == 1)
        }
    }

    @Test(arguments: codings) func `a cancelled download of a coded body has no resume data`(coding: Coding) async throws {
        let recorder = EventRecorder()
        let bytes = try coding.encode(ScriptedFile.pattern(600_000))
        let fields = [("Content-Encoding", coding.field), ("ETag", "\"v1\""), ("Content-Length", "\(bytes.count)")]
        try await withScenario(
            delegate: recorder, reply: { _ in [.head(200, fields), .content(Array(bytes.prefix(500_000))), .stall] }
        ) { (server, session) async throws in
            let task = session.downloadTask(with: server.url())
            task.resume()
            try await recorder.wait(for: task) { $0.events.contains { if case .wrote = $0 { true } else { false } } }
            #expect(await task.cancelByProducingResumeData() == nil)
        }
    }

    // MARK: Invalid bodies

    struct Damage: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var field: String
        var body: @Sendable () throws -> [UInt8]
    }

    static let damages = [
        Damage(testDescription: "truncated brotli", field: "br") { try BrotliBytes.compress(content).dropLast(3) },
        Damage(testDescription: "truncated zstd", field: "zstd") { try ZstandardBytes.compress(content).dropLast(20) },
        Damage(testDescription: "zstd without its checksum", field: "zstd") { try ZstandardBytes.compress(content).dropLast(4) },
        Damage(testDescription: "zstd with a wrong checksum", field: "zstd") {
            try ZstandardBytes.compress(content).dropLast(4) + [1, 2, 3, 4]
        },
        Damage(testDescription: "not brotli", field: "br") { Array("plain text, and not little of it".utf8) },
        Damage(testDescription: "not zstd", field: "zstd") { Array("plain text, and not little of it".utf8) },
        Damage(testDescription: "a brotli window beyond RFC 7932", field: "br") {
            try BrotliBytes.compress(content, ["--large_window=30"])
        },
        Damage(testDescription: "a zstd window of 2 GiB", field: "zstd") {
            ZstandardBytes.frame(windowExponent: 21, [ZstandardBytes.raw([1], isLast: true)])
        },
        Damage(testDescription: "six codings", field: "br, br, br, zstd, zstd, zstd") {
            let compressed = try (0..<3).reduce(content) { body, _ in try BrotliBytes.compress(body) }
            return try (0..<3).reduce(compressed) { body, _ in try ZstandardBytes.compress(body) }
        },
    ]

    @Test(arguments: damages) func `a damaged body fails its load only`(row: Damage) async throws {
        let body = try row.body()
        try await withScenario(reply: { $0.path == "/fine" ? .ok("fine") : .ok(body, [("Content-Encoding", row.field)]) }) {
            (server, session) async throws in
            await expectFailure(.cannotDecodeContentData) { try await session.data(from: server.url()) }
            await expectFailure(.cannotDecodeContentData) { try await session.download(from: server.url()) }
            #expect(try await session.text(server.url("/fine")) == "fine")
        }
    }

    /// Bodies that exceed the size up to which any expansion ratio is allowed.
    private static let bombs = [
        ("br", BrotliBytes.bomb),
        ("zstd", ZstandardBytes.frame(windowExponent: 13, (0..<2_000).map { _ in ZstandardBytes.repeated(0) })),
    ]

    @Test(arguments: bombs) func `a bomb fails at the limit, in bounded memory`(field: String, body: [UInt8]) async throws {
        try await withScenario(reply: { _ in .ok(body, [("Content-Encoding", field)]) }) { (server, session) async throws in
            let before = try ProcessProbe.residentBytes()
            await expectFailure(.dataLengthExceedsMaximum) { try await session.download(from: server.url()) }
            #expect(try ProcessProbe.residentBytes() - before < 128 << 20)
            await expectFailure(.dataLengthExceedsMaximum) { try await session.data(from: server.url()) }
        }
    }
}

/// Simulates a machine without the libraries for brotli and zstd; requires root.
@Suite(.enabled(if: geteuid() == 0), .timeLimit(.minutes(2))) struct AbsentCodingTests {
    private func run(_ suite: String, without libraries: String) async throws {
        let script = """
            for file in $(/sbin/ldconfig -p | awk '/\(libraries)/ {print $NF}'); do mount --bind /dev/null $file; done && exec "$@"
            """
        try await SeparateProcess.run(
            suite, environment: [:], wrapper: ["/usr/bin/env", "unshare", "-m", "/bin/sh", "-c", script, "sh"])
    }

    @Test func `without the libraries neither coding is requested or decoded`() async throws {
        try await run("NoLibraryCodingTests", without: "lib(brotlidec|zstd).so.1")
    }

    @Test func `with one library only its coding is requested and decoded`() async throws {
        try await run("OneLibraryCodingTests", without: "libbrotlidec.so.1")
    }
}

@Suite(.enabled(if: SeparateProcess.isCurrentSuite("NoLibraryCodingTests")), .timeLimit(.minutes(1))) struct NoLibraryCodingTests
{
    @Test(arguments: ["br", "zstd", "gzip, br"])
    func `a body in an unknown coding is delivered unchanged`(field: String) async throws {
        try await withScenario(reply: { _ in .ok("as it came", [("Content-Encoding", field)]) }) {
            (server, session) async throws in
            let (text, response) = try await session.text(URLRequest(server.url()))
            #expect(text == "as it came" && response.expectedContentLength == 10)
            #expect(response.value(forHTTPHeaderField: "Content-Encoding") == field)
            #expect(try await server.request(0).values(of: "Accept-Encoding") == ["gzip, deflate"])
        }
        for name in ["libbrotlidec.so.1", "libzstd.so.1"] {
            let report = try #require(SystemLibraryReport.all().first { $0.name == name })
            #expect(report.path == nil && report.failure != nil)
        }
    }
}

@Suite(.enabled(if: SeparateProcess.isCurrentSuite("OneLibraryCodingTests")), .timeLimit(.minutes(1)))
struct OneLibraryCodingTests {
    @Test func `zstd is available, but brotli is not`() async throws {
        let frame = ZstandardBytes.frame(windowExponent: 0, [ZstandardBytes.raw(Array("decoded".utf8), isLast: true)])
        try await withScenario(reply: { .ok(frame, [("Content-Encoding", String($0.path.dropFirst()))]) }) {
            (server, session) async throws in
            #expect(try await session.text(server.url("/zstd")) == "decoded")
            #expect(try await session.data(from: server.url("/br")).0 == Data(frame))
            #expect(try await server.request(0).values(of: "Accept-Encoding") == ["gzip, deflate, zstd"])
        }
    }
}
