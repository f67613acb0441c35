// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// An independent server (Python's websockets): in cleartext, over TLS, and with compression.
@Suite(.timeLimit(.minutes(1)))
struct RealWebSocketTests {
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    private func withServer(
        delegate: WebSocketRecorder = WebSocketRecorder(), test: (WebSocketsServer, URLSession) async throws -> Void
    ) async throws {
        let server = try WebSocketsServer.start(certificates.valid)
        defer { server.stop() }
        try await withSession(delegate: delegate) {
            $0.tlsTrustRoots = [certificates.root]
        } test: { session in
            try await test(server, session)
        }
    }

    private static let messages: [WireMessage] =
        WebSocketMessageTests.samples + [
            .binary(ScriptedFile.pattern(1_000_000)), .text(String(repeating: "compress me, ", count: 50_000)),
            .binary([UInt8](repeating: 0, count: 300_000)), .text("short"), .text("short"),
        ]

    @Test(arguments: WebSocketsServer.Access.allCases) func `messages are echoed unchanged`(
        access: WebSocketsServer.Access
    ) async throws {
        let recorder = WebSocketRecorder()
        try await withServer(delegate: recorder) { (server, session) async throws in
            try await converse(offers: true, access, server, session, recorder)
            try await converse(offers: false, access, server, session, recorder)
        }
    }

    private func converse(
        offers: Bool, _ access: WebSocketsServer.Access, _ server: WebSocketsServer, _ session: URLSession,
        _ recorder: WebSocketRecorder
    ) async throws {
        let path = "/echo/\(offers)"
        let task = session.webSocketTask(with: server.url(path, access), protocols: ["chat"])
        task.offersCompression = offers
        task.resume()
        for message in Self.messages {
            try await task.send(URLSessionWebSocketTask.Message(message))
            let isRight = try await task.next() == message
            #expect(isRight, "\(message.payload.count) bytes, \(access)")
        }
        try await task.ping()
        task.cancel(with: .normalClosure, reason: Data("done".utf8))
        let record = try await recorder.completion(of: task)
        #expect(record.error == nil && record.closings.map(\.code) == [1000] && record.protocols == ["chat"])
        let ends = try await server.ends(of: path)
        let end = try #require(ends.first)
        #expect(end.code == 1000 && end.reason == "done")
        let isCompressed = offers && access != .clear && access != .secure
        #expect(end.extensions.isEmpty == !isCompressed, "\(end.extensions)")
        if isCompressed {
            let words = ["remote", "local"].map { "\($0)_no_context_takeover=\(access == .noContextTakeover ? "True" : "False")" }
            for word in words { #expect(end.extensions.contains(word), "\(end.extensions)") }
        }
        if isCompressed, access == .small { #expect(end.extensions.contains("local_max_window_bits=9"), "\(end.extensions)") }
    }

    @Test(arguments: [WebSocketsServer.Access.compressed, .noContextTakeover, .small])
    func `compression sends fewer bytes`(access: WebSocketsServer.Access) async throws {
        let recorder = WebSocketRecorder()
        try await withServer(delegate: recorder) { (server, session) async throws in
            let task = session.webSocketTask(with: server.url("/echo", access))
            task.offersCompression = true
            task.resume()
            let message = WireMessage.text(String(repeating: "0123456789", count: 10_000))
            for _ in 0..<5 {
                try await task.send(URLSessionWebSocketTask.Message(message))
                #expect(try await task.next() == message)
            }
            task.cancel(with: .normalClosure, reason: nil)
            let one = try #require(try await recorder.completion(of: task).metrics?.transactionMetrics.first)
            #expect(one.countOfRequestBodyBytesSent < 50_000 && one.countOfResponseBodyBytesReceived < 50_000)
        }
    }

    @Test(arguments: [1000, 1001, 1008, 1011, 3000, 4999]) func `the server's close code is reported`(code: Int) async throws {
        let recorder = WebSocketRecorder()
        try await withServer(delegate: recorder) { (server, session) async throws in
            for access in [WebSocketsServer.Access.clear, .secure] {
                let task = session.webSocketTask(with: server.url("/close/\(code)/because", access))
                task.resume()
                let record = try await recorder.completion(of: task)
                #expect(record.closings == [WebSocketRecorder.Closing(code: code, reason: "because")])
                #expect(record.error == nil && task.closeCode.rawValue == code)
            }
            let ends = try await server.ends(of: "/close/\(code)/because", count: 2)
            #expect(ends.map(\.code) == [code, code])
        }
    }

    @Test func `the app's close code reaches the server`() async throws {
        let recorder = WebSocketRecorder()
        try await withServer(delegate: recorder) { (server, session) async throws in
            for (code, arrives) in [(1000, 1000), (1001, 1001), (1011, 1011), (4999, 4999), (1005, 1005), (0, 1005)] {
                let task = session.webSocketTask(with: server.url("/wait/\(code)"))
                task.resume()
                try await recorder.opening(of: task)
                task.cancel(with: try #require(.init(rawValue: code)), reason: nil)
                try await recorder.completion(of: task)
                #expect(try await server.ends(of: "/wait/\(code)").map(\.code) == [arrives])
            }
        }
    }

    @Test(arguments: [WebSocketsServer.Access.clear, .secure]) func `two hundred concurrent connections echo their own messages`(
        access: WebSocketsServer.Access
    ) async throws {
        let recorder = WebSocketRecorder()
        try await withServer(delegate: recorder) { (server, session) async throws in
            let tasks = (0..<200).map { _ in session.webSocketTask(with: server.url("/echo/many", access)) }
            try await withThrowingTaskGroup(of: Bool.self) { group in
                for (number, task) in tasks.enumerated() {
                    task.resume()
                    group.addTask {
                        for round in 0..<5 {
                            try await task.send(.string("\(number) \(round)"))
                            guard try await task.nextText() == "\(number) \(round)" else { return false }
                        }
                        return true
                    }
                }
                for try await isRight in group { #expect(isRight) }
            }
            for task in tasks { task.cancel(with: .normalClosure, reason: nil) }
            for task in tasks { #expect(try await recorder.completion(of: task).error == nil) }
            let ends = try await server.ends(of: "/echo/many", count: 200)
            #expect(ends.allSatisfy { $0.code == 1000 })
        }
    }

    @Test(arguments: WebSocketsServer.Access.allCases) func `a thousand messages are received on one connection, in order`(
        access: WebSocketsServer.Access
    ) async throws {
        try await withServer { (server, session) async throws in
            let task = session.webSocketTask(with: server.url("/count/1000", access))
            task.offersCompression = true
            task.resume()
            for number in 0..<1_000 { #expect(try await task.nextText() == "\(number)") }
            let writer = Task { for number in 0..<1_000 { try await task.send(.string("echo \(number)")) } }
            for number in 0..<1_000 { #expect(try await task.nextText() == "echo \(number)") }
            try await writer.value
        }
    }

    @Test(arguments: [WebSocketsServer.Access.compressed, .noContextTakeover, .small])
    func `a decompression bomb is limited to the maximum size of decoded bytes`(access: WebSocketsServer.Access) async throws {
        let recorder = WebSocketRecorder()
        try await withServer(delegate: recorder) { (server, session) async throws in
            // Exactly the maximum is received.
            let whole = session.webSocketTask(with: server.url("/zeros/1048576", access))
            whole.offersCompression = true
            whole.resume()
            #expect(try await whole.next().payload.count == 1_048_576)
            let path = "/zeros/100000000"
            let before = try ProcessProbe.residentBytes()
            let task = session.webSocketTask(with: server.url(path, access))
            task.offersCompression = true
            task.resume()
            await expectFailure(.dataLengthExceedsMaximum) { try await task.receive() }
            #expect(try await recorder.completion(of: task).code == .dataLengthExceedsMaximum)
            #expect(try await server.ends(of: path).map(\.code) == [1009])
            #expect(try ProcessProbe.residentBytes() - before < 64 << 20)
        }
    }
}
