// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

private let block = [UInt8](repeating: 0x61, count: 65_536)

/// Windows of streams and connections, in both directions (RFC 9113, sections 5.2 and 6.9).
@Suite(.timeLimit(.minutes(2)))
struct HTTP2FlowControlTests {
    /// Responds to `/large` with a gigabyte, and to any other path with the path itself.
    private static func reply(_ request: HTTP2Request) -> [HTTP2Step] {
        request.path == "/large" ? [.head(), .data(block, times: 16_384)] : .ok(request.path)
    }

    /// Expects that the server sends no more on a stream than its window, and that other streams continue.
    private func expectBackpressure(
        _ task: URLSessionTask, of server: HTTP2ScriptedServer, _ session: URLSession, _ recorder: EventRecorder
    ) async throws {
        let stream = try #require(server.requests.first { $0.path == "/large" }).stream
        let first = try await server.blocked(stream: stream)
        for number in 0..<20 { #expect(try await session.text(server.url("/\(number)")) == "/\(number)") }
        try await server.settle()
        let sent = max(first, try await server.blocked(stream: stream))
        let window = server.setting(.initialWindowSize) ?? 65_535
        let widened = server.frames(.windowUpdate).filter { $0.stream == stream }.compactMap(\.increment).reduce(0, +)
        let taken = recorder.record(of: task).body.count
        #expect(sent <= window + widened)
        // After a slow handshake, the window is large, but at most 32 MiB; the body is a gigabyte.
        #expect(sent - taken <= 32 << 20, "\(sent) sent, \(taken) taken, a window of \(window)")
        #expect(server.connectionCount == 1)
    }

    @Test func `a suspended task receives no more than its window and does not block other streams`() async throws {
        var answers = EventRecorder.Answers()
        answers.data = { task, _ in if task.state == .running { task.suspend() } }
        let recorder = EventRecorder(answers)
        try await withHTTP2Scenario(delegate: recorder, reply: Self.reply) { (server, session) async throws in
            let task = session.dataTask(with: server.url("/large"))
            task.resume()
            try await recorder.wait(for: task) { !$0.body.isEmpty }
            try await expectBackpressure(task, of: server, session, recorder)
            task.cancel()
            try await recorder.completion(of: task)
        }
    }

    @Test func `a response that awaits its disposition receives no more than its window and does not block other streams`()
        async throws
    {
        let isAllowed = Watched(false)
        var answers = EventRecorder.Answers()
        answers.response = { _, response in
            guard response.url?.path == "/large" else { return .allow }
            _ = try? await isAllowed.value { $0 ? true : nil }
            return .cancel
        }
        let recorder = EventRecorder(answers)
        try await withHTTP2Scenario(delegate: recorder, reply: Self.reply) { (server, session) async throws in
            let task = session.dataTask(with: server.url("/large"))
            task.resume()
            try await recorder.wait(for: task) { $0.letters.contains("R") }
            try await expectBackpressure(task, of: server, session, recorder)
            isAllowed.change { $0 = true }
            try await recorder.completion(of: task)
        }
    }

    @Test func `a delegate that does not return limits only its own task's stream`() async throws {
        let resumeDelegate = DispatchSemaphore(value: 0)
        let isFirst = Watched(true)
        var answers = EventRecorder.Answers()
        answers.data = { _, _ in
            let waits = isFirst.change { value in
                defer { value = false }
                return value
            }
            if waits { resumeDelegate.wait() }
        }
        let recorder = EventRecorder(answers)
        try await withHTTP2Scenario(delegate: recorder, reply: Self.reply) { (server, session) async throws in
            let task = session.dataTask(with: server.url("/large"))
            task.resume()
            try await recorder.wait(for: task) { !$0.body.isEmpty }
            let url = server.url("/beside")
            let stream = try #require(server.requests.first).stream
            let sent = try await server.blocked(stream: stream)
            // The delegate queue is blocked, but requests are still sent.
            async let beside = session.text(url)
            _ = try await server.request(1)
            #expect(sent - recorder.record(of: task).body.count <= 32 << 20)
            resumeDelegate.signal()
            #expect(try await beside == "/beside")
            task.cancel()
            try await recorder.completion(of: task)
            #expect(server.connectionCount == 1)
        }
    }

    @Test func `ten suspended tasks leave enough window for another`() async throws {
        var answers = EventRecorder.Answers()
        answers.data = { task, _ in
            if task.state == .running, task.originalRequest?.url?.path == "/large" { task.suspend() }
        }
        let recorder = EventRecorder(answers)
        let content = ScriptedFile.pattern(3_000_000)
        try await withHTTP2Scenario(
            delegate: recorder, reply: { $0.path == "/whole" ? .ok(content) : Self.reply($0) }
        ) { (server, session) async throws in
            let tasks = (0..<10).map { _ in session.dataTask(with: server.url("/large")) }
            for task in tasks { task.resume() }
            for task in tasks { try await recorder.wait(for: task) { !$0.body.isEmpty } }
            for request in server.requests { _ = try await server.blocked(stream: request.stream) }
            #expect(try await session.data(from: server.url("/whole")).0 == Data(content))
            for task in tasks {
                task.cancel()
                try await recorder.completion(of: task)
            }
            #expect(server.connectionCount == 1)
        }
    }

    @Test(arguments: HTTP2Start.allCases) func `a large body arrives complete, with and without padding`(
        way: HTTP2Start
    ) async throws {
        let content = ScriptedFile.pattern(8_000_000)
        try await withHTTP2Scenario(
            way, reply: { request in [.head(), .data(content, padding: request.path == "/padded" ? 255 : nil)] }
        ) { (server, session) async throws in
            for path in ["/plain", "/padded"] {
                #expect(try await session.data(from: server.url(path)).0 == Data(content))
            }
            let (file, _) = try await session.download(from: server.url("/file"))
            #expect(try Data(contentsOf: file) == Data(content))
            try FileManager.default.removeItem(at: file)
        }
    }

    /// RFC 9113, section 6.9: DATA counts against the connection's window, even after its stream was reset.
    @Test func `DATA for cancelled loads returns its credit to the connection's window`() async throws {
        let content = ScriptedFile.pattern(2_000_000)
        let recorder = EventRecorder()
        try await withHTTP2Scenario(
            delegate: recorder, reply: { $0.path == "/whole" ? .ok(content) : Self.reply($0) }
        ) { (server, session) async throws in
            for _ in 0..<100 {
                let task = session.dataTask(with: server.url("/large"))
                task.resume()
                try await recorder.wait(for: task) { !$0.body.isEmpty }
                task.cancel()
                try await recorder.completion(of: task)
            }
            #expect(try await session.data(from: server.url("/whole")).0 == Data(content))
            #expect(server.connectionCount == 1)
        }
    }

    /// RFC 9113, section 6.9.1: a sender must not exceed the window that the receiver advertises.
    @Test func `DATA beyond a stream's window is a FLOW_CONTROL_ERROR`() async throws {
        let isAllowed = Watched(false)
        var answers = EventRecorder.Answers()
        answers.response = { _, _ in
            _ = try? await isAllowed.value { $0 ? true : nil }
            return .allow
        }
        let recorder = EventRecorder(answers)
        try await withHTTP2Scenario(
            delegate: recorder,
            reply: { _ in [.head(), .repeating(.max, .frame(.data, [UInt8](repeating: 0, count: 16_384)))] }
        ) { (server, session) async throws in
            let before = try ProcessProbe.residentBytes()
            let task = session.dataTask(with: server.url())
            task.resume()
            let request = try await server.head(0)
            let verdict = try await server.verdict(on: request.stream, of: request.connection)
            #expect(verdict?.errorCode == .flowControlError)
            isAllowed.change { $0 = true }
            let record = try await recorder.completion(of: task)
            #expect((record.error as? URLError).map { brokenProtocol.contains($0.code) } == true)
            #expect(try ProcessProbe.residentBytes() - before < 128 << 20)
        }
    }

    // MARK: Uploads

    /// The amount of DATA received, including padding.
    private func received(_ server: HTTP2ScriptedServer) -> Int { server.frames(.data).map(\.length).reduce(0, +) }

    private static let content = ScriptedFile.pattern(1_000_000)

    @Test func `an upload stops at a window of zero, and times out if it is never opened`() async throws {
        try await withHTTP2Scenario(
            greeting: { _ in [.settings([.initialWindowSize: 0])] },
            reply: { request in request.method == "GET" ? .ok("get") : [] }
        ) { (server, session) async throws in
            // The client knows the window after the first response.
            #expect(try await session.text(server.url()) == "get")
            var request = URLRequest(server.url("/up"), method: "PUT")
            request.timeoutInterval = 0.5
            await expectFailure(.timedOut) { try await session.upload(for: request, from: Data(Self.content)) }
            #expect(received(server) == 0)
            let head = try #require(server.requests.last)
            #expect(try await server.verdict(on: head.stream, of: 0)?.errorCode == .cancel)
            #expect(try await session.text(server.url()) == "get")
        }
    }

    /// RFC 9113, section 6.9.2: a change of SETTINGS_INITIAL_WINDOW_SIZE also changes open streams' windows, which may become negative.
    @Test func `an upload waits until a window that SETTINGS made negative is positive again`() async throws {
        try await withHTTP2Scenario(
            greeting: { _ in [.policy(.credit, false), .settings(), .windowUpdate(10_000_000)] },
            reply: { _ in
                [
                    .awaitBody(65_535), .settings([.initialWindowSize: 1000]), .awaitFrame(.settings, .ack, count: 2),
                    // The window was 1,000 - 65,535; this raises it to 0.
                    .windowUpdate(64_535), .gate("zero"), .windowUpdate(1), .awaitBody(65_536), .gate("one"),
                    .settings([.initialWindowSize: 101_000]), .awaitBody(165_536), .gate("raised"), .windowUpdate(900_000),
                ] + .ok("there")
            }
        ) { (server, session) async throws in
            let request = URLRequest(server.url(), method: "PUT")
            async let answer = session.upload(for: request, from: Data(Self.content)).0
            for (gate, count) in [("zero", 65_535), ("one", 65_536), ("raised", 165_536)] {
                try await server.reached(gate)
                try await server.settle()
                #expect(received(server) == count, "\(gate)")
                server.open(gate)
            }
            #expect(try await answer == Data("there".utf8))
            #expect(try await server.request(0).bodyHash == HTTP2Request.hash(of: Self.content))
        }
    }

    @Test func `an upload that exhausts the connection's window does not block loads without a body`() async throws {
        try await withHTTP2Scenario(
            greeting: { _ in [.policy(.credit, false), .settings([.initialWindowSize: 10_000_000])] },
            reply: { request in
                request.method == "GET"
                    ? .ok("get") : [.awaitBody(65_535), .gate("full"), .windowUpdate(10_000_000, stream: 0)] + .ok("put")
            }
        ) { (server, session) async throws in
            let request = URLRequest(server.url("/up"), method: "PUT")
            async let answer = session.upload(for: request, from: Data(Self.content)).0
            try await server.reached("full")
            #expect(try await session.text(server.url("/get")) == "get")
            try await server.settle()
            #expect(received(server) == 65_535)
            server.open("full")
            #expect(try await answer == Data("put".utf8))
            #expect(server.connectionCount == 1)
        }
    }

    @Test func `ten concurrent uploads share the connection's window, and all arrive complete`() async throws {
        let contents = (0..<10).map { ScriptedFile.pattern(700_000, seed: UInt8($0)) }
        try await withHTTP2Scenario(reply: { .ok($0.path) }) { (server, session) async throws in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for (number, content) in contents.enumerated() {
                    let request = URLRequest(server.url("/\(number)"), method: "PUT")
                    group.addTask { _ = try await session.upload(for: request, from: Data(content)) }
                }
                try await group.waitForAll()
            }
            for request in server.requests {
                let number = try #require(Int(request.path.dropFirst()))
                #expect(request.bodyHash == HTTP2Request.hash(of: contents[number]))
            }
            #expect(server.connectionCount == 1)
        }
    }

    @Test(arguments: [16_384, 1 << 20]) func `frames are no larger than SETTINGS_MAX_FRAME_SIZE`(size: Int) async throws {
        try await withHTTP2Scenario(
            greeting: { _ in [.settings([.maxFrameSize: UInt32(size), .initialWindowSize: 4 << 20]), .windowUpdate(4 << 20)] },
            reply: { .ok("\($0.path)") }
        ) { (server, session) async throws in
            _ = try await session.text(server.url())
            _ = try await session.upload(for: URLRequest(server.url("/up"), method: "PUT"), from: Data(Self.content))
            #expect(server.frames(.data).allSatisfy { $0.length <= size })
            #expect(server.requests.last?.bodyHash == HTTP2Request.hash(of: Self.content))
        }
    }
}
