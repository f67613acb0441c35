// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

private let chunk = [UInt8](repeating: 0x61, count: 65_536)
/// The maximum number of bytes that the sockets and windows can buffer, which is far less than the bodies here.
private let windows = 32 << 20

/// A consumer that does not accept data stops the server: suspended tasks, slow delegates, unread bytes.
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct BackPressureTests {
    /// Makes round trips on other connections, so that data in transit has arrived.
    private func settle(_ server: ScriptedServer, _ session: URLSession) async throws {
        for _ in 0..<20 { _ = try await session.data(from: server.url("/small")) }
    }

    private static func reply(_ request: RecordedRequest, megabytes: Int) -> ScriptedReply {
        request.path == "/small" ? .ok() : .large(chunk: chunk, count: 16 * megabytes)
    }

    @Test func `a suspended download stops the traffic, and continues when resumed`() async throws {
        var answers = EventRecorder.Answers()
        let isSuspended = Watched(false)
        answers.wrote = { task, _ in
            guard !isSuspended.read({ $0 }) else { return }
            task.suspend()
            isSuspended.change { $0 = true }
        }
        let recorder = EventRecorder(answers)
        try await withScenario(
            sendBuffer: 262_144, delegate: recorder, reply: { Self.reply($0, megabytes: 96) }
        ) { (server, session) async throws in
            let task = session.downloadTask(with: server.url("/large"))
            task.resume()
            try await isSuspended.value { $0 ? () : nil }
            #expect(task.state == .suspended)
            try await settle(server, session)
            #expect(server.bytesWritten(on: 0) < windows)
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.error == nil)
            #expect(record.file?.count == 96 << 20)
        }
    }

    @Test func `suspensions are counted`() async throws {
        let recorder = EventRecorder()
        try await withScenario(
            delegate: recorder,
            reply: { $0.path == "/other" ? .ok() : ScriptedReply([.gate("done")] + ScriptedReply.ok("done").effects) }
        ) { (server, session) async throws in
            let task = session.dataTask(with: server.url())
            #expect(task.state == .suspended)
            task.suspend()
            task.suspend()
            task.resume()
            task.resume()
            _ = try await session.data(from: server.url("/other"))
            #expect(server.requests.map(\.path) == ["/other"])
            task.resume()
            #expect(task.state == .running)
            server.open("done")
            #expect(try await recorder.completion(of: task).body == Data("done".utf8))
            #expect(task.state == .completed)
        }
    }

    @Test func `no data is delivered before the delegate allows the response`() async throws {
        let isAllowed = Watched(false)
        var answers = EventRecorder.Answers()
        answers.response = { _, response in
            guard response.url?.path == "/large" else { return .allow }
            _ = try? await isAllowed.value { $0 ? true : nil }
            return .allow
        }
        let recorder = EventRecorder(answers)
        try await withScenario(
            sendBuffer: 262_144, delegate: recorder, reply: { Self.reply($0, megabytes: 48) }
        ) { (server, session) async throws in
            let task = session.dataTask(with: server.url("/large"))
            task.resume()
            try await recorder.wait(for: task) { $0.letters.contains("R") }
            try await settle(server, session)
            #expect(recorder.letters(of: task) == "cR")
            #expect(server.bytesWritten(on: 0) < windows)
            isAllowed.change { $0 = true }
            let record = try await recorder.completion(of: task)
            #expect(record.body.count == 48 << 20)
        }
    }

    @Test func `a delegate that does not return stops the traffic`() async throws {
        let isBlocked = Watched(false)
        let mayContinue = DispatchSemaphore(value: 0)
        var answers = EventRecorder.Answers()
        answers.data = { _, _ in
            let isFirst = isBlocked.change { value in
                defer { value = true }
                return !value
            }
            if isFirst { mayContinue.wait() }
        }
        let recorder = EventRecorder(answers)
        try await withScriptedServer(sendBuffer: 262_144, reply: { Self.reply($0, megabytes: 96) }) { (server) async throws in
            try await withSession { (other) async throws in
                try await withSession(delegate: recorder) { (session) async throws in
                    let task = session.dataTask(with: server.url("/large"))
                    task.resume()
                    try await isBlocked.value { $0 ? () : nil }
                    try await settle(server, other)
                    #expect(server.bytesWritten(on: 0) < windows)
                    mayContinue.signal()
                    let record = try await recorder.completion(of: task)
                    #expect(record.body.count == 96 << 20)
                }
            }
        }
    }

    @Test func `unread bytes stop the traffic, and cancelling their task ends it`() async throws {
        try await withScenario(sendBuffer: 262_144, reply: { Self.reply($0, megabytes: 1024) }) {
            (server, session) async throws in
            let url = server.url("/large")
            let (bytes, response) = try await session.bytes(from: url)
            #expect(response.expectedContentLength == 1 << 30)
            var iterator = bytes.makeAsyncIterator()
            #expect(try await iterator.next() == 0x61)
            try await settle(server, session)
            #expect(server.bytesWritten(on: 0) < windows)
            bytes.task.cancel()
            try await server.waitForAbandoning(0)
        }
    }

    @Test(.over(.http1, .http1OverTLS)) func `a server that does not read stops an upload`() async throws {
        let content = Data(count: 64 << 20)
        let recorder = EventRecorder()
        try await withScenario(
            delegate: recorder,
            early: {
                $0.method == "PUT"
                    ? [
                        .head(100), .awaitBody(1), .stopReading, .reach("full"), .gate("read"),
                        .startReading,
                    ] : nil
            },
            reply: { _ in .ok() }
        ) { (server, session) async throws in
            let task = session.uploadTask(with: URLRequest(server.url("/up"), method: "PUT"), from: content)
            task.resume()
            try await server.reached("full")
            try await settle(server, session)
            #expect(task.countOfBytesSent < Int64(windows))
            task.cancel()
            #expect((try await recorder.completion(of: task).error as? URLError)?.code == .cancelled)
            server.open("read")
        }
    }
}
