// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// What delegates receive for a response from the cache: the order of calls, and the metrics.
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct CacheHitTests {
    // MARK: The order of calls

    @Test func `a hit makes the same delegate calls as a load from the network`() async throws {
        let recorder = EventRecorder()
        try await withCachedScenario(delegate: recorder, reply: { _ in .ok("hello", Fields.fresh) }) {
            (server, session, _) async throws in
            for _ in 0..<2 {
                let task = session.dataTask(with: server.url())
                task.resume()
                let record = try await recorder.completion(of: task)
                #expect(record.letters == "cRDME" && record.body == Data("hello".utf8))
                #expect(task.countOfBytesReceived == 5 && task.countOfBytesExpectedToReceive == 5)
                #expect(task.progress.fractionCompleted == 1 && task.state == .completed)
                #expect((task.response as? HTTPURLResponse)?.statusCode == 200)
                #expect(recorder.faults.isEmpty)
            }
            #expect(server.requests.count == 1)
        }
    }

    @Test func `a revalidated response is delivered once`() async throws {
        let recorder = EventRecorder()
        try await withCachedScenario(
            delegate: recorder,
            reply: { $0.order == 0 ? .ok("hello", Fields.stale) : .bare(304, [("ETag", "\"v\"")]) }
        ) { (server, session, _) async throws in
            for _ in 0..<2 {
                let task = session.dataTask(with: server.url())
                task.resume()
                let record = try await recorder.completion(of: task)
                #expect(record.letters == "cRDME" && record.body == Data("hello".utf8))
                #expect((record.response as? HTTPURLResponse)?.statusCode == 200)
            }
            #expect(server.requests.count == 2)
        }
    }

    @Test func `the response disposition of a delegate can cancel a hit`() async throws {
        let isHit = Watched(false)
        var answers = EventRecorder.Answers()
        answers.response = { _, _ in isHit.read { $0 } ? .cancel : .allow }
        let recorder = EventRecorder(answers)
        try await withCachedScenario(delegate: recorder, reply: { _ in .ok("hello", Fields.fresh) }) {
            (server, session, _) async throws in
            _ = try await session.text(server.url())
            isHit.change { $0 = true }
            let task = session.dataTask(with: server.url())
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.letters == "cRME" && (record.error as? URLError)?.code == .cancelled)
            #expect(server.requests.count == 1)
            isHit.change { $0 = false }
            #expect(try await session.text(server.url()) == "hello")
            #expect(server.requests.count == 1)
        }
    }

    @Test(arguments: [5, 3 << 20])
    func `a hit can become a download`(size: Int) async throws {
        let content = ScriptedFile.pattern(size)
        var answers = EventRecorder.Answers()
        answers.response = { task, _ in
            task.originalRequest?.value(forHTTPHeaderField: "X-Turn") == nil ? .allow : .becomeDownload
        }
        let recorder = EventRecorder(answers)
        try await withCachedScenario(memory: 1 << 20, delegate: recorder, reply: { _ in .ok(content, Fields.fresh) }) {
            (server, session, _) async throws in
            _ = try await session.data(from: server.url())
            await session.flush()
            let task = session.dataTask(with: URLRequest(server.url(), headers: ["X-Turn": "1"]))
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.file == Data(content) && record.error == nil)
            #expect(server.requests.count == 1)
        }
    }

    @Test func `a large hit can be cancelled midway`() async throws {
        let content = ScriptedFile.pattern(4 << 20)
        var answers = EventRecorder.Answers()
        answers.data = { task, _ in
            if task.originalRequest?.value(forHTTPHeaderField: "X-Cancel") != nil { task.cancel() }
        }
        let recorder = EventRecorder(answers)
        try await withCachedScenario(memory: 1 << 20, delegate: recorder, reply: { _ in .ok(content, Fields.fresh) }) {
            (server, session, _) async throws in
            _ = try await session.data(from: server.url())
            await session.flush()
            let task = session.dataTask(with: URLRequest(server.url(), headers: ["X-Cancel": "1"]))
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect((record.error as? URLError)?.code == .cancelled || record.body.count == content.count)
            #expect(try await session.data(from: server.url()).0 == Data(content))
            #expect(server.requests.count == 1)
        }
    }

    @Test func `a hit is delivered after its task was suspended and resumed`() async throws {
        let recorder = EventRecorder()
        try await withCachedScenario(delegate: recorder, reply: { _ in .ok("hello", Fields.fresh) }) {
            (server, session, _) async throws in
            _ = try await session.text(server.url())
            let task = session.dataTask(with: server.url())
            task.resume()
            task.suspend()
            task.resume()
            #expect(try await recorder.completion(of: task).body == Data("hello".utf8))
        }
    }

    // MARK: Metrics

    private func transactions(
        _ recorder: EventRecorder, _ task: URLSessionTask
    ) async throws -> [URLSessionTaskTransactionMetrics] {
        task.resume()
        return try #require(try await recorder.completion(of: task).metrics).transactionMetrics
    }

    @Test func `a hit is one transaction from the local cache`() async throws {
        let recorder = EventRecorder()
        try await withCachedScenario(delegate: recorder, reply: { _ in .ok("hello", Fields.fresh) }) {
            (server, session, _) async throws in
            let first = try await transactions(recorder, session.dataTask(with: server.url()))
            #expect(first.map(\.resourceFetchType) == [.networkLoad])
            let hit = try await transactions(recorder, session.dataTask(with: server.url()))
            #expect(hit.map(\.resourceFetchType) == [.localCache])
            let one = try #require(hit.first)
            #expect(one.request.url == server.url() && (one.response as? HTTPURLResponse)?.statusCode == 200)
            #expect(one.fetchStartDate != nil && one.responseEndDate != nil)
            #expect(one.domainLookupStartDate == nil && one.domainLookupEndDate == nil)
            #expect(one.connectStartDate == nil && one.connectEndDate == nil)
            #expect(one.secureConnectionStartDate == nil && one.secureConnectionEndDate == nil)
            #expect(one.countOfRequestHeaderBytesSent == 0 && one.countOfResponseHeaderBytesReceived == 0)
            #expect(one.countOfResponseBodyBytesReceived == 0 && one.remoteAddress == nil)
        }
    }

    @Test func `a revalidated hit is a transaction of the network and one of the cache`() async throws {
        let recorder = EventRecorder()
        try await withCachedScenario(
            delegate: recorder,
            reply: { $0.order == 0 ? .ok("hello", Fields.stale) : .bare(304, [("ETag", "\"v\"")]) }
        ) { (server, session, _) async throws in
            _ = try await session.text(server.url())
            let both = try await transactions(recorder, session.dataTask(with: server.url()))
            #expect(both.map(\.resourceFetchType) == [.networkLoad, .localCache])
            #expect((both.first?.response as? HTTPURLResponse)?.statusCode == 304)
            #expect((both.last?.response as? HTTPURLResponse)?.statusCode == 200)
        }
    }

    @Test func `the delegate of an async call receives the calls for a hit`() async throws {
        try await withCachedScenario(reply: { _ in .ok("hello", Fields.fresh) }) { (server, session, _) async throws in
            _ = try await session.text(server.url())
            let own = HitDelegate()
            let (data, _) = try await session.data(for: URLRequest(server.url()), delegate: own)
            #expect(data == Data("hello".utf8))
            #expect(try await own.types.value == [.localCache])
            #expect(own.created.all.count == 1 && server.requests.count == 1)
        }
    }

    @Test func `a redirect to a stored response is two transactions`() async throws {
        let recorder = EventRecorder()
        try await withCachedScenario(
            delegate: recorder, reply: { $0.path == "/a" ? .redirect(302, to: "/b") : .ok("end", Fields.fresh) }
        ) { (server, session, _) async throws in
            _ = try await session.text(server.url("/b"))
            let both = try await transactions(recorder, session.dataTask(with: server.url("/a")))
            #expect(both.map(\.resourceFetchType) == [.networkLoad, .localCache])
            #expect(both.map { $0.request.url?.path } == ["/a", "/b"])
        }
    }
}

private final class HitDelegate: NSObject, URLSessionTaskDelegate, Sendable {
    let created = Delivered<Int>()
    let types = Delivered<[URLSessionTaskMetrics.ResourceFetchType]>()

    func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask) { created(task.taskIdentifier) }

    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
        types(metrics.transactionMetrics.map(\.resourceFetchType))
    }
}
