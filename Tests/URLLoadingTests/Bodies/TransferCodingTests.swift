// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// `Transfer-Encoding` of responses (RFC 9112, sections 6 and 7), and invalid status codes.
@Suite(.timeLimit(.minutes(1)))
struct TransferCodingTests {
    private static let content = ScriptedFile.pattern(100_000)
    private static let gzip = GzipBytes.stored(content)

    struct Row: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var fields: [(String, String)]
        var body: [UInt8]
        var closes = true

        var reply: ScriptedReply {
            let reply: ScriptedReply = [.head(200, fields), .write(body)]
            return closes ? reply.then(.close) : reply
        }
    }

    static let rows = [
        Row(testDescription: "gzip, ended by the close", fields: [("Transfer-Encoding", "gzip")], body: gzip),
        Row(testDescription: "x-gzip", fields: [("Transfer-Encoding", "X-GZip")], body: gzip),
        Row(testDescription: "deflate", fields: [("Transfer-Encoding", "deflate")], body: GzipBytes.zlib(content)),
        Row(testDescription: "identity", fields: [("Transfer-Encoding", "identity")], body: content),
        Row(
            testDescription: "an ignored Content-Length", fields: [("Content-Length", "7"), ("Transfer-Encoding", "gzip")],
            body: gzip),
        Row(
            testDescription: "gzip, then chunked", fields: [("Transfer-Encoding", "gzip, chunked")], body: chunks(gzip),
            closes: false),
        Row(
            testDescription: "chunked in a separate field line",
            fields: [("Transfer-Encoding", "gzip"), ("Transfer-Encoding", "chunked")],
            body: chunks(gzip), closes: false),
        Row(
            testDescription: "two compressions", fields: [("Transfer-Encoding", "deflate, gzip, chunked")],
            body: chunks(GzipBytes.stored(GzipBytes.zlib(content))), closes: false),
        Row(
            testDescription: "content with a content coding",
            fields: [("Content-Encoding", "deflate"), ("Transfer-Encoding", "gzip, chunked")],
            body: chunks(GzipBytes.stored(GzipBytes.zlib(content))), closes: false),
    ]

    private static func chunks(_ bytes: [UInt8]) -> [UInt8] {
        let half = bytes.count / 2
        return [bytes[..<half], bytes[half...]].reduce(into: []) { result, piece in
            result += Array((String(piece.count, radix: 16) + "\r\n").utf8) + piece + Array("\r\n".utf8)
        } + Array("0\r\n\r\n".utf8)
    }

    @Test(arguments: rows) func `transfer codings are decoded`(row: Row) async throws {
        try await withScenario(reply: { $0.path == "/coded" ? row.reply : .ok("next") }) { (server, session) async throws in
            let (data, response) = try await session.data(from: server.url("/coded"))
            #expect(data == Data(Self.content))
            #expect(response.expectedContentLength == -1)
            let (file, _) = try await session.download(from: server.url("/coded"))
            #expect(try Data(contentsOf: file) == Data(Self.content))
            try FileManager.default.removeItem(at: file)
            #expect(try await session.text(server.url()) == "next")
            #expect(server.connectionCount == (row.closes ? 3 : 1))
        }
    }

    @Test func `a body with an unknown content coding is delivered after only its transfer coding is decoded`() async throws {
        let reply = Row(
            testDescription: "", fields: [("Content-Encoding", "compress"), ("Transfer-Encoding", "gzip")], body: Self.gzip
        ).reply
        try await withScenario(reply: { _ in reply }) { (server, session) async throws in
            #expect(try await session.data(from: server.url()).0 == Data(Self.content))
        }
    }

    @Test func `a truncated compressed body fails the load, even if the end of the connection delimits the body`() async throws {
        let reply = Row(testDescription: "", fields: [("Transfer-Encoding", "gzip")], body: Array(Self.gzip.dropLast(9))).reply
        try await withScenario(reply: { _ in reply }) { (server, session) async throws in
            await expectFailure(.cannotDecodeContentData) { try await session.data(from: server.url()) }
        }
    }

    @Test func `the cache stores the decoded body`() async throws {
        let reply = Row(
            testDescription: "", fields: [("Cache-Control", "max-age=60"), ("Transfer-Encoding", "gzip, chunked")],
            body: Self.chunks(Self.gzip), closes: false
        ).reply
        try await withScenario(reply: { _ in reply }) { (server, session) async throws in
            for _ in 0..<2 { #expect(try await session.data(from: server.url()).0 == Data(Self.content)) }
            #expect(server.requests.count == 1)
        }
    }

    @Test(arguments: [0, 7, 99, 600, 999]) func `an invalid status code is delivered as a final response`(
        status: Int
    ) async throws {
        let code = String(repeating: "0", count: 3 - "\(status)".count) + "\(status)"
        let text = "HTTP/1.1 \(code) Odd\r\nContent-Length: 4\r\nCache-Control: max-age=60\r\nLocation: /other\r\n\r\nbody"
        try await withScenario(reply: { _ in .raw(text) }) { (server, session) async throws in
            for _ in 0..<2 {
                let (body, response) = try await session.text(URLRequest(server.url()))
                #expect(body == "body" && response.statusCode == status)
            }
            #expect(server.requests.count == 2)
            #expect(server.connectionCount == 1)
        }
    }
}
