// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Synchronization
import Testing
import URLLoading

/// Loads that are retried according to the app's `RetryPolicy`.
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct RetryPolicyTests {
    private typealias Policy = URLSessionConfiguration.RetryPolicy

    /// Runs a test with a session that retries after short pauses.
    private func withRetries(
        _ change: (inout Policy) -> Void = { _ in }, configure: (URLSessionConfiguration) -> Void = { _ in },
        test: (URLSession) async throws -> Void
    ) async throws {
        var policy = Policy()
        (policy.firstPause, policy.maximumPause) = (0.001, 0.01)
        change(&policy)
        try await withSession {
            $0.retryPolicy = policy
            configure($0)
        } test: {
            try await test($0)
        }
    }

    /// Replies to the first `count` requests with one response, and to the others with another.
    private static func failing(
        _ count: Int, with reply: ScriptedReply = .status(503, body: "busy"), then last: ScriptedReply = .ok("body")
    ) -> @Sendable (RecordedRequest) throws -> ScriptedReply {
        let left = Mutex(count)
        return { _ in
            left.withLock { left in
                left -= 1
                return left >= 0 ? reply : last
            }
        }
    }

    private final class Metrics: NSObject, URLSessionTaskDelegate {
        let collected = Watched<URLSessionTaskMetrics?>(nil)

        func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
            collected.change { $0 = metrics }
        }
    }

    @Test func `without a policy the first response is the result`() async throws {
        try await withScriptedServer(reply: Self.failing(1)) { (server) async throws in
            try await withSession { (session) async throws in
                let (data, response) = try await session.data(from: server.url())
                #expect((response as? HTTPURLResponse)?.statusCode == 503)
                #expect(data == Data("busy".utf8))
                #expect(server.requests.count == 1)
            }
        }
    }

    @Test(arguments: [408, 429, 502, 503, 504])
    func `a transient status is retried, and each attempt is in the metrics`(status: Int) async throws {
        try await withScriptedServer(reply: Self.failing(3, with: .status(status, body: "busy"))) { (server) async throws in
            try await withRetries { (session) async throws in
                let metrics = Metrics()
                let (data, response) = try await session.data(for: URLRequest(url: server.url()), delegate: metrics)
                #expect((response as? HTTPURLResponse)?.statusCode == 200)
                #expect(data == Data("body".utf8))
                let collected = try await metrics.collected.value(where: { $0 })
                #expect(
                    collected.transactionMetrics.map { ($0.response as? HTTPURLResponse)?.statusCode } == [
                        status, status, status, 200,
                    ])
                #expect(collected.redirectCount == 0)
            }
            #expect(server.requests.count == 4)
            // After a small response, the next attempt uses the same connection.
            #expect(server.connectionCount == 1)
        }
    }

    @Test func `the response of the last attempt is the result`() async throws {
        try await withScriptedServer(reply: { _ in .status(503, body: "busy") }) { (server) async throws in
            try await withRetries {
                $0.maximumRetryCount = 2
            } test: { (session) async throws in
                let (data, response) = try await session.data(from: server.url())
                #expect((response as? HTTPURLResponse)?.statusCode == 503)
                #expect(data == Data("busy".utf8))
            }
            #expect(server.requests.count == 3)
        }
    }

    @Test(arguments: [("POST", false, 1), ("PATCH", false, 1), ("POST", true, 3), ("PUT", false, 3), ("DELETE", false, 3)])
    func `a method that is not idempotent is only retried if the app allows it`(
        method: String, isAllowed: Bool, count: Int
    ) async throws {
        try await withScriptedServer(reply: Self.failing(2)) { (server) async throws in
            try await withRetries {
                $0.repeatsNonidempotentMethods = isAllowed
            } test: { (session) async throws in
                var request = URLRequest(url: server.url())
                request.httpMethod = method
                request.httpBody = Data("sent".utf8)
                let (_, response) = try await session.data(for: request)
                #expect((response as? HTTPURLResponse)?.statusCode == (count == 1 ? 503 : 200))
            }
            #expect(server.requests.map(\.bodyText) == [String](repeating: "sent", count: count))
        }
    }

    @Test(arguments: [("0", true), ("1", true), ("2", false), ("86400", false), ("Fri, 01 Jan 2100 00:00:00 GMT", false)])
    func `Retry-After is honored unless it is too long`(field: String, isFollowed: Bool) async throws {
        try await withScriptedServer(reply: Self.failing(1, with: .status(503, [("Retry-After", field)]))) {
            (server) async throws in
            try await withRetries {
                $0.maximumRetryAfter = 1
            } test: { (session) async throws in
                let start = ContinuousClock.now
                let (_, response) = try await session.data(from: server.url())
                #expect((response as? HTTPURLResponse)?.statusCode == (isFollowed ? 200 : 503))
                if field == "1" { #expect(ContinuousClock.now - start >= .seconds(1)) }
            }
        }
    }

    @Test func `a lost connection is retried, in addition to the retry of a reused connection`() async throws {
        try await withScriptedServer(reply: Self.failing(2, with: [.close])) { (server) async throws in
            try await withRetries { (session) async throws in
                #expect(try await session.text(server.url()) == "body")
            }
            #expect(server.requests.count == 3)
        }
        // A reused connection that closes is replaced once, in addition to the policy's retries.
        try await withScriptedServer(reply: { $0.path == "/first" ? .ok() : [.close] }) { (server) async throws in
            try await withRetries {
                $0.maximumRetryCount = 2
            } test: { (session) async throws in
                _ = try await session.text(server.url("/first"))
                await expectFailure(.networkConnectionLost) { try await session.text(server.url("/closed")) }
            }
            #expect(server.requests.filter { $0.path == "/closed" }.count == 4)
        }
    }

    @Test func `a refused connection is retried`() async throws {
        let port = try RefusingPort()
        let url = try #require(URL(string: "http://127.0.0.1:\(port.number)/"))
        try await withRetries { (session) async throws in
            let metrics = Metrics()
            await expectFailure(.cannotConnectToHost) { try await session.data(from: url, delegate: metrics) }
            let collected = try await metrics.collected.value(where: { $0 })
            #expect(collected.transactionMetrics.count == 4)
        }
        try await withRetries {
            $0.errorCodes = []
        } test: { (session) async throws in
            let metrics = Metrics()
            await expectFailure(.cannotConnectToHost) { try await session.data(from: url, delegate: metrics) }
            let collected = try await metrics.collected.value(where: { $0 })
            #expect(collected.transactionMetrics.count == 1)
        }
    }

    @Test(arguments: [false, true])
    func `a POST whose connection is refused is only retried if the app allows it`(isAllowed: Bool) async throws {
        let port = try RefusingPort()
        let url = try #require(URL(string: "http://127.0.0.1:\(port.number)/"))
        try await withRetries {
            $0.maximumRetryCount = 2
            $0.repeatsNonidempotentMethods = isAllowed
        } test: { (session) async throws in
            let metrics = Metrics()
            var request = URLRequest(url: url)
            request.httpMethod = "POST"
            request.httpBody = Data("sent".utf8)
            await expectFailure(.cannotConnectToHost) { try await session.data(for: request, delegate: metrics) }
            let collected = try await metrics.collected.value(where: { $0 })
            #expect(collected.transactionMetrics.count == (isAllowed ? 3 : 1))
        }
    }

    @Test func `a cookie of a response is sent with the retry`() async throws {
        try await withScriptedServer(reply: { request in
            request.header("Cookie") == "seen=1" ? .ok("body") : .status(503, [("Set-Cookie", "seen=1")])
        }) { (server) async throws in
            try await withRetries { (session) async throws in
                #expect(try await session.text(server.url()) == "body")
            }
            #expect(server.requests.count == 2)
        }
    }

    @Test(.over(.http1)) func `many loads from a failing host share a limit of retries`() async throws {
        try await withScriptedServer(reply: { _ in .status(503) }) { (server) async throws in
            try await withRetries {
                $0.maximumRetryCount = 100
            } test: { (session) async throws in
                try await withThrowingTaskGroup(of: Int?.self) { group in
                    for _ in 0..<50 {
                        group.addTask { (try await session.data(from: server.url()).1 as? HTTPURLResponse)?.statusCode }
                    }
                    for try await status in group { #expect(status == 503) }
                }
            }
            // The limit is five retries, and one more for every ten seconds of the test.
            #expect((55...60).contains(server.requests.count))
        }
    }

    @Test func `a response that is retried is not cached, and a cached response is not requested again`() async throws {
        let cached = [("Cache-Control", "max-age=600")]
        try await withScriptedServer(reply: Self.failing(2, with: .status(503, cached), then: .ok("body", cached))) {
            (server) async throws in
            try await withRetries { _ in
            } configure: {
                $0.urlCache = URLCache(memoryCapacity: 1_000_000, diskCapacity: 0, directory: nil)
            } test: { (session) async throws in
                #expect(try await session.text(server.url()) == "body")
                #expect(try await session.text(server.url()) == "body")
            }
            #expect(server.requests.count == 3)
        }
    }

    @Test func `cancellation and the resource timeout end a pause`() async throws {
        try await withScriptedServer(reply: { _ in .status(503) }) { (server) async throws in
            try await withRetries {
                ($0.firstPause, $0.maximumPause) = (600, 600)
            } test: { (session) async throws in
                let load = Task { try await session.data(from: server.url()) }
                _ = try await server.waitForRequests(1)
                load.cancel()
                await expectFailure(.cancelled) { try await load.value }
            }
            try await withRetries {
                ($0.firstPause, $0.maximumPause) = (600, 600)
            } configure: {
                $0.timeoutIntervalForResource = 0.2
            } test: { (session) async throws in
                await expectFailure(.timedOut) { try await session.data(from: server.url()) }
            }
        }
    }

    @Test func `redirect targets, downloads and uploads are retried, too`() async throws {
        let busy = Mutex(6)
        try await withScriptedServer(reply: { request in
            if request.path == "/moved" { return .redirect(302, to: "/target") }
            return busy.withLock { busy in
                busy -= 1
                return busy % 2 == 1 ? .status(503) : .ok(request.bodyText)
            }
        }) { (server) async throws in
            try await withRetries { (session) async throws in
                #expect((try await session.data(from: server.url("/moved")).1 as? HTTPURLResponse)?.statusCode == 200)
                let (file, response) = try await session.download(from: server.url("/file"))
                try FileManager.default.removeItem(at: file)
                #expect((response as? HTTPURLResponse)?.statusCode == 200)
            }
            try await withRetries { _ in
            } configure: {
                $0.usesResumableUploads = false
            } test: { (session) async throws in
                var request = URLRequest(url: server.url("/upload"))
                request.httpMethod = "PUT"
                #expect(try await session.upload(for: request, from: Data("sent".utf8)).0 == Data("sent".utf8))
            }
            #expect(server.requests.map(\.path) == ["/moved", "/target", "/target", "/file", "/file", "/upload", "/upload"])
        }
    }
}
