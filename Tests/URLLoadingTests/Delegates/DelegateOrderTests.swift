// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import SeededNumbers
import Testing
import URLLoading

/// The calls that a delegate receives during the lifetime of a task.
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct DelegateOrderTests {
    @Test func `a data task reports response, data, metrics and completion`() async throws {
        let recorder = EventRecorder()
        try await withScenario(delegate: recorder, reply: { _ in .ok("hello") }) { (server, session) async throws in
            let task = session.dataTask(with: server.url())
            #expect(recorder.letters(of: task) == "c")
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.letters == "cRDME")
            #expect(record.body == Data("hello".utf8))
            #expect(record.error == nil)
            #expect(task.error == nil)
            #expect(task.state == .completed)
            #expect(task.countOfBytesReceived == 5)
            #expect(task.countOfBytesExpectedToReceive == 5)
        }
    }

    @Test func `a new task is reported before its creation returns, and starts suspended`() async throws {
        let recorder = EventRecorder()
        try await withScenario(delegate: recorder, reply: { _ in .ok() }) { (server, session) async throws in
            let tasks: [URLSessionTask] = [
                session.dataTask(with: server.url()), session.downloadTask(with: server.url()),
                session.uploadTask(with: URLRequest(server.url(), method: "POST"), from: Data()),
                session.dataTask(with: server.url()) { _, _, _ in },
            ]
            for task in tasks {
                #expect(recorder.letters(of: task) == "c")
                #expect(task.state == .suspended)
            }
            #expect(Set(tasks.map(\.taskIdentifier)).count == 4)
            #expect(server.connectionCount == 0)
        }
    }

    @Test func `all possible calls are made in order`() async throws {
        var answers = EventRecorder.Answers()
        answers.bodyStream = { InputStream(data: Data(count: 100_000)) }
        let recorder = EventRecorder(answers)
        try await withScenario(
            delegate: recorder,
            reply: { request in
                request.path == "/a" ? .redirect(307, to: "/b") : .ok("ok").after(.head(103))
            }
        ) { (server, session) async throws in
            let task = session.uploadTask(withStreamedRequest: URLRequest(server.url("/a"), method: "POST"))
            task.resume()
            let record = try await recorder.completion(of: task)
            try recorder.expectOrder(of: task, "cns+rns+iRDME")
            #expect(record.metrics?.redirectCount == 1)
        }
    }

    @Test(arguments: [
        ("close", [SocketEffect.close], "cME"), ("nonsense", [.nonsense], "cME"),
        ("cut", [.head(200, [("Content-Length", "9")]), .close], "cRME"),
    ])
    func `a failed task reports its metrics before its completion`(
        name: String, effects: [SocketEffect], letters: String
    ) async throws {
        let recorder = EventRecorder()
        try await withScenario(delegate: recorder, reply: { _ in ScriptedReply(effects) }) { (server, session) async throws in
            let task = session.dataTask(with: server.url())
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.letters == letters, "\(name)")
            #expect(record.error is URLError)
            #expect((task.error as? URLError)?.code == (record.error as? URLError)?.code)
        }
    }

    @Test func `a cancelled task completes once, with the error cancelled`() async throws {
        let recorder = EventRecorder()
        try await withScenario(delegate: recorder, reply: { _ in [.stall] }) { (server, session) async throws in
            let task = session.dataTask(with: server.url())
            task.resume()
            _ = try await server.request(0)
            task.cancel()
            task.cancel()
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect((record.error as? URLError)?.code == .cancelled)
            #expect((record.error as? URLError)?.failingURL == server.url())
            #expect(task.state == .completed)
            try await server.waitForAbandoning(0)
            try recorder.expectOrder(of: task, EventRecorder.dataGrammar)
        }
    }

    @Test func `a task completes if it is cancelled before it is resumed`() async throws {
        let recorder = EventRecorder()
        try await withScenario(delegate: recorder, reply: { _ in .ok() }) { (server, session) async throws in
            let task = session.dataTask(with: server.url())
            task.cancel()
            let record = try await recorder.completion(of: task)
            #expect((record.error as? URLError)?.code == .cancelled)
            #expect(server.requests.isEmpty)
        }
    }

    @Test func `the disposition cancel ends the task`() async throws {
        var answers = EventRecorder.Answers()
        answers.response = { _, _ in .cancel }
        let recorder = EventRecorder(answers)
        try await withScenario(delegate: recorder, reply: { _ in .ok(ScriptedFile.pattern(100_000)) }) {
            (server, session) async throws in
            let task = session.dataTask(with: server.url())
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.letters == "cRME")
            #expect((record.error as? URLError)?.code == .cancelled)
        }
    }

    @Test func `a task with a completion handler reports no response, data or completion to the delegate`() async throws {
        let recorder = EventRecorder()
        try await withScenario(delegate: recorder, reply: { _ in .ok("hello") }) { (server, session) async throws in
            let done = Delivered<(Data?, Int?, Bool)>()
            let task = session.dataTask(with: server.url()) { data, response, error in
                done((data, (response as? HTTPURLResponse)?.statusCode, error == nil))
            }
            task.resume()
            let (data, status, isGood) = try await done.value
            #expect(data == Data("hello".utf8))
            #expect(status == 200)
            #expect(isGood)
            try await recorder.wait(for: task) { $0.letters.contains("M") }
            #expect(recorder.letters(of: task) == "cM")
        }
    }

    @Test func `a completion handler is called once, on the delegate queue`() async throws {
        let queue = OperationQueue()
        queue.name = "the test's queue"
        queue.maxConcurrentOperationCount = 1
        try await withScriptedServer(reply: { $0.path == "/bad" ? [.close] : .ok() }) { (server) async throws in
            let session = try URLSession(configuration: .scripted(), delegate: nil, delegateQueue: queue)
            defer { session.invalidateAndCancel() }
            #expect(session.delegateQueue === queue)
            let done = Delivered<String?>()
            for path in ["/", "/bad"] {
                session.dataTask(with: server.url(path)) { _, _, _ in done(OperationQueue.current?.name) }.resume()
            }
            try await done.count(reaches: 2)
            #expect(done.all == ["the test's queue", "the test's queue"])
        }
    }

    @Test func `delegate methods are called serially on the default queue`() async throws {
        let recorder = EventRecorder()
        try await withScenario(delegate: recorder, reply: { _ in .chunked(Array(repeating: "piece", count: 20)) }) {
            (server, session) async throws in
            #expect(session.delegateQueue.maxConcurrentOperationCount == 1)
            let tasks = (0..<20).map { session.dataTask(with: server.url("/\($0)")) }
            for task in tasks { task.resume() }
            for task in tasks {
                let record = try await recorder.completion(of: task)
                #expect(record.body.count == 100)
                try recorder.expectOrder(of: task, EventRecorder.dataGrammar)
            }
        }
    }

    @Test func `a delayed task begins at its date if the delegate agrees`() async throws {
        var answers = EventRecorder.Answers()
        answers.delayed = { request in
            var request = request
            request.setValue("yes", forHTTPHeaderField: "X-Changed")
            return (.useNewRequest, request)
        }
        let recorder = EventRecorder(answers)
        try await withScenario(delegate: recorder, reply: { _ in .ok() }) { (server, session) async throws in
            let task = session.dataTask(with: server.url())
            task.earliestBeginDate = Date().addingTimeInterval(0.05)
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.letters.hasPrefix("cd"))
            #expect(server.requests[0].header("X-Changed") == "yes")
        }
    }

    @Test func `the delegate's new request for a delayed task sets its timeout`() async throws {
        var answers = EventRecorder.Answers()
        answers.delayed = { request in
            var request = request
            request.timeoutInterval = 0.2
            return (.useNewRequest, request)
        }
        let recorder = EventRecorder(answers)
        try await withScenario(
            delegate: recorder, configure: { $0.timeoutIntervalForRequest = 3600 }, reply: { _ in [.stall] }
        ) { (server, session) async throws in
            let task = session.dataTask(with: server.url())
            task.earliestBeginDate = Date().addingTimeInterval(0.05)
            task.resume()
            let ended = try await recorder.completion(of: task)
            #expect((ended.error as? URLError)?.code == .timedOut)
        }
    }

    @Test func `the delegate may cancel a delayed task`() async throws {
        var answers = EventRecorder.Answers()
        answers.delayed = { _ in (.cancel, nil) }
        let recorder = EventRecorder(answers)
        try await withScenario(delegate: recorder, reply: { _ in .ok() }) { (server, session) async throws in
            let task = session.dataTask(with: server.url())
            task.earliestBeginDate = Date().addingTimeInterval(0.05)
            task.resume()
            let ended = try await recorder.completion(of: task)
            #expect((ended.error as? URLError)?.code == .cancelled)
            #expect(server.requests.isEmpty)
        }
    }

    @Test(.over(.http1))
    func `a task completes exactly once when cancelled, suspended and invalidated in any order`() async throws {
        try await withScriptedServer(reply: { _ in .chunked(["a", "b", "c"]) }) { (server) async throws in
            for seed in 0..<60 {
                var numbers = SeededNumbers(seed: UInt64(seed))
                func random(_ limit: Int) -> Int { numbers.next(below: limit) }
                let recorder = EventRecorder()
                let session = try URLSession(configuration: .scripted(), delegate: recorder, delegateQueue: nil)
                let tasks = (0..<6).map { session.dataTask(with: server.url("/\($0)")) }
                for task in tasks { task.resume() }
                for _ in 0..<random(20) {
                    let task = tasks[random(tasks.count)]
                    switch random(4) {
                    case 0: task.suspend()
                    case 1: task.resume()
                    case 2: task.cancel()
                    default: await Task.yield()
                    }
                }
                session.invalidateAndCancel()
                for task in tasks {
                    let record = try await recorder.completion(of: task)
                    #expect(record.letters.filter { $0 == "E" }.count == 1, "seed \(seed): \(record.letters)")
                }
                #expect(try await recorder.invalidation() == 1)
                #expect(recorder.faults.isEmpty, "seed \(seed): \(recorder.faults)")
            }
        }
    }
}
