// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

private let head = "HTTP/1.1 200 OK\r\n"

/// Responses that do not end, or stall.
@Suite(.timeLimit(.minutes(1)))
struct HostileStreamTests {
    /// Waits until the connection of a failed load is closed.
    ///
    /// A load that timed out before its request was sent leaves a reusable connection open.
    private func expectClosed(_ server: ScriptedServer) async throws {
        if !server.requests.isEmpty { try await server.waitForAllClosed() }
    }

    @Test func `100,000 interim responses fail the load in bounded memory`() async throws {
        let hundred = Array(String(repeating: "HTTP/1.1 100 Continue\r\n\r\n", count: 100).utf8)
        try await withScenario(
            reply: { _ in [.repeat(hundred, count: 1000), .write(head + "Content-Length: 2\r\n\r\nok")] }
        ) { (server, session) async throws in
            let before = try ProcessProbe.residentBytes()
            await expectFailure(.badServerResponse) { try await session.data(from: server.url()) }
            #expect(try ProcessProbe.residentBytes() - before < 256 << 20)
        }
    }

    @Test func `endless interim responses fail the load long before its deadline`() async throws {
        try await withScenario(
            reply: { _ in [.endlessly("HTTP/1.1 102 Processing\r\n\r\n")] }
        ) { (server, session) async throws in
            await expectFailure(.badServerResponse) { try await session.data(from: server.url()) }
            try await expectClosed(server)
        }
    }

    @Test func `a stalled trailer times out`() async throws {
        try await withScenario(
            configure: { $0.timeoutIntervalForRequest = 0.3 },
            reply: { _ in [.write(head + "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nT: v\r\n"), .stall] }
        ) { (server, session) async throws in
            await expectFailure(.timedOut) { try await session.data(from: server.url()) }
            try await expectClosed(server)
        }
    }

    @Test func `endless trailers fail the load`() async throws {
        try await withScenario(
            reply: { _ in
                [
                    .write(head + "Transfer-Encoding: chunked\r\n\r\n0\r\n"),
                    .endlessly(String(repeating: "Trailer-Field: value\r\n", count: 50)),
                ]
            }
        ) { (server, session) async throws in
            await expectFailure(.dataLengthExceedsMaximum) { try await session.data(from: server.url()) }
            try await expectClosed(server)
        }
    }

    @Test func `20,000 long chunk extensions fail the load in bounded memory`() async throws {
        let chunk = Array(("1;" + String(repeating: "e", count: 4096) + "\r\nx\r\n").utf8)
        try await withScenario(
            reply: { _ in
                [.write(head + "Transfer-Encoding: chunked\r\n\r\n"), .repeat(chunk, count: 20_000), .write("0\r\n\r\n")]
            }
        ) { (server, session) async throws in
            let before = try ProcessProbe.residentBytes()
            await expectFailure(.dataLengthExceedsMaximum) { try await session.data(from: server.url()) }
            #expect(try ProcessProbe.residentBytes() - before < 256 << 20)
        }
    }

    @Test func `an endless chunk extension fails the load`() async throws {
        try await withScenario(
            reply: { _ in
                [
                    .write(head + "Transfer-Encoding: chunked\r\n\r\n1;"),
                    .repeat([UInt8](repeating: 101, count: 16_384), count: .max),
                ]
            }
        ) { (server, session) async throws in
            await expectFailure(.dataLengthExceedsMaximum) { try await session.data(from: server.url()) }
        }
    }

    @Test(arguments: [
        [SocketEffect.stall],
        [.write("HTT"), .stall],
        [.write(head + "X: y\r\n"), .stall],
        [.write(head + "Content-Length: 5\r\n\r\nhe"), .stall],
        [.write(head + "Transfer-Encoding: chunked\r\n\r\n5\r\nhe"), .stall],
    ])
    func `a stall times out`(effects: [SocketEffect]) async throws {
        try await withScenario(
            configure: { $0.timeoutIntervalForRequest = 0.2 }, reply: { _ in ScriptedReply(effects) }
        ) { (server, session) async throws in
            await expectFailure(.timedOut) { try await session.data(from: server.url()) }
            try await expectClosed(server)
        }
    }

    @Test func `each received byte restarts the request timeout`() async throws {
        try await withGrowingTimes { scale in
            var isRight = false
            let drip = (0..<8).flatMap { _ in [SocketEffect.pause(milliseconds: Int64(50 * scale)), .write("x")] }
            try await withScenario(
                configure: { $0.timeoutIntervalForRequest = 0.3 * scale },
                reply: { _ in ScriptedReply([.write(head + "Content-Length: 8\r\n\r\n")] + drip) }
            ) { (server, session) async throws in
                isRight = (try? await session.text(server.url())) == "xxxxxxxx"
            }
            return isRight
        }
    }

    @Test func `received bytes do not extend the resource timeout`() async throws {
        let drip = (0..<500).flatMap { _ in [SocketEffect.pause(milliseconds: 10), .write("x")] }
        try await withScenario(
            configure: { $0.timeoutIntervalForResource = 0.3 },
            reply: { _ in ScriptedReply([.write(head + "Content-Length: 500\r\n\r\n")] + drip) }
        ) { (server, session) async throws in
            await expectFailure(.timedOut) { try await session.data(from: server.url()) }
            try await expectClosed(server)
        }
    }

    @Test func `a hostile server does not affect loads from another`() async throws {
        try await withScriptedServer(reply: { .ok($0.path) }) { (good) async throws in
            try await withScenario(reply: { _ in [.write(head), .endlessly("X: y\r\n")] }) { (bad, session) async throws in
                let (badURL, goodURL) = (bad.url(), good)
                async let failure: URLError? = expectFailure(.dataLengthExceedsMaximum) {
                    try await session.data(from: badURL)
                }
                for number in 0..<20 {
                    #expect(try await session.text(goodURL.url("/\(number)")) == "/\(number)")
                }
                _ = await failure
            }
        }
    }
}
