// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Violations by servers: the load fails, the client reports the error to the server, and further loads succeed.
@Suite(.timeLimit(.minutes(2)))
struct HTTP2FaultTests {
    private static func reply(_ faults: [HTTP2Fault]) -> HTTP2ScriptedServer.Reply {
        { request in
            guard let number = Int(request.path.dropFirst()), faults.indices.contains(number) else {
                return request.path == "/beside" ? [.gate("beside")] + .ok("beside") : .ok("good")
            }
            return [.awaitRequestEnd] + faults[number].steps
        }
    }

    private func expect(_ faults: [HTTP2Fault], _ codes: Set<URLError.Code>) async throws {
        try await withHTTP2Scenario(reply: Self.reply(faults)) { (server, session) async throws in
            for (number, fault) in faults.enumerated() {
                await expectFailure(in: codes, fault.name) { try await session.text(server.url("/\(number)")) }
                let requests = server.requests.filter { $0.path == "/\(number)" }
                let request = try #require(requests.first, "\(fault.name)")
                let verdict = try await server.verdict(on: request.stream, of: request.connection)
                #expect(requests.count == 1, "\(fault.name)")
                let said = "\(fault.name): \(verdict.map { "\($0)" } ?? "nothing")"
                #expect(verdict?.errorCode.map(fault.codes.contains) == true, "\(said)")
                if fault.scope == .connection { #expect(verdict?.kind == .goAway, "\(fault.name)") }
                if verdict?.kind == .goAway { try await server.waitForEnd(of: request.connection) }
                #expect(try await session.text(server.url("/good")) == "good", "\(fault.name)")
            }
        }
    }

    @Test func `a malformed frame ends the stream or the connection with its error code`() async throws {
        try await expect(HTTP2Fault.frames, brokenProtocol)
    }

    @Test func `a frame that is not permitted in its state ends the stream or the connection with its error code`() async throws {
        try await expect(HTTP2Fault.states, brokenProtocol)
    }

    @Test func `a malformed response resets its stream with PROTOCOL_ERROR`() async throws {
        try await expect(HTTP2Fault.messages, malformedResponse)
    }

    @Test func `a field block that cannot be decoded ends the connection with COMPRESSION_ERROR`() async throws {
        try await expect(HTTP2Fault.compression, brokenProtocol)
    }

    @Test func `a malformed response does not affect the other streams of its connection`() async throws {
        let faults = HTTP2Fault.messages
        try await withHTTP2Scenario(reply: Self.reply(faults)) { (server, session) async throws in
            let url = server.url("/beside")
            async let beside = session.text(url)
            try await server.reached("beside")
            for (number, fault) in faults.enumerated() {
                await expectFailure(in: malformedResponse, fault.name) { try await session.text(server.url("/\(number)")) }
            }
            server.open("beside")
            #expect(try await beside == "beside")
            #expect(server.connectionCount == 1)
            #expect(server.frames(.resetStream).count >= faults.count)
        }
    }

    /// RFC 9113, section 5.1: the client may treat a frame for a closed stream as a connection error of type STREAM_CLOSED.
    @Test(arguments: ["DATA", "HEADERS", "CONTINUATION"]) func `frames for a closed stream fail no load`(
        kind: String
    ) async throws {
        try await withHTTP2Scenario(
            reply: { request in
                guard request.path == "/late" else { return .ok(request.path) }
                let late: HTTP2Step =
                    switch kind {
                    case "DATA": .frame(.data, Array("more".utf8))
                    case "HEADERS": .headers([(":status", "200")], ends: true)
                    default: .frame(.continuation, flags: .endHeaders)
                    }
                return .ok("late") + [late]
            }
        ) { (server, session) async throws in
            for number in 0..<5 {
                #expect(try await session.text(server.url("/late")) == "late")
                try await server.settleOrEnd(on: server.requests.last?.connection ?? 0)
                #expect(try await session.text(server.url("/\(number)")) == "/\(number)")
            }
            let frames = (0..<server.connectionCount).flatMap { server.frames(on: $0) }
            let codes = frames.filter { $0.kind == .goAway || $0.kind == .resetStream }.compactMap(\.errorCode)
            #expect(codes.allSatisfy { [.noError, .streamClosed, .protocolError].contains($0) }, "\(codes)")
        }
    }

    /// Checks the tables with another implementation: the server sends the same faults to curl, which uses nghttp2.
    @Test(arguments: ["frames", "states", "messages", "compression"])
    func `curl reports the same error codes for the same faults`(table: String) async throws {
        let all = [
            "frames": HTTP2Fault.frames, "states": HTTP2Fault.states, "messages": HTTP2Fault.messages,
            "compression": HTTP2Fault.compression,
        ]
        let faults = try #require(all[table])
        let curl = try HTTP2ServersTests.Curl()
        try await withHTTP2Server(identity: curl.certificates.valid, reply: Self.reply(faults)) { (server) async throws in
            for (number, fault) in faults.enumerated() {
                let codes = fault.peerCodes ?? fault.codes
                if codes.isEmpty {
                    #expect(try await curl(server.url("/\(number)")).page == "hello", "\(fault.name)")
                    continue
                }
                await #expect(throws: ServerProcess.Failure.self, "\(fault.name)") {
                    try await curl(server.url("/\(number)"))
                }
                let request = try #require(server.requests.last { $0.path == "/\(number)" }, "\(fault.name)")
                let verdict = try await server.verdict(on: request.stream, of: request.connection)
                #expect(
                    verdict?.errorCode.map(codes.contains) == true, "\(fault.name): \(verdict.map { "\($0)" } ?? "nothing")")
            }
        }
    }
}
