// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Datagrams that anyone on the way can send (RFC 9000, section 21).
@Suite(.timeLimit(.minutes(2)))
struct HTTP3ForgeryTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let forgeries: [HTTP3Forgery]

        init(_ name: String, _ forgeries: HTTP3Forgery...) {
            testDescription = name
            self.forgeries = forgeries
        }
    }

    private static let anytime: [Row] = [
        Row("an empty datagram", .raw([]).times(100)),
        Row("one byte", .raw([0x40]), .raw([0xC0]), .raw([0x00])),
        Row("a short head cut off", .raw([0x40, 1, 2, 3, 4, 5, 6, 7])),
        Row("a long head cut off", .raw([0xC0, 0, 0, 0, 1, 8, 1, 2, 3])),
        Row("a connection ID longer than allowed", .raw([0xC0, 0, 0, 0, 1, 255] + [UInt8](repeating: 7, count: 300))),
        Row("zeros", .raw([UInt8](repeating: 0, count: 1_200)).times(50)),
        Row("noise", .raw(ScriptedFile.pattern(1_200)).times(50), .raw([0x41] + ScriptedFile.pattern(1_300)).times(50)),
        Row("a packet of an unknown version", .raw([0xC0, 0x0A, 0x0A, 0x0A, 0x0A, 8] + [UInt8](repeating: 3, count: 1_190))),
        Row("a large datagram", .raw([UInt8](repeating: 0x55, count: 60_000)).times(5)),
        Row("a Retry with a wrong tag", .retry(isValid: false).times(5)),
        Row("a stateless reset with a wrong token", .reset(isValid: false).times(20)),
        Row("a datagram from another port", .raw([0x40, 1, 2, 3]).fromElsewhere, .reset(isValid: true).fromElsewhere),
    ]

    @Test(arguments: anytime) func `a datagram that is not the server's changes nothing before the handshake`(
        row: Row
    ) async throws {
        try await withHTTP3Scenario(
            opening: { _ in HTTP3Opening { $0.before = row.forgeries } }, reply: { .ok($0.path) }
        ) { (server, session) async throws in
            #expect(try await session.text(server.url("/a")) == "/a")
            #expect(server.connectionCount == 1)
        }
    }

    @Test(
        arguments: anytime + [
            Row("the first datagrams again", .replay.times(10)),
            Row("a Version Negotiation packet", .versions([0x0A0A_0A0A]).times(5)),
            Row("a Retry with a right tag", .retry(isValid: true).times(5)),
        ])
    func `a datagram that is not the server's changes nothing on a connection`(row: Row) async throws {
        try await withHTTP3Scenario(
            reply: {
                [.awaitRequestEnd, .head(), .data("begin ", ends: false)] + row.forgeries.map { .forge($0) } + [.data($0.path)]
            }
        ) { (server, session) async throws in
            for path in ["/a", "/b"] { #expect(try await session.text(server.url(path)) == "begin " + path) }
            #expect(server.connectionCount == 1)
        }
    }

    /// RFC 9000, section 6.2: the versions must contain one that the client speaks, unless it is the first answer.
    @Test func `a Version Negotiation packet that offers the client's version changes nothing`() async throws {
        try await withHTTP3Scenario(
            opening: { _ in HTTP3Opening { $0.before = [.versions([0x0A0A_0A0A, 1])] } }, reply: { .ok($0.path) }
        ) { (server, session) async throws in
            #expect(try await session.text(server.url("/a")) == "/a")
            #expect(server.connectionCount == 1)
        }
    }

    @Test func `after a stateless reset, a GET is repeated on another connection, and a POST is not`() async throws {
        try await withHTTP3Scenario(
            reply: {
                $0.connection % 2 == 1 && $0.path != "/first"
                    ? [.awaitRequestEnd, .forge(.reset(isValid: true)), .forget] : .ok($0.path)
            },
            test: { (server, session) async throws in
                #expect(try await session.text(server.url("/first")) == "/first")
                server.run(.forge(.reset(isValid: true)), .forget, on: 0)
                try await server.waitForEnd(of: 0)
                // The idle connection is found to be gone.
                #expect(try await session.text(server.url("/first")) == "/first")
                #expect(try await session.text(server.url("/get")) == "/get")
                #expect(server.requests.filter { $0.path == "/get" }.map(\.connection) == [1, 2])
                server.run(.forge(.reset(isValid: true)), .forget, on: 2)
                try await server.waitForEnd(of: 2)
                #expect(try await session.text(server.url("/first")) == "/first")
                let request = URLRequest(server.url("/post"), method: "POST", body: Data("body".utf8))
                await expectFailure(.networkConnectionLost) { try await session.text(request) }
                #expect(server.requests.count { $0.path == "/post" } == 1)
            })
    }

    @Test func `a server that wants the client's address validated gets its token back`() async throws {
        try await withHTTP3Scenario(retries: true, reply: { .ok($0.path) }) { (server, session) async throws in
            #expect(try await session.text(server.url("/a")) == "/a")
            #expect(server.connectionCount == 1)
        }
    }
}
