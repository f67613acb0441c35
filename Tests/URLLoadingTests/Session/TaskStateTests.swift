// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// The visible state of a task, from creation to completion.
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct TaskStateTests {
    @Test func `a task goes from suspended through running to completed, and stays there`() async throws {
        let recorder = EventRecorder()
        try await withScenario(
            delegate: recorder, reply: { _ in .ok("body").after(.gate("go")) }
        ) { (server, session) async throws in
            let task = session.dataTask(with: server.url())
            #expect(task.state == .suspended && task.response == nil && task.error == nil)
            task.resume()
            #expect(task.state == .running)
            task.suspend()
            #expect(task.state == .suspended)
            task.resume()
            try await server.reached("go")
            server.open("go")
            try await recorder.completion(of: task)
            #expect(task.state == .completed && task.error == nil)
            #expect((task.response as? HTTPURLResponse)?.statusCode == 200)
            for _ in 0..<2 {
                task.resume()
                task.suspend()
                task.cancel()
            }
            #expect(task.state == .completed && task.error == nil)
            _ = try await session.data(from: server.url())
            #expect(server.requests.count == 2)
            #expect(recorder.faults.isEmpty)
            #expect(await session.allTasks.isEmpty)
        }
    }

    @Test func `a task cancelled before it was resumed calls its handler, and sends nothing`() async throws {
        try await withScenario(reply: { _ in .ok() }) { (server, session) async throws in
            let done = Delivered<URLError.Code?>()
            let task = session.dataTask(with: server.url()) { done(($2 as? URLError)?.code) }
            task.cancel()
            #expect(try await done.value == .cancelled)
            task.resume()
            #expect((task.error as? URLError)?.code == .cancelled && task.state == .completed)
            _ = try await session.data(from: server.url("/other"))
            #expect(server.requests.map(\.path) == ["/other"])
            #expect(done.all.count == 1)
        }
    }

    @Test func `a task that was never resumed is listed, and finishTasksAndInvalidate waits for it`() async throws {
        let recorder = EventRecorder()
        try await withScriptedServer(reply: { _ in .ok() }) { (server) async throws in
            let session = try URLSession(configuration: .scripted(), delegate: recorder, delegateQueue: nil)
            let task = session.dataTask(with: server.url())
            #expect(await session.allTasks.map(\.taskIdentifier) == [task.taskIdentifier])
            session.finishTasksAndInvalidate()
            #expect(session.delegate === recorder)
            task.resume()
            try await recorder.completion(of: task)
            #expect(task.error == nil)
            #expect(try await recorder.invalidation() == 1)
            #expect(recorder.faults.isEmpty)
        }
    }

    @Test func `currentRequest reflects the configuration and redirects, originalRequest does not change`() async throws {
        let recorder = EventRecorder()
        try await withScenario(
            delegate: recorder,
            configure: { $0.httpAdditionalHeaders = ["X-Session": "session", "X-Both": "session", "Content-Length": "9"] },
            reply: { $0.path == "/a" ? .redirect(302, to: "/b") : .ok() }
        ) { (server, session) async throws in
            let task = session.dataTask(with: URLRequest(server.url("/a"), headers: ["X-Both": "request"]))
            #expect(task.currentRequest == task.originalRequest)
            task.resume()
            try await recorder.completion(of: task)
            #expect(task.currentRequest?.url == server.url("/b") && task.originalRequest?.url == server.url("/a"))
            #expect(task.currentRequest?.allHTTPHeaderFields == ["X-Session": "session", "X-Both": "request"])
            #expect(task.originalRequest?.allHTTPHeaderFields == ["X-Both": "request"])
            #expect(task.response?.url == server.url("/b"))
        }
    }

    @Test func `progress counts both directions and is complete at the end`() async throws {
        let recorder = EventRecorder()
        try await withScenario(
            delegate: recorder,
            reply: { $0.path == "/chunked" ? .chunked(["one", "two"]) : .ok([UInt8](repeating: 1, count: 3000)) }
        ) { (server, session) async throws in
            for path in ["/known", "/chunked"] {
                let task = session.uploadTask(
                    with: URLRequest(server.url(path), method: "POST"), from: Data(repeating: 2, count: 1000))
                let progress = task.progress
                #expect(task.progress === progress && !progress.isFinished)
                task.resume()
                try await recorder.completion(of: task)
                #expect(progress.fractionCompleted == 1 && progress.isFinished, "\(path)")
                #expect(progress.totalUnitCount == (path == "/known" ? 4000 : 1006), "\(path)")
                #expect(task.countOfBytesSent == 1000 && task.countOfBytesExpectedToSend == 1000)
            }
        }
    }

    @Test func `pausing, resuming and cancelling the progress acts on the task`() async throws {
        let recorder = EventRecorder()
        try await withScenario(delegate: recorder, reply: { _ in [.stall] }) { (server, session) async throws in
            let task = session.dataTask(with: server.url())
            let progress = task.progress
            task.resume()
            // Foundation calls the handlers of a progress on a thread of its own.
            progress.pause()
            while task.state != .suspended { await Task.yield() }
            progress.resume()
            while task.state != .running { await Task.yield() }
            progress.cancel()
            let record = try await recorder.completion(of: task)
            #expect((record.error as? URLError)?.code == .cancelled)
        }
    }

    @Test func `events other than the result reach the delegate of a task with a completion handler`() async throws {
        let delegate = EventDelegate()
        try await withScenario(
            delegate: delegate,
            reply: { request in
                switch request.path {
                case "/a": .redirect(307, to: "/b")
                default:
                    request.header("Authorization") == nil
                        ? .status(401, [("WWW-Authenticate", "Basic realm=\"r\"")], body: "no") : .ok("yes")
                }
            }
        ) { (server, session) async throws in
            let done = Delivered<String>()
            let task = session.uploadTask(with: URLRequest(server.url("/a"), method: "POST"), from: Data("body".utf8)) {
                data, _, _ in
                done(String(decoding: data ?? Data(), as: UTF8.self))
            }
            task.resume()
            #expect(try await done.value == "yes")
            let events = delegate.events.all
            #expect(events.first == "created" && events.last == "metrics")
            #expect(Set(events) == ["created", "sent", "redirect", "challenge", "metrics"])
        }
    }
}

private final class EventDelegate: NSObject, URLSessionDataDelegate, Sendable {
    let events = Delivered<String>()

    func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask) { events("created") }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    ) { events("sent") }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest
    ) async -> URLRequest? {
        events("redirect")
        return request
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
        events("challenge")
        return (.useCredential, URLCredential(user: "u", password: "p", persistence: .forSession))
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
        events("metrics")
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) { events("data") }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) { events("complete") }
}
