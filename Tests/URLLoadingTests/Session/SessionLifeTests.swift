// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Sessions: their configuration, tasks and end.
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct SessionLifeTests {
    @Test func `the configuration's defaults match Apple's`() {
        for configuration in [URLSessionConfiguration.default, .ephemeral] {
            #expect(configuration.requestCachePolicy == .useProtocolCachePolicy)
            #expect(configuration.timeoutIntervalForRequest == 60)
            #expect(configuration.timeoutIntervalForResource == 604_800)
            #expect(configuration.networkServiceType == .default)
            #expect(configuration.allowsCellularAccess && configuration.allowsExpensiveNetworkAccess)
            #expect(configuration.allowsConstrainedNetworkAccess)
            #expect(!configuration.waitsForConnectivity)
            #expect(configuration.httpMaximumConnectionsPerHost == 6)
            #expect(!configuration.httpShouldUsePipelining)
            #expect(configuration.httpAdditionalHeaders?.isEmpty != false)
        }
        let request = URLRequest(url: URL(fileURLWithPath: "/"))
        #expect(request.timeoutInterval == 60)
        #expect(request.httpMethod == "GET")
        #expect(request.httpShouldHandleCookies)
    }

    @Test func `a session keeps a copy of its configuration`() async throws {
        let configuration = try URLSessionConfiguration.scripted()
        configuration.httpAdditionalHeaders = ["X-One": "before"]
        let session = URLSession(configuration: configuration)
        defer { session.invalidateAndCancel() }
        configuration.httpAdditionalHeaders = ["X-One": "after"]
        session.configuration.httpAdditionalHeaders = ["X-One": "later"]
        try await withScriptedServer(reply: { _ in .ok() }) { (server) async throws in
            _ = try await session.data(from: server.url())
            #expect(server.requests[0].values(of: "X-One") == ["before"])
        }
    }

    @Test func `copies of configurations are independent, and a copy of a task is the task itself`() throws {
        let configuration = URLSessionConfiguration.ephemeral
        let copy = try #require(configuration.copy() as? URLSessionConfiguration)
        copy.timeoutIntervalForRequest = 1
        #expect(configuration.timeoutIntervalForRequest == 60)
        let session = URLSession(configuration: configuration)
        defer { session.invalidateAndCancel() }
        let task = session.dataTask(with: try #require(URL(string: "http://127.0.0.1:1/")))
        #expect(task.copy() as? URLSessionTask === task)
    }

    @Test func `tasks are listed by kind until they complete`() async throws {
        try await withScenario(reply: { _ in [.stall] }) { (server, session) async throws in
            let data = session.dataTask(with: server.url())
            let upload = session.uploadTask(with: URLRequest(server.url(), method: "POST"), from: Data())
            let download = session.downloadTask(with: server.url())
            for task in [data, upload, download] { task.resume() }
            let (datas, uploads, downloads) = await session.tasks
            #expect(datas.contains { $0 === data })
            #expect(uploads.map(\.taskIdentifier) == [upload.taskIdentifier])
            #expect(downloads.map(\.taskIdentifier) == [download.taskIdentifier])
            #expect(Set(await session.allTasks.map(\.taskIdentifier)) == Set([data, upload, download].map(\.taskIdentifier)))
            let listed = Delivered<Int>()
            session.getAllTasks { listed($0.count) }
            #expect(try await listed.value == 3)
        }
    }

    @Test func `finishTasksAndInvalidate lets tasks finish before didBecomeInvalid`() async throws {
        let recorder = EventRecorder()
        try await withScriptedServer(reply: { _ in .ok("done").after(.gate("go")) }) {
            (server) async throws in
            let session = try URLSession(configuration: .scripted(), delegate: recorder, delegateQueue: nil)
            let task = session.dataTask(with: server.url())
            task.resume()
            try await server.reached("go")
            session.finishTasksAndInvalidate()
            server.open("go")
            #expect(try await recorder.completion(of: task).body == Data("done".utf8))
            #expect(try await recorder.invalidation() == 1)
            #expect(recorder.faults.isEmpty)
            try await server.waitForAllClosed()
        }
    }

    @Test func `invalidateAndCancel cancels all tasks before didBecomeInvalid`() async throws {
        let recorder = EventRecorder()
        try await withScriptedServer(reply: { _ in [.stall] }) { (server) async throws in
            let session = try URLSession(configuration: .scripted(), delegate: recorder, delegateQueue: nil)
            let tasks = (0..<3).map { _ in session.dataTask(with: server.url()) }
            for task in tasks { task.resume() }
            try await server.waitForRequests(3)
            session.invalidateAndCancel()
            for task in tasks {
                #expect((try await recorder.completion(of: task).error as? URLError)?.code == .cancelled)
            }
            #expect(try await recorder.invalidation() == 1)
            #expect(recorder.faults.isEmpty)
            try await server.waitForAllClosed()
        }
    }

    @Test func `a delegate is retained until the session is invalid, and then released`() async throws {
        weak var held: WeakDelegate?
        let released = Delivered<Bool>()
        let session: URLSession
        do {
            let delegate = WeakDelegate(released)
            held = delegate
            session = try URLSession(configuration: .scripted(), delegate: delegate, delegateQueue: nil)
        }
        #expect(held != nil)
        session.finishTasksAndInvalidate()
        #expect(try await released.value)
    }

    @Test(.over(.http1)) func `the shared session cannot be invalidated`() async throws {
        try await withScriptedServer(reply: { _ in .ok("shared") }) { (server) async throws in
            #expect(URLSession.shared === URLSession.shared)
            URLSession.shared.finishTasksAndInvalidate()
            URLSession.shared.invalidateAndCancel()
            #expect(try await URLSession.shared.text(server.url()) == "shared")
        }
    }

    @Test func `descriptions are stored`() throws {
        let session = try URLSession(configuration: .scripted())
        defer { session.invalidateAndCancel() }
        session.sessionDescription = "mine"
        #expect(session.sessionDescription == "mine")
        let task = session.dataTask(with: try #require(URL(string: "http://127.0.0.1:1/")))
        task.taskDescription = "yours"
        task.priority = URLSessionTask.highPriority
        task.countOfBytesClientExpectsToSend = 3
        #expect(task.taskDescription == "yours")
        #expect(task.priority == 0.75)
        #expect(task.countOfBytesClientExpectsToSend == 3)
        #expect(task.countOfBytesClientExpectsToReceive == NSURLSessionTransferSizeUnknown)
    }

    @Test func `reset and flush complete`() async throws {
        try await withSession { (session) async throws in
            await session.reset()
            await session.flush()
            let done = Delivered<Bool>()
            session.flush { done(true) }
            #expect(try await done.value)
        }
    }
}

private final class WeakDelegate: NSObject, URLSessionDelegate, Sendable {
    private let released: Delivered<Bool>

    init(_ released: Delivered<Bool>) { self.released = released }

    deinit { released(true) }
}
