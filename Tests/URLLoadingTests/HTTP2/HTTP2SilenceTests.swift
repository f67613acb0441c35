// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Connections whose server falls silent: a PING decides whether new loads may use them.
@Suite(.timeLimit(.minutes(1)))
struct HTTP2SilenceTests {
    /// The server acknowledges no PING on its first connection.
    private static func greeting(_ connection: Int) -> [HTTP2Step] {
        [.policy(.ackPings, connection > 0), .settings()]
    }

    private static func reply(_ request: HTTP2Request) -> [HTTP2Step] {
        request.connection == 0 && request.path == "/silent"
            ? [.awaitRequestEnd, .reach("silent")] : .ok("\(request.connection)")
    }

    private func timeOut(_ server: HTTP2ScriptedServer, _ session: URLSession) async {
        var request = URLRequest(server.url("/silent"))
        request.timeoutInterval = 0.5
        await expectFailure(.timedOut) { try await session.text(request) }
    }

    @Test(arguments: HTTP2Start.allCases)
    func `loads move to another connection if a silent one does not answer PING`(way: HTTP2Start) async throws {
        try await withHTTP2Scenario(way, greeting: Self.greeting, reply: Self.reply) { (server, session) async throws in
            #expect(try await session.text(server.url()) == "0")
            // The POST, which may have been processed, fails; the GET is retried.
            let url = server.url("/silent")
            async let again = session.text(url)
            async let once: URLError? = {
                do {
                    _ = try await session.text(URLRequest(url, method: "POST", body: Data("body".utf8)))
                    return nil
                } catch { return error as? URLError }
            }()
            try await server.reached("silent", times: 2)
            await timeOut(server, session)
            // A new load gets another connection while the PING is pending.
            #expect(try await session.text(server.url("/later")) == "1")
            #expect(server.openConnectionCount == 2)
            #expect(try await again != "0")
            #expect(await once?.code == .networkConnectionLost)
            try await server.waitForEnd(of: 0)
            #expect(server.requests.filter { $0.connection == 0 }.map(\.path) == ["/", "/silent", "/silent", "/silent"])
        }
    }

    @Test func `a connection whose server answers PING late is used again`() async throws {
        try await withHTTP2Scenario(greeting: Self.greeting, reply: Self.reply) { (server, session) async throws in
            #expect(try await session.text(server.url()) == "0")
            await timeOut(server, session)
            let ping = try await server.frame(.ping, on: 0)
            let url = server.url("/later")
            async let later = session.text(url)
            server.run(.ping(ping.data, ack: true), on: 0)
            #expect(try await later == "0")
            #expect(server.connectionCount == 1)
        }
    }

    @Test func `a second connection is opened if the server allows no streams on the first`() async throws {
        try await withHTTP2Scenario(
            reply: { request in
                let answer: [HTTP2Step] = .ok("\(request.connection)")
                return request.connection == 0 ? [.settings([.maxConcurrentStreams: 0])] + answer : answer
            }
        ) { (server, session) async throws in
            #expect(try await session.text(server.url()) == "0")
            try await withThrowingTaskGroup(of: String.self) { group in
                for _ in 0..<5 { group.addTask { try await session.text(server.url()) } }
                for try await answer in group { #expect(answer == "1") }
            }
            #expect(server.connectionCount == 2)
        }
    }

    @Test func `each load that times out in silence sends another PING`() async throws {
        try await withHTTP2Scenario(greeting: Self.greeting, reply: Self.reply) { (server, session) async throws in
            #expect(try await session.text(server.url()) == "0")
            var asked: [[UInt8]] = []
            for _ in 0..<2 {
                await timeOut(server, session)
                let ping = try await server.frame(.ping, on: 0) { [asked] in !asked.contains($0.data) }
                asked.append(ping.data)
                // The server answers this PING; the next load that times out must cause another one.
                server.run(.ping(ping.data, ack: true), on: 0)
                #expect(try await session.text(server.url("/good")) == "0")
                guard asked.count == 1 else { break }
            }
            #expect(asked.count == 2 && server.connectionCount == 1)
        }
    }
}
