// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Decompression bombs, damaged bodies, and valid content codings.
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct HostileCompressionTests {
    private static let content = ScriptedFile.pattern(100_000)

    /// A gzip member without an end: each of its `blocks` of 64 KiB expands to 64 MiB of zeros.
    private static func bomb(blocks: Int = 16) -> ScriptedReply {
        let zeros = [UInt8](repeating: 0, count: 65_536)
        let start = GzipBytes.bombStart
        let headers = [("Content-Encoding", "gzip"), ("Content-Length", "\(start.count + blocks * zeros.count)")]
        return [.head(200, headers, start, ends: false), .content(zeros, times: blocks), .end(trailers: [])]
    }

    @Test func `a bomb stops when the delegate cancels`() async throws {
        let limit = 48 << 20
        let received = Watched((before: 0, after: 0))
        let counter = CountingDelegate(limit: limit, received: received)
        try await withScenario(delegate: counter, reply: { _ in Self.bomb() }) { (server, session) async throws in
            let before = try ProcessProbe.residentBytes()
            let task = session.dataTask(with: server.url())
            task.resume()
            let error = try await counter.completed.value
            #expect(error == .cancelled)
            #expect(received.read(\.after) <= 1 << 20)
            #expect(received.read(\.before) <= limit + 2 << 20)
            #expect(try ProcessProbe.residentBytes() - before < 256 << 20)
        }
    }

    @Test func `a downloaded bomb fails at a limit`() async throws {
        let counter = WritingDelegate()
        try await withScenario(delegate: counter, reply: { _ in Self.bomb() }) { (server, session) async throws in
            let before = try ProcessProbe.residentBytes()
            session.downloadTask(with: server.url()).resume()
            #expect(try await counter.completed.value == .dataLengthExceedsMaximum)
            #expect(counter.written.read { $0 } < 210 << 20)
            #expect(try ProcessProbe.residentBytes() - before < 128 << 20)
        }
    }

    @Test(.over(.http1, .http2, .http3)) func `a bomb below a raised ratio limit streams to the disk`() async throws {
        let counter = WritingDelegate()
        try await withScenario(
            delegate: counter, configure: { $0.maximumDecompressionRatio = 2_000 }, reply: { _ in Self.bomb(blocks: 4) }
        ) { (server, session) async throws in
            let before = try ProcessProbe.residentBytes()
            session.downloadTask(with: server.url()).resume()
            // The compressed body has no end, so the load fails.
            #expect(try await counter.completed.value == .cannotDecodeContentData)
            #expect(counter.written.read { $0 } >= 4 * 65_536 * Int64(GzipBytes.bombRatio) * 9 / 10)
            #expect(try ProcessProbe.residentBytes() - before < 128 << 20)
        }
    }

    @Test func `a bomb for a completion handler fails at a limit`() async throws {
        try await withScenario(reply: { _ in Self.bomb() }) { (server, session) async throws in
            let before = try ProcessProbe.residentBytes()
            await expectFailure(.dataLengthExceedsMaximum) {
                try await session.data(from: server.url())
            }
            #expect(try ProcessProbe.residentBytes() - before < 400 << 20)
        }
    }

    /// Each bomb is 63 MiB of zeros in 2 KiB of zstd, so no single load exceeds its own limit.
    @Test func `bombs for completion handlers share the budget for bodies beyond the ratio`() async throws {
        let blocks = (0..<504).map { ZstandardBytes.repeated(0, isLast: $0 == 503) }
        let bomb = ZstandardBytes.frame(windowExponent: 7, blocks)
        try await withScenario(reply: { _ in
            .ok(bomb, [("Content-Encoding", "zstd")]).after(.gate("go"))
        }) { (server, session) async throws in
            let before = try ProcessProbe.residentBytes()
            let outcomes = await withTaskGroup(of: URLError.Code?.self) { group in
                for _ in 0..<6 {
                    group.addTask {
                        do {
                            let (data, _) = try await session.data(from: server.url())
                            return data.count == 504 << 17 ? nil : .unknown
                        } catch { return (error as? URLError)?.code ?? .unknown }
                    }
                }
                try? await server.reached("go", times: 6)
                server.open("go")
                return await group.reduce(into: []) { $0.append($1) }
            }
            #expect(outcomes.contains(.dataLengthExceedsMaximum), "\(outcomes)")
            #expect(outcomes.allSatisfy { $0 == nil || $0 == .dataLengthExceedsMaximum }, "\(outcomes)")
            #expect(try ProcessProbe.residentBytes() - before < 256 << 20)
            // The failed loads have returned their share of the budget.
            #expect(try await session.data(from: server.url()).0.count == 504 << 17)
        }
    }

    @Test func `two codings are decoded, twenty are rejected`() async throws {
        let twice = GzipBytes.stored(GzipBytes.stored(Self.content))
        let deep = (0..<20).reduce(Array("x".utf8)) { content, _ in GzipBytes.stored(content) }
        let many = Array(repeating: "gzip", count: 20).joined(separator: ", ")
        try await withScenario(
            reply: {
                $0.path == "/2" ? .ok(twice, [("Content-Encoding", "gzip, gzip")]) : .ok(deep, [("Content-Encoding", many)])
            }
        ) { (server, session) async throws in
            let (data, _) = try await session.data(from: server.url("/2"))
            #expect(data == Data(Self.content))
            await expectFailure(.cannotDecodeContentData) {
                try await session.data(from: server.url("/20"))
            }
        }
    }

    struct Damage: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var coding: String
        var bytes: [UInt8]

        init(_ description: String, _ coding: String, _ bytes: [UInt8]) {
            testDescription = description
            self.coding = coding
            self.bytes = bytes
        }
    }

    private static let gzip: [UInt8] = GzipBytes.stored(content)
    private static let zlib: [UInt8] = GzipBytes.zlib(content)
    private static let wrongChecksum: [UInt8] = Array(gzip.dropLast(8)) + [1, 2, 3, 4] + Array(gzip.suffix(4))
    private static let wrongLength: [UInt8] = Array(gzip.dropLast(4)) + [1, 2, 3, 4]
    private static let wrongBlock: [UInt8] = Array(gzip.prefix(10)) + [7, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]

    static let damages: [Damage] = [
        Damage("truncated gzip", "gzip", Array(gzip.dropLast(5000))),
        Damage("truncated before its checksum", "gzip", Array(gzip.dropLast(8))),
        Damage("truncated zlib", "deflate", Array(zlib.dropLast(5000))),
        Damage("bad checksum", "gzip", wrongChecksum),
        Damage("bad length", "gzip", wrongLength),
        Damage("not gzip", "gzip", Array("this is plain text, and not little of it".utf8)),
        Damage("bad block type", "gzip", wrongBlock),
    ]

    @Test(arguments: damages)
    func `a damaged compressed body fails the load`(row: Damage) async throws {
        try await withScenario(reply: { _ in .ok(row.bytes, [("Content-Encoding", row.coding)]) }) {
            (server, session) async throws in
            await expectFailure(.cannotDecodeContentData, in: row.testDescription) {
                try await session.data(from: server.url())
            }
        }
    }

    @Test func `an empty body with a coding is an empty body`() async throws {
        try await withScenario(reply: { _ in .ok("", [("Content-Encoding", "gzip")]) }) { (server, session) async throws in
            let (text, response) = try await session.text(URLRequest(server.url()))
            #expect(text.isEmpty)
            #expect(response.statusCode == 200)
        }
    }

    @Test(arguments: ["gzip", "x-gzip", "GZIP", "deflate", "raw deflate", "identity"])
    func `a body is decoded however it is split`(coding: String) async throws {
        let bytes =
            switch coding {
            case "identity": Self.content
            case "deflate": Self.zlib
            case "raw deflate": GzipBytes.storedBlocks(Self.content)
            default: Self.gzip
            }
        let coding = coding == "raw deflate" ? "deflate" : coding
        let pieces = [bytes.prefix(1), bytes.dropFirst().prefix(9), bytes.dropFirst(10).prefix(30_000), bytes.dropFirst(30_010)]
        let head = SocketEffect.head(200, [("Content-Encoding", coding), ("Content-Length", "\(bytes.count)")])
        try await withScenario(
            reply: { _ in ScriptedReply([head] + pieces.map { SocketEffect.content(Array($0)) } + [.end(trailers: [])]) }
        ) { (server, session) async throws in
            let (data, response) = try await session.data(from: server.url())
            #expect(data == Data(Self.content))
            #expect((response as? HTTPURLResponse)?.statusCode == 200)
            #expect(try await session.data(from: server.url()).0 == Data(Self.content))
            #expect(server.connectionCount == 1)
        }
    }

    @Test func `consecutive gzip members are one body`() async throws {
        let (one, two) = (Self.content.prefix(5000), Self.content.dropFirst(5000))
        let bytes = GzipBytes.stored(Array(one)) + GzipBytes.stored(Array(two))
        try await withScenario(reply: { _ in .ok(bytes, [("Content-Encoding", "gzip")]) }) { (server, session) async throws in
            #expect(try await session.data(from: server.url()).0 == Data(Self.content))
        }
    }

    @Test func `a download is also decoded`() async throws {
        try await withScenario(reply: { _ in .gzip(Self.content) }) { (server, session) async throws in
            let (file, _) = try await session.download(from: server.url())
            #expect(try Data(contentsOf: file) == Data(Self.content))
            try? FileManager.default.removeItem(at: file)
        }
    }
}

/// Counts bytes without keeping them, and cancels at a limit.
private final class CountingDelegate: NSObject, URLSessionDataDelegate, Sendable {
    let limit: Int
    let received: Watched<(before: Int, after: Int)>
    let completed = Delivered<URLError.Code?>()

    init(limit: Int, received: Watched<(before: Int, after: Int)>) {
        self.limit = limit
        self.received = received
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        let cancels = received.change { counts in
            if counts.before >= limit {
                counts.after += data.count
                return false
            }
            counts.before += data.count
            return counts.before >= limit
        }
        if cancels { dataTask.cancel() }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        completed((error as? URLError)?.code)
    }
}

/// Counts the bytes that a download wrote.
private final class WritingDelegate: NSObject, URLSessionDownloadDelegate, Sendable {
    let written = Watched<Int64>(0)
    let completed = Delivered<URLError.Code?>()

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64, totalBytesWritten: Int64,
        totalBytesExpectedToWrite: Int64
    ) {
        written.change { $0 = totalBytesWritten }
    }

    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {}

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        completed((error as? URLError)?.code)
    }
}
