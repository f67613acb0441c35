// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Servers that endlessly send what costs them little.
@Suite(.timeLimit(.minutes(3)))
struct HTTP3FloodTests {
    struct Flood: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let codes: Set<URLError.Code>
        let steps: [HTTP3Step]

        init(_ name: String, _ codes: Set<URLError.Code>, _ steps: HTTP3Step...) {
            testDescription = name
            self.codes = codes
            self.steps = steps
        }
    }

    private static func many(_ bytes: [UInt8], _ count: Int = 1_000) -> [UInt8] {
        [[UInt8]](repeating: bytes, count: count).flatMap { $0 }
    }

    private static func endless(_ bytes: [UInt8]) -> HTTP3Step { .repeating(.max, [.write(many(bytes))]) }

    private static let challenge: [UInt8] = [0x1A] + Array(1...8)

    /// Floods within a response: the load fails.
    private static let responses: [Flood] = [
        Flood("interim responses", [.badServerResponse], endless(HTTP3Bytes.headers([(":status", "103")]))),
        Flood(
            "interim responses with fields", [.badServerResponse],
            .repeating(.max, [.head(103, [("x", String(repeating: "v", count: 10_000))])])),
        Flood("empty DATA", [.badServerResponse, .timedOut], .head(), endless(HTTP3Bytes.frame(.data))),
        Flood("unknown frames", [.badServerResponse, .timedOut], endless(HTTP3Bytes.frame(0x21))),
        Flood("an unknown frame without end", [.badServerResponse, .timedOut], .frame(0x21, [], length: 1 << 40), endless([0])),
        Flood(
            "unknown frames after the head", [.badServerResponse, .timedOut], .head(), endless(HTTP3Bytes.frame(0x21, [1, 2, 3]))),
        Flood(
            "a field section without end", [.dataLengthExceedsMaximum, .badServerResponse],
            .frame(.headers, [0, 0, 0xD9], length: 1 << 30), endless([0xDF])),
    ]

    @Test(arguments: responses) func `a flood within a response fails its load, in bounded memory`(flood: Flood) async throws {
        try await withHTTP3Scenario(
            configure: { $0.timeoutIntervalForResource = 10 },
            reply: { $0.path == "/flood" ? [.awaitRequestEnd] + flood.steps : .ok("good") }
        ) { (server, session) async throws in
            #expect(try await session.text(server.url("/good")) == "good")
            let before = try ProcessProbe.residentBytes()
            await expectFailure(in: flood.codes, flood.testDescription) { try await session.text(server.url("/flood")) }
            #expect(try ProcessProbe.residentBytes() - before < 64 << 20)
            #expect(server.requests.count { $0.path == "/flood" } == 1)
            #expect(try await session.text(server.url("/good")) == "good")
        }
    }

    /// Floods that concern no request: the connection ends, or continues.
    private static let connections: [Flood] = [
        Flood("PING", [], .packet(many([0x01]), times: .max)),
        Flood("PADDING", [], .packet(many([0x00]), times: .max)),
        Flood("PATH_CHALLENGE", [], .packet(many(challenge, 100), times: .max)),
        Flood("MAX_DATA", [], .packet(many([0x10, 0x01], 400), times: .max)),
        Flood("DATA_BLOCKED", [], .packet(many([0x14, 0x01], 400), times: .max)),
        Flood("NEW_TOKEN", [], .packet([0x07, 0x44, 0x00] + [UInt8](repeating: 1, count: 1_024), times: .max)),
        Flood("unknown frames on the control stream", [], .repeating(.max, [.write(many(HTTP3Bytes.frame(0x21)), on: .control)])),
        Flood(
            "bytes on a stream of an unknown type", [], .write([0x21], on: .uni(0)),
            .repeating(.max, [.write(many([0]), on: .uni(0))])),
        Flood("GOAWAY", [], .repeating(.max, [.write(many(HTTP3Bytes.goAway((1 << 62) - 4)), on: .control)])),
        Flood("capacities of the table", [], .write([2], on: .encoder), .repeating(.max, [.write(many([0x20]), on: .encoder)])),
        Flood(
            "entries of the table", [], .write([2] + HTTP3Bytes.insertion(capacity: 4_096, "a", "b"), on: .encoder),
            .repeating(.max, [.write(many(HTTP3Bytes.insertion("a", "b")), on: .encoder)])),
    ]

    /// The flood costs only time of the processor, which the client limits by ending the connection.
    @Test(arguments: connections) func `a flood beside requests harms no other connection, in bounded memory`(
        flood: Flood
    ) async throws {
        try await withHTTP3Scenario(
            configure: { $0.timeoutIntervalForResource = 3 },
            reply: { $0.path == "/flood" ? flood.steps : .ok("good") }
        ) { (server, session) async throws in
            try await withHTTP3Scenario(reply: { _ in .ok("other") }) { (other, _) async throws in
                let before = try ProcessProbe.residentBytes()
                let url = server.url("/flood")
                async let flooded: URLError? = expectFailure(
                    in: [.badServerResponse, .networkConnectionLost, .timedOut], flood.testDescription
                ) { try await session.text(url) }
                _ = try await server.head(0)
                for number in 0..<5 { #expect(try await session.text(other.url("/\(number)")) == "other") }
                _ = await flooded
                #expect(try ProcessProbe.residentBytes() - before < 64 << 20)
                #expect(try await session.text(server.url("/good")) == "good")
            }
        }
    }

    /// Each connection ID replaces one before; the client has to say so each time (CVE-2024-22189).
    @Test func `connection IDs that retire each other end the connection, or change nothing`() async throws {
        let steps: [HTTP3Step] = (8..<3_000).map { number in
            let id = HTTP2Step.bytes(of: UInt64(number))
            let sequence = HTTP3Bytes.integer(UInt64(number), size: 4)
            return .packet([0x18] + sequence + sequence + [8] + id + id + id)
        }
        try await withHTTP3Scenario(
            configure: { $0.timeoutIntervalForResource = 8 },
            reply: { $0.path == "/flood" ? steps + .ok("flooded") : .ok("good") }
        ) { (server, session) async throws in
            let before = try ProcessProbe.residentBytes()
            do {
                #expect(try await session.text(server.url("/flood")) == "flooded")
            } catch let error as URLError {
                #expect([.badServerResponse, .networkConnectionLost, .timedOut].contains(error.code), "\(error)")
            }
            #expect(try ProcessProbe.residentBytes() - before < 32 << 20)
            #expect(try await session.text(server.url("/good")) == "good")
        }
    }

    @Test func `streams that the server opens and resets change nothing`() async throws {
        try await withHTTP3Scenario(
            reply: { request in
                guard request.path == "/flood" else { return .ok("good") }
                let flood = (0..<60).flatMap { [HTTP3Step.write([0x21, 1, 2], on: .uni($0)), .resetNow(0x100, on: .uni($0))] }
                return flood + .ok("flooded")
            }
        ) { (server, session) async throws in
            #expect(try await session.text(server.url("/flood")) == "flooded")
            #expect(try await session.text(server.url("/good")) == "good")
            #expect(server.connectionCount == 1)
        }
    }

    /// HTTP/3 has the same limits for the head of a response as HTTP/2 and HTTP/1.1.
    @Test(arguments: ["1,200 fields of 1,000 bytes", "400 fields of 1,000 bytes", "20,000 fields"])
    func `a head beyond the limit fails only its load, and the client resets the stream`(row: String) async throws {
        let large: [(String, String)] =
            switch row {
            case "20,000 fields": (0..<20_000).map { ("x-\($0)", "v") }
            case "400 fields of 1,000 bytes": (0..<400).map { ("x-\($0)", String(repeating: "v", count: 1_000)) }
            default: (0..<1_200).map { ("x-\($0)", String(repeating: "v", count: 1_000)) }
            }
        try await withHTTP3Scenario(
            reply: { request in
                switch request.path {
                case "/beside": [.gate("beside")] + .ok("beside")
                case "/large": .ok("large", large)
                case "/interim": [.awaitRequestEnd, .head(103, large)] + .ok("large")
                case "/trailers": [.awaitRequestEnd, .head(), .data("body", ends: false), .headers(large, ends: true)]
                default: .ok("good")
                }
            }
        ) { (server, session) async throws in
            let url = server.url("/beside")
            async let beside = session.text(url)
            try await server.reached("beside")
            let before = try ProcessProbe.residentBytes()
            for path in ["/large", "/interim", "/trailers"] {
                await expectFailure(.dataLengthExceedsMaximum, in: path) { try await session.text(server.url(path)) }
                let request = try #require(server.requests.last { $0.path == path })
                let code = try await server.waitForReset(of: request.stream)
                #expect(code == HTTP3Code.excessiveLoad.rawValue || code == HTTP3Code.requestCancelled.rawValue, "\(path)")
            }
            #expect(try ProcessProbe.residentBytes() - before < 64 << 20)
            #expect(try await session.text(server.url("/good")) == "good")
            server.open("beside")
            #expect(try await beside == "beside")
            #expect(server.connectionCount == 1)
        }
    }

    /// The library accepts no value of more than 64 KiB, and ends the connection.
    @Test(arguments: [70_000, 300_000, 1_200_000]) func `a value beyond the library's limit fails its load, in bounded memory`(
        size: Int
    ) async throws {
        try await withHTTP3Scenario(
            reply: { $0.path == "/good" ? .ok("good") : .ok("large", [("x-large", String(repeating: "v", count: size))]) }
        ) { (server, session) async throws in
            #expect(try await session.text(server.url("/good")) == "good")
            let before = try ProcessProbe.residentBytes()
            await expectFailure(.dataLengthExceedsMaximum, .badServerResponse) { try await session.text(server.url("/large")) }
            #expect(try ProcessProbe.residentBytes() - before < 32 << 20)
            #expect(server.requests.count { $0.path == "/large" } == 1)
            #expect(try await session.text(server.url("/good")) == "good")
        }
    }

    /// The field section has some bytes on the wire, and decodes to more than 16 MiB (RFC 9204, section 7.1).
    @Test func `a small field section that decodes to a huge list fails the load, in bounded memory`() async throws {
        let entry = HTTP3Bytes.insertion(capacity: 4_096, "x-bomb", String(repeating: "b", count: 4_000))
        let bomb = [2, 0, 0xD9] + [UInt8](repeating: 0x80, count: 12_000)
        try await withHTTP3Scenario(
            greeting: { _ in [.settings(), .write([2] + entry, on: .encoder)] },
            reply: { $0.path == "/good" ? .ok("good") : [.awaitRequestEnd, .section(bomb, ends: true)] }
        ) { (server, session) async throws in
            let before = try ProcessProbe.residentBytes()
            for _ in 0..<10 { await expectFailure(.dataLengthExceedsMaximum) { try await session.text(server.url("/bomb")) } }
            #expect(try ProcessProbe.residentBytes() - before < 64 << 20)
            #expect(try await session.text(server.url("/good")) == "good")
        }
    }

    @Test func `a field section that waits for entries of the table times out, and its connection continues`() async throws {
        try await withHTTP3Scenario(
            reply: { $0.path == "/good" ? .ok("good") : [.awaitRequestEnd, .section(HTTP3Bytes.dynamic(entry: 0), ends: true)] }
        ) { (server, session) async throws in
            var request = URLRequest(server.url("/blocked"))
            request.timeoutInterval = 1
            await expectFailure(.timedOut) { try await session.text(request) }
            #expect(try await session.text(server.url("/good")) == "good")
            #expect(server.connectionCount == 1)
        }
    }

    @Test func `a field section that has waited for an entry of the table is read when it comes`() async throws {
        let section = [2, 0, 0xD9, 0x80]
        try await withHTTP3Scenario(
            reply: { _ in
                [
                    .awaitRequestEnd, .section(section.map { UInt8($0) }), .data("late"), .awaitDelivery(10),
                    .write([2] + HTTP3Bytes.insertion(capacity: 4_096, "x-late", "came"), on: .encoder),
                ]
            }
        ) { (server, session) async throws in
            let (text, response) = try await session.text(URLRequest(server.url()))
            #expect(text == "late" && response.value(forHTTPHeaderField: "x-late") == "came")
        }
    }
}
