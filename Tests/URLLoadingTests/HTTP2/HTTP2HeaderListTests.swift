// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// SETTINGS_MAX_HEADER_LIST_SIZE: the maximum size of a request's header list (RFC 9113, section 6.5.2).
@Suite(.timeLimit(.minutes(1)))
struct HTTP2HeaderListTests {
    @Test(arguments: HTTP2Start.allCases)
    func `a request beyond the server's limit fails at once and does not affect others`(way: HTTP2Start) async throws {
        try await withHTTP2Scenario(
            way, greeting: { _ in [.settings([.maxHeaderListSize: 1_000])] },
            reply: { ($0.path == "/held" ? [.gate("held")] : []) + .ok($0.path) }
        ) { (server, session) async throws in
            #expect(try await session.text(server.url("/first")) == "/first")
            let url = server.url("/held")
            async let held = session.text(url)
            try await server.reached("held")
            let long = String(repeating: "x", count: 1_000)
            let rows: [(String, URLRequest)] = [
                ("a field", URLRequest(server.url("/large"), headers: ["X-Long": long])),
                ("cookies", URLRequest(server.url("/large"), headers: ["Cookie": "a=\(long)"])),
                ("a path", URLRequest(server.url("/\(long)"))),
                ("a POST", URLRequest(server.url("/large"), method: "POST", headers: ["X-Long": long], body: Data("body".utf8))),
            ]
            for (name, request) in rows {
                let error = await expectFailure(.dataLengthExceedsMaximum, in: name) { try await session.text(request) }
                let message = error?.localizedDescription ?? ""
                #expect(message.contains("SETTINGS_MAX_HEADER_LIST_SIZE") && message.contains("1000"), "\(name): \(message)")
            }
            server.open("held")
            #expect(try await held == "/held")
            // Later requests arrive intact: the refused ones did not change the client's dynamic table.
            for path in ["/a", "/b"] {
                #expect(try await session.text(URLRequest(server.url(path), headers: ["X-Long": "short"])).text == path)
            }
            #expect(server.requests.map(\.path) == ["/first", "/held", "/a", "/b"])
            #expect(server.connectionCount == 1 && server.frames(.resetStream).isEmpty)
        }
    }

    @Test func `the size is computed as in the RFC, to the byte`() async throws {
        try await withHTTP2Scenario(reply: { .ok($0.path) }) { (server, session) async throws in
            let headers = [
                "Cookie": "a=b; c=\(String(repeating: "d", count: 30)); e=f", "X-Space": "  a  ", "Connection": "x-left",
                "X-Left": "?",
            ]
            let request = URLRequest(server.url("/same"), method: "PUT", headers: headers, body: Data("body".utf8))
            _ = try await session.text(request)
            let size = server.requests[0].fields.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count + 32 }
            server.run(.settings([.maxHeaderListSize: UInt32(size)]), on: 0)
            try await server.settle()
            _ = try await session.text(request)
            server.run(.settings([.maxHeaderListSize: UInt32(size - 1)]), on: 0)
            try await server.settle()
            await expectFailure(.dataLengthExceedsMaximum) { try await session.text(request) }
            #expect(server.requests.count == 2 && server.connectionCount == 1)
        }
    }

    @Test func `there is no limit before the server's SETTINGS arrive`() async throws {
        try await withHTTP2Scenario(
            greeting: { _ in
                [.policy(.ackSettings, false), .awaitFrame(.headers), .settings([.maxHeaderListSize: 500]), .settingsAck]
            },
            // The client knows the limit when the response arrives.
            reply: { [.awaitFrame(.settings, .ack)] + .ok($0.path) }
        ) { (server, session) async throws in
            let request = URLRequest(server.url(), headers: ["X-Long": String(repeating: "x", count: 1_000)])
            #expect(try await session.text(request).text == "/")
            await expectFailure(.dataLengthExceedsMaximum) { try await session.text(request) }
            server.run(.settings([.maxHeaderListSize: 5_000]), on: 0)
            try await server.settle()
            #expect(try await session.text(request).text == "/")
        }
    }
}
