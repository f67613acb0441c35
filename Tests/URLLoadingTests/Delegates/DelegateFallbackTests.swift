// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Delegates that implement only a few methods, in either form; for each method that a task delegate lacks, the session delegate is
/// called.
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct DelegateFallbackTests {
    @Test func `tasks run with a delegate without methods`() async throws {
        let delegate = EmptyDelegate()
        try await withScenario(delegate: delegate, reply: { $0.path == "/a" ? .redirect(302, to: "/b") : .ok("end") }) {
            (server, session) async throws in
            let task = session.dataTask(with: server.url("/a"))
            task.resume()
            _ = try await server.request(1)
            #expect(try await session.text(server.url("/a")) == "end")
        }
    }

    @Test func `the async forms of methods are called`() async throws {
        let delegate = AsyncDelegate()
        try await withScenario(delegate: delegate, reply: { $0.path == "/a" ? .redirect(302, to: "/b") : .ok("end") }) {
            (server, session) async throws in
            let task = session.dataTask(with: server.url("/a"))
            task.resume()
            let events = try await delegate.done.value
            #expect(events == ["redirect", "response 200", "end"])
            #expect(server.requests[1].header("X-Async") == "yes")
        }
    }

    @Test func `a task delegate receives the calls it implements, and the session delegate the others`() async throws {
        let recorder = EventRecorder()
        let own = CompletionDelegate()
        try await withScenario(delegate: recorder, reply: { _ in .ok("hello") }) { (server, session) async throws in
            let task = session.dataTask(with: server.url())
            task.delegate = own
            task.resume()
            let code = try await own.done.value
            #expect(code == nil)
            #expect(recorder.letters(of: task) == "cRDM")
        }
    }

    @Test func `a task delegate is released when the task is complete`() async throws {
        try await withScenario(reply: { _ in .ok() }) { (server, session) async throws in
            let task = session.dataTask(with: server.url())
            let own = CompletionDelegate()
            let done = own.done
            task.delegate = own
            #expect(task.delegate === own)
            task.resume()
            let code = try await done.value
            #expect(code == nil)
            // The completion is the last call; the delegate is released directly after that call.
            _ = try await session.data(from: server.url())
            _ = try await session.data(from: server.url())
            #expect(task.delegate == nil)
        }
    }

    @Test func `the delegate of an async call is asked about redirects, and is not told the result`() async throws {
        let own = AsyncDelegate()
        try await withScenario(reply: { $0.path == "/a" ? .redirect(302, to: "/b") : .ok("end") }) {
            (server, session) async throws in
            let (data, _) = try await session.data(for: URLRequest(server.url("/a")), delegate: own)
            #expect(data == Data("end".utf8))
            #expect(server.requests[1].header("X-Async") == "yes")
            // The async call returns the response and the data, so the delegate is not notified of them.
            #expect(own.events.read { $0 } == ["redirect"])
            #expect(own.done.all == [])
        }
    }

    @Test func `a session without a delegate performs loads`() async throws {
        try await withScenario(reply: { _ in .ok() }) { (server, session) async throws in
            #expect(session.delegate == nil)
            let task = session.dataTask(with: server.url())
            task.resume()
            _ = try await server.request(0)
        }
    }
}

private final class EmptyDelegate: NSObject, URLSessionDelegate, Sendable {}

private final class CompletionDelegate: NSObject, URLSessionTaskDelegate, Sendable {
    let done = Delivered<URLError.Code?>()

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        done((error as? URLError)?.code)
    }
}

private final class AsyncDelegate: NSObject, URLSessionDataDelegate, Sendable {
    let events = Watched<[String]>([])
    let done = Delivered<[String]>()

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest
    ) async -> URLRequest? {
        await Task.yield()
        events.change { $0.append("redirect") }
        var request = request
        request.setValue("yes", forHTTPHeaderField: "X-Async")
        return request
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse
    ) async
        -> URLSession.ResponseDisposition
    {
        await Task.yield()
        events.change { $0.append("response \((response as? HTTPURLResponse)?.statusCode ?? 0)") }
        return .allow
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        events.change { $0.append(String(decoding: data, as: UTF8.self)) }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        done(events.read { $0 })
    }
}
