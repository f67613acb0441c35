// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// The request timeout is an idle timer, the resource timeout a deadline.
///
/// Uses real timers: only the outcome is checked.
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct TimeoutTests {
    @Test func `the request's timeout overrides a longer one of the configuration`() async throws {
        try await withScenario(reply: { _ in [.stall] }) { (server, session) async throws in
            var request = URLRequest(url: server.url())
            request.timeoutInterval = 0.2
            let error = await expectFailure(.timedOut) { try await session.data(for: request) }
            #expect(error?.failingURL == server.url())
        }
    }

    @Test func `the request's timeout overrides a shorter one, even if it is 60 seconds`() async throws {
        let late = ScriptedReply.ok("late").after(.pause(milliseconds: 600))
        try await withScenario(configure: { $0.timeoutIntervalForRequest = 0.2 }, reply: { _ in late }) {
            (server, session) async throws in
            var request = URLRequest(url: server.url())
            request.timeoutInterval = 60
            #expect(try await session.text(request).text == "late")
        }
    }

    @Test func `a redirect inherits the request's timeout`() async throws {
        try await withScenario(
            configure: { $0.timeoutIntervalForRequest = 3600 }, reply: { $0.order == 0 ? .redirect(302, to: "/b") : [.stall] }
        ) { (server, session) async throws in
            var request = URLRequest(url: server.url())
            request.timeoutInterval = 0.3
            await expectFailure(.timedOut) { try await session.data(for: request) }
        }
    }

    @Test(.over(.http1, .http2, .http3)) func `an upload times out when the server does not read the body`() async throws {
        try await withScenario(
            configure: { $0.timeoutIntervalForRequest = 0.3 }, early: { _ in [.stopReading, .stall] }, reply: { _ in [] }
        ) { (server, session) async throws in
            await expectFailure(.timedOut) {
                try await session.upload(for: URLRequest(server.url(), method: "POST"), from: Data(count: 32 << 20))
            }
        }
    }

    @Test(.over(.http1)) func `a load times out when the server does not answer the TLS handshake`() async throws {
        try await withScenario(
            configure: { $0.timeoutIntervalForRequest = 0.3 }, greeting: { _ in [.stall] }, reply: { _ in [] }
        ) { (server, session) async throws in
            let url = try #require(URL(string: "https://127.0.0.1:\(server.port)/"))
            await expectFailure(.timedOut) { try await session.data(from: url) }
        }
    }

    @Test func `the request timeout does not run while the task is suspended`() async throws {
        try await withGrowingTimes { scale in
            let recorder = EventRecorder()
            var isRight = false
            let pause = SocketEffect.pause(milliseconds: Int64(800 * scale))
            try await withScenario(
                delegate: recorder, configure: { $0.timeoutIntervalForRequest = 0.3 * scale },
                reply: { _ in .ok("ok").after(.gate("suspended"), pause, .reach("late")) }
            ) { (server, session) async throws in
                let task = session.dataTask(with: server.url())
                task.resume()
                guard try await isReached("suspended", at: server, before: task, endsAt: recorder) else { return }
                task.suspend()
                server.open("suspended")
                let wasRunning = try await isReached("late", at: server, before: task, endsAt: recorder)
                task.resume()
                let record = try await recorder.completion(of: task)
                isRight = wasRunning && record.error == nil && record.body == Data("ok".utf8)
            }
            return isRight
        }
    }

    /// Waits for a point of the server's script or for the end of the task, and returns whether the point came first.
    private func isReached(
        _ point: String, at server: ScriptedServer, before task: URLSessionTask, endsAt recorder: EventRecorder
    ) async throws -> Bool {
        try await withThrowingTaskGroup(of: Bool.self) { group in
            group.addTask {
                try await server.reached(point)
                return true
            }
            group.addTask {
                try await recorder.completion(of: task)
                return false
            }
            defer { group.cancelAll() }
            return try await group.next() ?? false
        }
    }

    @Test func `the resource timeout ends a task that was never idle, and its connection`() async throws {
        let drip = (0..<2000).flatMap { _ in [SocketEffect.pause(milliseconds: 10), .content("x")] }
        try await withGrowingTimes { scale in
            let recorder = EventRecorder()
            var hasBody = false
            try await withScenario(
                delegate: recorder, configure: { $0.timeoutIntervalForResource = 0.25 * scale },
                reply: { _ in ScriptedReply([.head(200)] + drip) }
            ) { (server, session) async throws in
                let task = session.dataTask(with: server.url())
                task.resume()
                let record = try await recorder.completion(of: task)
                #expect((record.error as? URLError)?.code == .timedOut)
                hasBody = !record.body.isEmpty
                try recorder.expectOrder(of: task, EventRecorder.dataGrammar)
                // A connection without a request is still usable and is kept.
                if hasBody { try await server.waitForAbandoning(0) }
            }
            return hasBody
        }
    }

    /// The only connection goes to a later task with a higher priority.
    @Test(.over(.http1, .http1OverTLS)) func `a queued task times out too`() async throws {
        let held = ScriptedReply.ok("first").after(.gate("go"))
        try await withGrowingTimes { scale in
            var counts: [Int] = []
            try await withScenario(
                configure: { configuration in
                    configuration.httpMaximumConnectionsPerHost = 1
                    configuration.timeoutIntervalForResource = 0.4 * scale
                },
                reply: { $0.order == 0 ? held : [.stall] }
            ) { (server, session) async throws in
                let url = server.url()
                session.dataTask(with: url).resume()
                _ = try await server.request(0)
                let ended = Delivered<URLError.Code?>()
                let waiting = session.dataTask(with: url) { _, _, error in ended((error as? URLError)?.code) }
                waiting.priority = URLSessionTask.lowPriority
                waiting.resume()
                let urgent = session.dataTask(with: url)
                urgent.priority = URLSessionTask.highPriority
                urgent.resume()
                server.open("go")
                let code = try await ended.value
                #expect(code == .timedOut)
                counts = [server.requests.count, server.connectionCount]
            }
            return counts == [2, 1]
        }
    }

    @Test func `timeouts keep nothing of a finished load`() async throws {
        try await withScenario(
            configure: { $0.timeoutIntervalForRequest = 3600 }, reply: { $0.order == 0 ? .ok("1") : [.close] }
        ) { (server, session) async throws in
            for _ in 0..<2 {
                let released = Delivered<Bool>()
                var request = URLRequest(server.url(), method: "POST")
                request.httpBody = Self.body(released: released)
                session.dataTask(with: request) { _, _, _ in }.resume()
                request.httpBody = nil
                #expect(try await released.value)
            }
        }
    }

    /// A body that reports its release.
    private static func body(released: Delivered<Bool>) -> Data {
        let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: 65_536, alignment: 1)
        bytes.initializeMemory(as: UInt8.self, repeating: 7)
        guard let start = bytes.baseAddress else { return Data() }
        return Data(
            bytesNoCopy: start, count: bytes.count,
            deallocator: .custom { pointer, _ in
                pointer.deallocate()
                released(true)
            })
    }
}
