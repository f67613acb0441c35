// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Violations by servers: the load fails, the client reports the error to the server, and further loads succeed.
@Suite(.timeLimit(.minutes(2)))
struct HTTP3FaultTests {
    private static func reply(_ faults: [HTTP3Fault]) -> HTTP3ScriptedServer.Reply {
        { request in
            guard let number = Int(request.path.dropFirst()), faults.indices.contains(number) else {
                return request.path == "/beside" ? [.gate("beside")] + .ok("beside") : .ok("good")
            }
            return [.awaitRequestEnd] + faults[number].steps
        }
    }

    /// Expects each fault to end the connection.
    private func expectEnd(_ faults: [HTTP3Fault], _ codes: Set<URLError.Code>) async throws {
        try await withHTTP3Scenario(reply: Self.reply(faults)) { (server, session) async throws in
            for (number, fault) in faults.enumerated() {
                await expectFailure(in: codes, fault.name) { try await session.text(server.url("/\(number)")) }
                let requests = server.requests.filter { $0.path == "/\(number)" }
                let request = try #require(requests.first, "\(fault.name)")
                #expect(requests.count == 1, "\(fault.name)")
                let end = try await server.waitForEnd(of: request.connection)
                #expect(
                    fault.codes.isEmpty || end.map { fault.codes.contains($0.code) } == true,
                    "\(fault.name): \(String(describing: end))")
                #expect(try await session.text(server.url("/good")) == "good", "\(fault.name)")
            }
        }
    }

    @Test func `a frame that is not permitted ends the connection with its error code`() async throws {
        try await expectEnd(HTTP3Fault.frames, [.badServerResponse])
    }

    @Test func `a violation on another stream ends the connection with its error code`() async throws {
        try await expectEnd(HTTP3Fault.streams, [.badServerResponse])
    }

    @Test func `a field section that cannot be decoded ends the connection with its error code`() async throws {
        try await expectEnd(HTTP3Fault.compression, [.badServerResponse])
    }

    @Test func `a packet that violates QUIC ends the connection with its error code`() async throws {
        try await expectEnd(HTTP3Fault.packets, [.badServerResponse])
    }

    /// The server says nothing before it gets a request.
    @Test func `a violation at the beginning of a connection ends it with its error code`() async throws {
        let faults = HTTP3Fault.beginnings
        for fault in faults {
            try await withHTTP3Scenario(
                greeting: { $0 == 0 ? [.awaitRequests(1)] + fault.steps : [.settings()] },
                reply: { $0.connection == 0 ? [.stall] : .ok("good") }
            ) { (server, session) async throws in
                await expectFailure(in: [.badServerResponse], fault.name) { try await session.text(server.url("/first")) }
                let end = try await server.waitForEnd()
                #expect(end.map { fault.codes.contains($0.code) } == true, "\(fault.name): \(String(describing: end))")
                #expect(try await session.text(server.url("/good")) == "good", "\(fault.name)")
            }
        }
    }

    @Test func `a malformed response resets its stream with H3_MESSAGE_ERROR, and its connection continues`() async throws {
        let faults = HTTP3Fault.messages
        try await withHTTP3Scenario(reply: Self.reply(faults)) { (server, session) async throws in
            let url = server.url("/beside")
            async let beside = session.text(url)
            try await server.reached("beside")
            for (number, fault) in faults.enumerated() {
                await expectFailure(.cannotParseResponse, in: fault.name) { try await session.text(server.url("/\(number)")) }
                let requests = server.requests.filter { $0.path == "/\(number)" }
                let request = try #require(requests.first, "\(fault.name)")
                #expect(requests.count == 1, "\(fault.name)")
                let code = try await server.waitForReset(of: request.stream)
                #expect(code.map(fault.codes.contains) == true, "\(fault.name): \(String(describing: code))")
            }
            server.open("beside")
            #expect(try await beside == "beside")
            #expect(server.connectionCount == 1)
        }
    }

    /// The library ends the connection; only the load that is to blame fails.
    @Test func `content that differs from its length fails its load, and safe loads beside it are repeated`() async throws {
        let faults = HTTP3Fault.lengths
        for (number, fault) in faults.enumerated() {
            try await withHTTP3Scenario(
                reply: { $0.path == "/beside" && $0.connection == 0 ? [.reach("beside"), .stall] : try Self.reply(faults)($0) }
            ) { (server, session) async throws in
                // A load is repeated only if the connection has served another one.
                #expect(try await session.text(server.url("/good")) == "good", "\(fault.name)")
                let url = server.url("/beside")
                async let beside = session.text(url)
                try await server.reached("beside")
                await expectFailure(.cannotParseResponse, in: fault.name) { try await session.text(server.url("/\(number)")) }
                server.open("beside")
                #expect(try await beside == "beside", "\(fault.name)")
                #expect(server.requests.count { $0.path == "/\(number)" } == 1, "\(fault.name)")
                #expect(try await session.text(server.url("/good")) == "good", "\(fault.name)")
            }
        }
    }

    @Test func `a load whose content differs from its length is never a complete download`() async throws {
        let faults = HTTP3Fault.lengths
        try await withHTTP3Scenario(reply: Self.reply(faults)) { (server, session) async throws in
            for (number, fault) in faults.enumerated() {
                await expectFailure(.cannotParseResponse, in: fault.name) {
                    try await session.download(from: server.url("/\(number)"))
                }
            }
        }
    }

    @Test func `a field that could split a response is dropped`() async throws {
        let rows = HTTP3Fault.dropped
        try await withHTTP3Scenario(
            reply: { request in
                guard let number = Int(request.path.dropFirst()) else { return .ok("good") }
                return .ok("body", rows[number].fields + [("x-kept", "\u{E9}")])
            }
        ) { (server, session) async throws in
            for (number, row) in rows.enumerated() {
                let (text, response) = try await session.text(URLRequest(server.url("/\(number)")))
                #expect(text == "body", "\(row.name)")
                #expect(response.value(forHTTPHeaderField: "x-kept") != nil, "\(row.name)")
                #expect(response.allHeaderFields.count == 1, "\(row.name): \(response.allHeaderFields)")
            }
            #expect(server.connectionCount == 1)
        }
    }

    /// RFC 9114, sections 4.1, 6.2.3, 7.2.8 and 9: what is unknown is ignored.
    @Test func `unknown frames, streams and settings change nothing`() async throws {
        let grease: [HTTP3Step] = [
            .frame(0x21, [1, 2, 3]), .frame(0x40, []), .frame(0x1F * 1_000 + 0x21, [UInt8](repeating: 7, count: 5_000)),
        ]
        let large = HTTP3Bytes.integer((1 << 62) - 2)
        try await withHTTP3Scenario(
            greeting: { _ in
                [
                    .write([0] + HTTP3Bytes.frame(.settings, HTTP3Bytes.integer(0x21) + large + [0x06] + large), on: .control),
                    .write([2], on: .encoder), .write([3], on: .decoder), .frame(0x21, [9], on: .control),
                    .write([0x21] + [UInt8](repeating: 1, count: 100), on: .uni(0)),
                    .write([0x40, 0x40], on: .uni(1), ends: true),
                ]
            },
            reply: {
                guard $0.connection == 0 else { return .ok("good") }
                return [.awaitRequestEnd] + grease + [.head(103)] + grease + [.head()] + grease + [.data("good", ends: false)]
                    + grease + [.headers([("x-trailer", "a")])] + grease + [.finish]
            }
        ) { (server, session) async throws in
            #expect(try await session.text(server.url("/first")) == "good")
        }
    }

    /// The client may stop reading a stream of an unknown type with H3_STREAM_CREATION_ERROR (RFC 9114, section 6.2.3).
    @Test func `a reset of an unknown stream changes nothing`() async throws {
        try await withHTTP3Scenario(
            greeting: { _ in
                [.settings(), .write([0x21], on: .uni(0)), .resetNow(0x100, on: .uni(0)), .resetNow(0x100, on: .uni(1))]
            },
            reply: { .ok($0.path) }
        ) { (server, session) async throws in
            for path in ["/a", "/b"] { #expect(try await session.text(server.url(path)) == path) }
            #expect(server.connectionCount == 1)
        }
    }
}
