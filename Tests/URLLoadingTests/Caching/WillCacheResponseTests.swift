// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// `willCacheResponse`: when delegates are asked, and how their answer is used.
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct WillCacheResponseTests {
    typealias Answer = @Sendable (CachedURLResponse) -> CachedURLResponse?

    private func run(
        _ task: URLSessionTask, _ delegate: CachingDelegate
    ) async throws -> CachingDelegate.State {
        task.resume()
        return try await delegate.completion(of: task)
    }

    @Test func `the delegate is asked after all data and before the end`() async throws {
        let delegate = CachingDelegate()
        try await withCachedScenario(
            delegate: delegate,
            reply: { _ in .chunked(["one", "two"], Fields.fresh + [("Content-Type", "text/x-a")]) }
        ) { (server, session, scene) async throws in
            let state = try await run(session.dataTask(with: server.url("/a")), delegate)
            #expect(state.shape == "RDCME")
            let proposed = try #require(state.proposed.first)
            #expect(state.proposed.count == 1)
            #expect(proposed.data == Data("onetwo".utf8) && proposed.storagePolicy == .allowed && proposed.userInfo == nil)
            let response = try #require(proposed.response as? HTTPURLResponse)
            #expect(response.url == server.url("/a") && response.statusCode == 200 && response.mimeType == "text/x-a")
            #expect(response.value(forHTTPHeaderField: "Cache-Control") == "max-age=600")
            // A hit is not stored again.
            let hit = try await run(session.dataTask(with: server.url("/a")), delegate)
            #expect(hit.shape == "RDME" && hit.body == Data("onetwo".utf8))
            #expect(server.requests.count == 1)
        }
    }

    @Test func `after a veto, nothing is stored`() async throws {
        let delegate = CachingDelegate { _ in nil }
        try await withCachedScenario(
            delegate: delegate, reply: { .ok("\($0.order)", Fields.fresh) }
        ) { (server, session, scene) async throws in
            for order in 0..<2 {
                let state = try await run(session.dataTask(with: server.url()), delegate)
                #expect(state.body == Data("\(order)".utf8) && state.shape == "RDCME")
            }
            #expect(scene.cache.cachedResponse(for: URLRequest(server.url())) == nil)
            await session.flush()
            #expect(scene.reopened().cachedResponse(for: URLRequest(server.url())) == nil)
        }
    }

    @Test func `a veto of a new response removes the old one`() async throws {
        let delegate = CachingDelegate { $0.data == Data("0".utf8) ? $0 : nil }
        try await withCachedScenario(
            delegate: delegate, reply: { .ok("\($0.order)", Fields.stale) }
        ) { (server, session, _) async throws in
            for order in 0..<3 {
                let state = try await run(session.dataTask(with: server.url()), delegate)
                #expect(state.body == Data("\(order)".utf8))
            }
        }
    }

    @Test func `the delegate's changed response is stored`() async throws {
        let delegate = CachingDelegate { proposed in
            CachedURLResponse(
                response: proposed.response, data: Data("changed by the app".utf8), userInfo: ["mark": "mine", "n": 5],
                storagePolicy: .allowed
            )
        }
        try await withCachedScenario(delegate: delegate, reply: { _ in .ok("body", Fields.fresh) }) {
            (server, session, scene) async throws in
            let first = try await run(session.dataTask(with: server.url()), delegate)
            #expect(first.body == Data("body".utf8))
            let second = try await run(session.dataTask(with: server.url()), delegate)
            #expect(second.body == Data("changed by the app".utf8))
            #expect(server.requests.count == 1)
            await session.flush()
            for cache in [scene.cache, scene.reopened()] {
                let entry = try #require(cache.cachedResponse(for: URLRequest(server.url())))
                #expect(entry.userInfo?["mark"] as? String == "mine" && entry.userInfo?["n"] as? Int == 5)
                #expect(entry.data == Data("changed by the app".utf8))
            }
        }
    }

    @Test func `the delegate can change the stored header fields`() async throws {
        let delegate = CachingDelegate { proposed in
            guard let response = proposed.response as? HTTPURLResponse, let url = response.url,
                let changed = HTTPURLResponse(
                    url: url, statusCode: 200, httpVersion: "HTTP/1.1",
                    headerFields: ["Cache-Control": "max-age=600", "Content-Type": "text/plain", "X-Mine": "yes"])
            else { return nil }
            return CachedURLResponse(response: changed, data: proposed.data)
        }
        try await withCachedScenario(delegate: delegate, reply: { _ in .ok("body", Fields.stale) }) {
            (server, session, _) async throws in
            _ = try await run(session.dataTask(with: server.url()), delegate)
            let (text, response) = try await session.text(URLRequest(server.url()))
            #expect(text == "body" && server.requests.count == 1)
            #expect(response.value(forHTTPHeaderField: "X-Mine") == "yes")
            #expect(response.value(forHTTPHeaderField: "ETag") == nil)
        }
    }

    @Test(arguments: [
        (URLCache.StoragePolicy.allowed, true, true), (.allowedInMemoryOnly, true, false), (.notAllowed, false, false),
    ])
    func `the delegate decides where a response is stored`(
        policy: URLCache.StoragePolicy, inMemory: Bool, onDisk: Bool
    ) async throws {
        let delegate = CachingDelegate { proposed in
            CachedURLResponse(response: proposed.response, data: proposed.data, userInfo: nil, storagePolicy: policy)
        }
        try await withCachedScenario(delegate: delegate, reply: { _ in .ok("body", Fields.fresh) }) {
            (server, session, scene) async throws in
            _ = try await run(session.dataTask(with: server.url()), delegate)
            await session.flush()
            let request = URLRequest(server.url())
            #expect(scene.reopened().cachedResponse(for: request)?.data == (onDisk ? Data("body".utf8) : nil))
            #expect(scene.cache.cachedResponse(for: request)?.data == (inMemory ? Data("body".utf8) : nil))
            _ = try await run(session.dataTask(with: server.url()), delegate)
            #expect(server.requests.count == (inMemory ? 1 : 2))
        }
    }

    @Test(arguments: [URLCache.StoragePolicy.allowed, .allowedInMemoryOnly])
    func `a revalidation keeps the decision of the delegate`(policy: URLCache.StoragePolicy) async throws {
        let delegate = CachingDelegate { proposed in
            CachedURLResponse(
                response: proposed.response, data: proposed.data, userInfo: ["mark": "mine"], storagePolicy: policy)
        }
        try await withCachedScenario(
            delegate: delegate,
            reply: { $0.order == 0 ? .ok("body", Fields.stale) : .bare(304, Fields.fresh) }
        ) { (server, session, scene) async throws in
            for _ in 0..<3 {
                let state = try await run(session.dataTask(with: server.url()), delegate)
                #expect(state.body == Data("body".utf8))
            }
            #expect(server.requests.count == 2)
            await session.flush()
            let entry = try #require(scene.cache.cachedResponse(for: URLRequest(server.url())))
            #expect(entry.userInfo?["mark"] as? String == "mine" && entry.storagePolicy == policy)
            let next = scene.reopened().cachedResponse(for: URLRequest(server.url()))
            #expect(next?.userInfo?["mark"] as? String == (policy == .allowed ? "mine" : nil))
        }
    }

    @Test func `a body too large for memory is passed to the delegate and stored on disk`() async throws {
        let content = ScriptedFile.pattern(3 << 20)
        let delegate = CachingDelegate()
        try await withCachedScenario(
            memory: 1 << 20, delegate: delegate, reply: { _ in .ok(content, Fields.fresh) }
        ) { (server, session, _) async throws in
            let first = try await run(session.dataTask(with: server.url()), delegate)
            #expect(first.shape == "RDCME" && first.proposed.first?.data == Data(content))
            await session.flush()
            let hit = try await run(session.dataTask(with: server.url()), delegate)
            #expect(hit.body == Data(content) && hit.shape == "RDME" && server.requests.count == 1)
        }
    }

    @Test func `the async form of willCacheResponse is called`() async throws {
        let delegate = AsyncCachingDelegate()
        try await withCachedScenario(delegate: delegate, reply: { .ok("\($0.order)", Fields.fresh) }) {
            (server, session, scene) async throws in
            session.dataTask(with: server.url()).resume()
            try await delegate.ends.count(reaches: 1)
            let entry = try #require(scene.cache.cachedResponse(for: URLRequest(server.url())))
            #expect(entry.userInfo?["by"] as? String == "async")
        }
    }

    struct UnstoredResponse: Sendable, CustomStringConvertible {
        var description: String
        var method = "GET"
        var status = 200
        var fields: [(String, String)] = Fields.fresh
        var body = "body"
    }

    @Test(arguments: [
        UnstoredResponse(description: "no-store", fields: [("Cache-Control", "no-store")]),
        UnstoredResponse(description: "404", status: 404),
        UnstoredResponse(description: "500", status: 500),
        UnstoredResponse(description: "POST", method: "POST"),
        UnstoredResponse(description: "more than a twentieth", body: String(repeating: "x", count: 100_000)),
    ])
    func `the delegate is not asked if nothing would be stored`(row: UnstoredResponse) async throws {
        let delegate = CachingDelegate()
        try await withCachedScenario(
            memory: 1 << 20, disk: 1 << 20, delegate: delegate,
            reply: { _ in .status(row.status, row.fields, body: row.body) }
        ) { (server, session, _) async throws in
            let state = try await run(session.dataTask(with: URLRequest(server.url(), method: row.method)), delegate)
            #expect(state.shape == "RDME" && state.proposed.isEmpty)
        }
    }

    @Test func `redirects and errors are stored without asking the delegate`() async throws {
        let delegate = CachingDelegate { _ in nil }
        try await withCachedScenario(
            delegate: delegate,
            reply: { $0.path == "/old" ? .redirect(308, to: "/none") : .status(404, Fields.fresh, body: "none") }
        ) { (server, session, scene) async throws in
            _ = try await run(session.dataTask(with: server.url("/old")), delegate)
            #expect(delegate.asked == 0)
            for (path, status) in [("/old", 308), ("/none", 404)] {
                let kept = try #require(scene.cache.cachedResponse(for: URLRequest(server.url(path))))
                #expect((kept.response as? HTTPURLResponse)?.statusCode == status)
            }
        }
    }

    @Test func `tasks with a completion handler do not ask the delegate`() async throws {
        let delegate = CachingDelegate { _ in nil }
        try await withCachedScenario(delegate: delegate, reply: { .ok("\($0.order)", Fields.fresh) }) {
            (server, session, scene) async throws in
            let done = Delivered<Data?>()
            let task = session.dataTask(with: server.url("/a")) { data, _, _ in done(data) }
            task.resume()
            #expect(try await done.value == Data("0".utf8))
            #expect(try await session.text(server.url("/b")) == "1")
            #expect(delegate.asked == 0)
            for path in ["/a", "/b"] {
                #expect(scene.cache.cachedResponse(for: URLRequest(server.url(path))) != nil)
            }
        }
    }

    @Test func `downloads and sessions without a cache do not ask the delegate`() async throws {
        let delegate = CachingDelegate()
        try await withCachedScenario(delegate: delegate, reply: { _ in .ok("x", Fields.fresh) }) {
            (server, session, _) async throws in
            _ = try await run(session.downloadTask(with: server.url()), delegate)
            #expect(delegate.asked == 0)
        }
        try await withScenario(
            delegate: delegate, configure: { $0.urlCache = nil }, reply: { _ in .ok("x", Fields.fresh) }
        ) { (server, session) async throws in
            let fresh = CachingDelegate()
            let task = session.dataTask(with: server.url())
            task.delegate = fresh
            _ = try await run(task, fresh)
            #expect(delegate.asked == 0 && fresh.asked == 0)
        }
    }

    @Test func `a task delegate is asked instead of the session delegate`() async throws {
        let delegate = CachingDelegate()
        let own = CachingDelegate { _ in nil }
        try await withCachedScenario(delegate: delegate, reply: { _ in .ok("x", Fields.fresh) }) {
            (server, session, scene) async throws in
            let task = session.dataTask(with: server.url())
            task.delegate = own
            _ = try await run(task, own)
            #expect(own.asked == 1 && delegate.asked == 0)
            #expect(scene.cache.cachedResponse(for: URLRequest(server.url())) == nil)
        }
    }

    @Test func `a load that fails does not ask the delegate`() async throws {
        let delegate = CachingDelegate()
        try await withCachedScenario(
            delegate: delegate,
            reply: { _ in .begun(200, Fields.fresh + [("Content-Length", "9")], "abc").then(.close) }
        ) { (server, session, _) async throws in
            let state = try await run(session.dataTask(with: server.url()), delegate)
            #expect(state.shape == "RDME" && state.isFailed && state.proposed.isEmpty)
        }
    }
}

/// Records a task's calls, and answers with the response to store.
private final class CachingDelegate: NSObject, URLSessionDataDelegate, URLSessionDownloadDelegate, Sendable {
    struct State: Sendable {
        var letters = ""
        var body = Data()
        var proposed: [CachedURLResponse] = []
        var isFailed = false
        var isComplete = false
        /// The letters, with consecutive data calls as one letter.
        var shape: String {
            letters.reduce(into: "") { text, letter in if letter != "D" || text.last != "D" { text.append(letter) } }
        }
    }

    private let states = Watched<[Int: State]>([:])
    private let answer: WillCacheResponseTests.Answer

    init(_ answer: @escaping WillCacheResponseTests.Answer = { $0 }) { self.answer = answer }

    var asked: Int { states.read { $0.values.reduce(0) { $0 + $1.proposed.count } } }

    func completion(of task: URLSessionTask) async throws -> State {
        let id = task.taskIdentifier
        return try await states.value { $0[id].flatMap { $0.isComplete ? $0 : nil } }
    }

    private func note(_ task: URLSessionTask, _ letter: String, _ change: @escaping @Sendable (inout State) -> Void = { _ in }) {
        let id = task.taskIdentifier
        states.change { states in
            states[id, default: State()].letters += letter
            change(&states[id, default: State()])
        }
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        note(dataTask, "R")
        completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        note(dataTask, "D") { $0.body.append(data) }
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse,
        completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
    ) {
        note(dataTask, "C") { $0.proposed.append(proposedResponse) }
        let answer = answer
        Task { completionHandler(answer(proposedResponse)) }
    }

    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
        note(downloadTask, "F")
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
        note(task, "M")
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        note(task, "E") { state in
            state.isFailed = error != nil
            state.isComplete = true
        }
    }
}

private final class AsyncCachingDelegate: NSObject, URLSessionDataDelegate, Sendable {
    let ends = Delivered<Bool>()

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse
    ) async -> CachedURLResponse? {
        CachedURLResponse(
            response: proposedResponse.response, data: proposedResponse.data, userInfo: ["by": "async"],
            storagePolicy: .allowed
        )
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) { ends(true) }
}
