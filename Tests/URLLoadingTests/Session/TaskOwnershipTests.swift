// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// A session owns its tasks from creation to completion.
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct TaskOwnershipTests {
    enum Kind: CaseIterable, Sendable {
        case data, upload, download
    }

    @Test(arguments: Kind.allCases)
    func `a task is retained by its session, resumed or not, and released at its end`(kind: Kind) async throws {
        try await withScenario(reply: { _ in .ok("body") }) { (server, session) async throws in
            let done = Delivered<URLError?>()
            weak var task: URLSessionTask?
            task = Self.task(kind, server.url(), in: session) { done($0 as? URLError) }
            #expect(await session.allTasks.map(\.taskIdentifier) == [1])
            task?.resume()
            #expect(try await done.value == nil)
            #expect(server.requests.count == 1)
            while task != nil { await session.flush() }
            #expect(await session.allTasks.isEmpty)
        }
    }

    @Test func `a task cancelled without ever being resumed is released`() async throws {
        try await withSession { (session) async throws in
            let done = Delivered<URLError.Code?>()
            weak var task: URLSessionTask?
            task = Self.task(.data, URL(filePath: "/"), in: session) { done(($0 as? URLError)?.code) }
            task?.cancel()
            #expect(try await done.value == .cancelled)
            while task != nil { await session.flush() }
        }
    }

    @Test func `a task retains a session that the app released`() async throws {
        try await withScriptedServer(reply: { _ in .ok("body") }) { (server) async throws in
            let done = Delivered<Data?>()
            let task = try URLSession(configuration: .scripted()).dataTask(with: server.url()) { data, _, _ in done(data) }
            task.resume()
            #expect(try await done.value == Data("body".utf8))
        }
    }

    @Test func `finishTasksAndInvalidate waits for tasks that are not resumed yet`() async throws {
        let recorder = EventRecorder()
        try await withScriptedServer(reply: { _ in .ok("body") }) { (server) async throws in
            let session = try URLSession(configuration: .scripted(), delegate: recorder, delegateQueue: nil)
            weak var weakTask: URLSessionTask?
            weakTask = session.dataTask(with: server.url())
            session.finishTasksAndInvalidate()
            let task = try #require(weakTask)
            #expect(await session.allTasks.count == 1)
            task.resume()
            #expect(try await recorder.completion(of: task).body == Data("body".utf8))
            #expect(try await recorder.invalidation() == 1)
            #expect(recorder.faults.isEmpty)
        }
    }

    @Test func `after invalidateAndCancel a session lists no task, and its unresumed tasks end, too`() async throws {
        let recorder = EventRecorder()
        try await withScriptedServer(reply: { _ in [.stall] }) { (server) async throws in
            // The queue is suspended, so no completion is reported before the test resumes the queue.
            let queue = OperationQueue()
            queue.maxConcurrentOperationCount = 1
            queue.isSuspended = true
            let session = try URLSession(configuration: .scripted(), delegate: recorder, delegateQueue: queue)
            let running = session.dataTask(with: server.url())
            running.resume()
            let unresumed = [
                session.downloadTask(with: server.url()),
                session.uploadTask(with: URLRequest(server.url(), method: "POST"), from: Data()),
            ]
            #expect(await session.allTasks.count == 3)
            session.invalidateAndCancel()
            #expect(await session.allTasks.isEmpty)
            let (data, upload, download) = await session.tasks
            #expect(data.isEmpty && upload.isEmpty && download.isEmpty)
            let listed = Delivered<Int>()
            session.getAllTasks { listed($0.count) }
            session.getTasksWithCompletionHandler { listed($0.count + $1.count + $2.count) }
            queue.isSuspended = false
            try await listed.count(reaches: 2)
            #expect(listed.all == [0, 0])
            for task in [running] + unresumed {
                #expect((try await recorder.completion(of: task).error as? URLError)?.code == .cancelled)
            }
            #expect(try await recorder.invalidation() == 1)
            #expect(recorder.faults.isEmpty)
        }
    }

    private static func task(
        _ kind: Kind, _ url: URL, in session: URLSession, done: @escaping @Sendable ((any Error)?) -> Void
    ) -> URLSessionTask {
        switch kind {
        case .data: session.dataTask(with: url) { done($2) }
        case .upload: session.uploadTask(with: URLRequest(url, method: "POST"), from: Data(count: 9)) { done($2) }
        case .download: session.downloadTask(with: url) { done($2) }
        }
    }
}
