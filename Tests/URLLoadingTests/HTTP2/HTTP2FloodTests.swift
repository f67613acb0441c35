// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Servers that endlessly send frames that cost the server little.
@Suite(.timeLimit(.minutes(2)))
struct HTTP2FloodTests {
    struct Flood: Sendable, CustomTestStringConvertible {
        let testDescription: String
        /// Whether the whole connection must end, not only the load.
        var endsConnection = true
        let steps: @Sendable (_ stream: Int) -> [HTTP2Step]

        init(_ name: String, endsConnection: Bool = true, _ steps: @escaping @Sendable (_ stream: Int) -> [HTTP2Step]) {
            testDescription = name
            self.endsConnection = endsConnection
            self.steps = steps
        }

        /// Sends the same frame endlessly, a hundred copies per write.
        static func endless(
            _ kind: HTTP2Frame.Kind, flags: HTTP2Frame.Flags = [], stream: Int = 0, _ payload: [UInt8] = []
        ) -> HTTP2Step {
            let frame = HTTP2Step.bytes(of: kind, flags: flags, stream: stream, payload)
            return .repeating(.max, .write([[UInt8]](repeating: frame, count: 100).flatMap { $0 }))
        }
    }

    private static let field = HPACKBytes.literals([("x-field", String(repeating: "v", count: 1000))])
    private static let head = HPACKBytes.index(8)

    private static let floods: [Flood] = [
        // CVE-2024-27316 and others.
        Flood("CONTINUATION with fields") {
            [.frame(.headers, stream: $0, head), Flood.endless(.continuation, stream: $0, field)]
        },
        Flood("empty CONTINUATION") { [.frame(.headers, stream: $0, head), Flood.endless(.continuation, stream: $0)] },
        // CVE-2019-9512, 9515 and 9518.
        Flood("PING") { _ in [Flood.endless(.ping, [1, 2, 3, 4, 5, 6, 7, 8])] },
        Flood("PING whose acknowledgements are not read") { _ in [.stopReading, Flood.endless(.ping, [1, 2, 3, 4, 5, 6, 7, 8])] },
        Flood("PING with DATA, and acknowledgements that are not read") {
            let pair = HTTP2Step.bytes(of: .data, stream: $0, [0x61]) + HTTP2Step.bytes(of: .ping, [1, 2, 3, 4, 5, 6, 7, 8])
            return [.head(), .stopReading, .repeating(.max, .write([[UInt8]](repeating: pair, count: 100).flatMap { $0 }))]
        },
        Flood("SETTINGS") { _ in [Flood.endless(.settings)] },
        Flood("SETTINGS whose acknowledgements are not read") { _ in
            [.stopReading, Flood.endless(.settings, [0, 3, 0, 0, 0, 100])]
        },
        Flood("SETTINGS that change the windows") { _ in
            let values = [4_000, 65_535].map { HTTP2Step.bytes(of: .settings, [0, 4] + HTTP2Step.bytes(of: UInt32($0))) }
            return [.repeating(.max, .write([[[UInt8]]](repeating: values, count: 50).flatMap { $0 }.flatMap { $0 }))]
        },
        Flood("empty DATA") { [.head(), Flood.endless(.data, stream: $0)] },
        Flood("DATA with only padding") { [.head(), Flood.endless(.data, flags: .padded, stream: $0, [3, 0, 0, 0])] },
        Flood("RST_STREAM for a closed stream") {
            [.resetStream(.cancel), Flood.endless(.resetStream, stream: $0, [0, 0, 0, 8])]
        },
        Flood("interim responses", endsConnection: false) {
            [Flood.endless(.headers, flags: .endHeaders, stream: $0, HPACKBytes.literals([(":status", "103")]))]
        },
        Flood("PRIORITY", endsConnection: false) { [Flood.endless(.priority, stream: $0, [0, 0, 0, 0, 1])] },
        Flood("frames of an unknown type", endsConnection: false) { _ in
            let frame: [UInt8] = [0, 0, 0, 0xEE, 0, 0, 0, 0, 0]
            return [.repeating(.max, .write([[UInt8]](repeating: frame, count: 100).flatMap { $0 }))]
        },
        Flood("WINDOW_UPDATE", endsConnection: false) { _ in [Flood.endless(.windowUpdate, [0, 0, 0, 1])] },
    ]

    /// The error codes with which a load may fail under a flood.
    private static let floodErrors = brokenProtocol.union([.dataLengthExceedsMaximum, .timedOut])

    @Test(arguments: floods) func `a flood fails its load, in bounded memory`(flood: Flood) async throws {
        try await withHTTP2Scenario(
            configure: { $0.timeoutIntervalForResource = 10 },
            reply: { $0.path == "/flood" ? [.awaitRequestEnd] + flood.steps($0.stream) : .ok("good") }
        ) { (server, session) async throws in
            #expect(try await session.text(server.url("/good")) == "good")
            let before = try ProcessProbe.residentBytes()
            await expectFailure(in: Self.floodErrors, flood.testDescription) { try await session.text(server.url("/flood")) }
            let request = try #require(server.requests.first { $0.path == "/flood" })
            if flood.endsConnection { try await server.waitForEnd(of: request.connection) }
            let codes = server.frames(.goAway, on: request.connection).compactMap(\.errorCode)
            #expect(codes.allSatisfy { [.enhanceYourCalm, .protocolError, .flowControlError].contains($0) }, "\(codes)")
            #expect(try ProcessProbe.residentBytes() - before < 128 << 20)
            #expect(server.requests.count { $0.path == "/flood" } == 1)
            do {
                #expect(try await session.text(server.url("/good")) == "good")
            } catch  where !flood.endsConnection {
                // The rest of the flood has ended the connection, and with it the new load.
                try await server.waitForEnd(of: request.connection)
                #expect(try await session.text(server.url("/good")) == "good")
            }
        }
    }

    /// The field block has 16 KiB on the wire, and decodes to more than 16 MiB (RFC 7541, section 7.3).
    @Test func `a small field block that decodes to a huge list fails the load, in bounded memory`() async throws {
        let entry = HPACKBytes.indexed([("x-bomb", String(repeating: "b", count: 4000))])
        let bomb = HPACKBytes.index(8) + entry + [[UInt8]](repeating: HPACKBytes.index(62), count: 12_000).flatMap { $0 }
        try await withHTTP2Scenario(
            reply: { $0.path == "/good" ? .ok("good") : [.awaitRequestEnd, .block(bomb, ends: true)] }
        ) { (server, session) async throws in
            let before = try ProcessProbe.residentBytes()
            for _ in 0..<10 {
                await expectFailure(in: Self.floodErrors) { try await session.text(server.url("/bomb")) }
            }
            for request in server.requests {
                let verdict = try await server.verdict(on: request.stream, of: request.connection)
                #expect(verdict != nil)
            }
            #expect(try ProcessProbe.residentBytes() - before < 64 << 20)
            #expect(try await session.text(server.url("/good")) == "good")
        }
    }

    /// Each response has about seventy bytes on the wire, and decodes to 240,000 bytes.
    @Test func `informational responses that decode to huge lists fail the load, in bounded memory`() async throws {
        let status = HPACKBytes.literals([(":status", "103")])
        let entry = HPACKBytes.indexed([("x-bomb", String(repeating: "b", count: 4000))])
        let large = status + [[UInt8]](repeating: HPACKBytes.index(62), count: 60).flatMap { $0 }
        try await withHTTP2Scenario(
            reply: { request in
                guard request.path != "/good" else { return .ok("good") }
                return [.awaitRequestEnd, .block(status + entry), .repeating(10, .block(large))] + .ok("drowned")
            }
        ) { (server, session) async throws in
            let before = try ProcessProbe.residentBytes()
            for _ in 0..<2 { await expectFailure(in: Self.floodErrors) { try await session.text(server.url("/bomb")) } }
            #expect(try ProcessProbe.residentBytes() - before < 64 << 20)
            #expect(try await session.text(server.url("/good")) == "good")
        }
    }

    /// HTTP/2 has the same limits for the head of a response as HTTP/1.1.
    @Test(arguments: ["a value of 300,000 bytes", "400 fields of 1,000 bytes", "20,000 fields"])
    func `a head beyond the limit fails only its load, and the client resets the stream`(row: String) async throws {
        let large: [(String, String)] =
            switch row {
            case "20,000 fields": (0..<20_000).map { ("x-\($0)", "v") }
            case "400 fields of 1,000 bytes": (0..<400).map { ("x-\($0)", String(repeating: "v", count: 1000)) }
            default: [("x-large", String(repeating: "v", count: 300_000))]
            }
        // The last field is added to the dynamic table, which the next head refers to.
        let block = HPACKBytes.literals([(":status", "200")] + large) + HPACKBytes.indexed([("x-kept", "kept")])
        try await withHTTP2Scenario(
            reply: { request in
                switch request.path {
                case "/good": [.block(HPACKBytes.index(8) + HPACKBytes.index(62)), .data("good")]
                case "/beside": [.gate("beside")] + .ok("beside")
                default: [.awaitRequestEnd, .block(block), .data("hello")]
                }
            }
        ) { (server, session) async throws in
            let url = server.url("/beside")
            async let beside = session.text(url)
            try await server.reached("beside")
            await expectFailure(.dataLengthExceedsMaximum) { try await session.text(server.url("/large")) }
            let request = try #require(server.requests.first { $0.path == "/large" })
            #expect(try await server.verdict(on: request.stream, of: request.connection)?.kind == .resetStream)
            let (good, response) = try await session.text(URLRequest(server.url("/good")))
            #expect(good == "good" && response.value(forHTTPHeaderField: "x-kept") == "kept")
            server.open("beside")
            #expect(try await beside == "beside" && server.connectionCount == 1)
            if let limit = server.setting(.maxHeaderListSize) { #expect(limit <= 1 << 20) }
        }
    }

    @Test func `a field block larger than a megabyte ends the connection`() async throws {
        let block = HPACKBytes.literals([(":status", "200"), ("x-large", String(repeating: "v", count: 1_100_000))])
        try await withHTTP2Scenario(
            reply: { $0.path == "/good" ? .ok("good") : [.awaitRequestEnd, .block(block), .data("hello")] }
        ) { (server, session) async throws in
            await expectFailure(in: Self.floodErrors) { try await session.text(server.url("/large")) }
            try await server.waitForEnd(of: server.requests[0].connection)
            #expect(try await session.text(server.url("/good")) == "good")
        }
    }

    @Test func `thousands of refused streams are retried without a flood of requests`() async throws {
        let seen = Watched<Set<String>>([])
        try await withHTTP2Scenario(
            greeting: { _ in [.settings([.maxConcurrentStreams: 100])] },
            reply: { request in
                let isFirst = request.path != "/good" && seen.change { $0.insert(request.path).inserted }
                return isFirst ? [.resetStream(.refusedStream)] : .ok(request.path)
            }
        ) { (server, session) async throws in
            #expect(try await session.text(server.url("/good")) == "/good")
            try await withThrowingTaskGroup(of: Bool.self) { group in
                for number in 0..<3_000 {
                    let url = server.url("/\(number)")
                    group.addTask { try await session.text(url) == "/\(number)" }
                }
                for try await isAnswered in group { #expect(isAnswered) }
            }
            #expect(server.connectionCount == 1)
        }
    }

    @Test func `a head of 60,000 bytes is accepted`() async throws {
        let fields = (0..<60).map { ("x-\($0)", String(repeating: "v", count: 1000)) }
        try await withHTTP2Scenario(reply: { _ in .ok("body", fields) }) { (server, session) async throws in
            let (text, response) = try await session.text(URLRequest(server.url()))
            #expect(text == "body" && response.value(forHTTPHeaderField: "x-59")?.count == 1000)
        }
    }

    @Test func `a flooding server does not affect loads from another`() async throws {
        try await withHTTP2Scenario(
            reply: { [.awaitRequestEnd, .head(), Flood.endless(.data, stream: $0.stream)] }
        ) { (bad, session) async throws in
            try await withHTTP2Server(identity: TestCertificates.shared.get().valid, reply: { .ok($0.path) }) {
                (good) async throws in
                let url = bad.url()
                async let failure: URLError? = expectFailure(in: Self.floodErrors) { try await session.text(url) }
                for number in 0..<50 { #expect(try await session.text(good.url("/\(number)")) == "/\(number)") }
                _ = await failure
                #expect(good.connectionCount == 1)
            }
        }
    }
}
