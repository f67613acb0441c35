// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Synchronization
import Testing
import URLLoading

/// An app's own storage is called by every kind of task, through the methods that it overrides.
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct CookieStorageSubclassTests {
    /// Records its calls.
    class RecordingStorage: HTTPCookieStorage, @unchecked Sendable {
        private let lines = Mutex<[String]>([])
        var journal: [String] { lines.withLock { $0 } }
        func note(_ line: String) { lines.withLock { $0.append(line) } }
        func text(_ cookies: [HTTPCookie]) -> String { cookies.map { "\($0.name)=\($0.value)" }.joined(separator: ",") }
    }

    final class TaskOverridesStorage: RecordingStorage, @unchecked Sendable {
        override func storeCookies(_ cookies: [HTTPCookie], for task: URLSessionTask) {
            note("store \(text(cookies)) of \(task.currentRequest?.url?.path ?? "")")
        }

        override func getCookiesFor(_ task: URLSessionTask, completionHandler: @escaping @Sendable ([HTTPCookie]?) -> Void) {
            note("get for \(task.currentRequest?.url?.path ?? "")")
            let made = ["x", "y"].compactMap {
                HTTPCookie(properties: [.name: $0, .value: "1", .domain: "elsewhere.example", .path: "/"])
            }
            // A subclass may call the handler at any time, and on any thread.
            Thread.detachNewThread { completionHandler(made) }
        }
    }

    final class URLOverridesStorage: RecordingStorage, @unchecked Sendable {
        override func setCookies(_ cookies: [HTTPCookie], for url: URL?, mainDocumentURL: URL?) {
            note("set \(text(cookies)) of \(url?.path ?? "")")
            super.setCookies(cookies, for: url, mainDocumentURL: mainDocumentURL)
        }

        override func cookies(for url: URL) -> [HTTPCookie]? {
            note("cookies for \(url.path)")
            return super.cookies(for: url)
        }
    }

    /// Calls its completion handler with one cookie, and then with another.
    final class Doubling: RecordingStorage, @unchecked Sendable {
        override func getCookiesFor(_ task: URLSessionTask, completionHandler: @escaping @Sendable ([HTTPCookie]?) -> Void) {
            for name in ["first", "second"] {
                completionHandler(
                    HTTPCookie(properties: [.name: name, .value: "1", .domain: "elsewhere.example", .path: "/"]).map { [$0] }
                )
            }
        }
    }

    /// Returns no cookies.
    final class Empty: RecordingStorage, @unchecked Sendable {
        override func getCookiesFor(_ task: URLSessionTask, completionHandler: @escaping @Sendable ([HTTPCookie]?) -> Void) {
            completionHandler(nil)
        }
    }

    /// Loads a URL once, with one kind of task.
    enum Loading: String, CaseIterable, Sendable {
        case data, completion, delegate, download, upload, bytes

        func load(_ url: URL, _ session: URLSession, _ recorder: EventRecorder) async throws {
            switch self {
            case .data:
                _ = try await session.data(from: url)
            case .completion:
                let done = Delivered<Bool>()
                session.dataTask(with: url) { _, _, _ in done(true) }.resume()
                _ = try await done.value
            case .delegate:
                let task = session.dataTask(with: url)
                task.resume()
                try await recorder.completion(of: task)
            case .download:
                try FileManager.default.removeItem(at: try await session.download(from: url).0)
            case .upload:
                _ = try await session.upload(for: URLRequest(url, method: "POST"), from: Data("x".utf8))
            case .bytes:
                for try await _ in try await session.bytes(from: url).0 {}
            }
        }
    }

    @Test(arguments: Loading.allCases)
    func `a storage that overrides the methods for tasks is called through these methods`(loading: Loading) async throws {
        let storage = TaskOverridesStorage()
        let recorder = EventRecorder()
        try await withScenario(
            delegate: recorder, configure: { $0.httpCookieStorage = storage },
            reply: { _ in .ok("body", [("Set-Cookie", "a=1")]) }
        ) { (server, session) async throws in
            try await loading.load(server.url("/p"), session, recorder)
            #expect(server.requests.map { $0.header("Cookie") } == ["x=1; y=1"])
            #expect(storage.journal == ["get for /p", "store a=1 of /p"])
            // The session stores no cookie except by these calls.
            #expect(storage.cookies == [])
        }
    }

    @Test(arguments: Loading.allCases)
    func `a storage that overrides the methods for URLs is called through these methods`(loading: Loading) async throws {
        let storage = URLOverridesStorage()
        let recorder = EventRecorder()
        try await withScenario(
            delegate: recorder, configure: { $0.httpCookieStorage = storage },
            reply: { $0.order == 0 ? .ok("body", [("Set-Cookie", "a=1"), ("Set-Cookie", "b=2")]) : .ok() }
        ) { (server, session) async throws in
            try await loading.load(server.url("/p"), session, recorder)
            try await loading.load(server.url("/q"), session, recorder)
            #expect(server.requests.map { $0.header("Cookie") } == [nil, "a=1; b=2"])
            #expect(storage.journal == ["cookies for /p", "set a=1,b=2 of /p", "cookies for /q"])
        }
    }

    @Test func `cookies of each hop are looked up and stored for its own URL`() async throws {
        for storage in [TaskOverridesStorage(), URLOverridesStorage()] as [RecordingStorage] {
            try await withScenario(
                configure: { $0.httpCookieStorage = storage },
                reply: { request in
                    request.path == "/a"
                        ? .redirect(302, to: "/b", [("Set-Cookie", "one=1")]) : .ok("", [("Set-Cookie", "two=2")])
                }
            ) { (server, session) async throws in
                _ = try await session.data(from: server.url("/a"))
                if storage is URLOverridesStorage {
                    #expect(storage.journal == ["cookies for /a", "set one=1 of /a", "cookies for /b", "set two=2 of /b"])
                    #expect(server.requests.map { $0.header("Cookie") } == [nil, "one=1"])
                } else {
                    #expect(storage.journal == ["get for /a", "store one=1 of /a", "get for /b", "store two=2 of /b"])
                    #expect(server.requests.map { $0.header("Cookie") } == ["x=1; y=1", "x=1; y=1"])
                }
            }
        }
    }

    @Test func `an answered 401 stores its cookies before the next request`() async throws {
        let storage = URLOverridesStorage()
        try await withScenario(
            configure: { $0.httpCookieStorage = storage },
            reply: { request in
                let fields = [("Set-Cookie", "nonce=7"), ("WWW-Authenticate", "Basic realm=\"x\"")]
                return request.header("Authorization") == nil ? .status(401, fields) : .ok("in")
            }
        ) { (server, session) async throws in
            #expect(try await session.text(server.url("/", user: "user:pass")) == "in")
            #expect(server.requests.map { $0.header("Cookie") } == [nil, "nonce=7"])
        }
    }

    @Test func `cookies of an informational response are stored`() async throws {
        let storage = URLOverridesStorage()
        try await withScenario(
            configure: { $0.httpCookieStorage = storage },
            reply: { request in
                request.order == 0 ? .ok().after(.head(103, [("Set-Cookie", "early=1")])) : .ok()
            }
        ) { (server, session) async throws in
            _ = try await session.data(from: server.url())
            _ = try await session.data(from: server.url())
            #expect(server.requests.map { $0.header("Cookie") } == [nil, "early=1"])
        }
    }

    @Test func `a request's own cookies precede those of the app's storage`() async throws {
        try await withScenario(
            configure: { $0.httpCookieStorage = TaskOverridesStorage() }, reply: { _ in .ok() }
        ) { (server, session) async throws in
            _ = try await session.data(for: URLRequest(server.url(), headers: ["Cookie": "own=2"]))
            #expect(server.requests.map { $0.values(of: "Cookie") } == [["own=2; x=1; y=1"]])
        }
    }

    @Test func `only the first cookies of a storage that answers twice are sent`() async throws {
        try await withScenario(configure: { $0.httpCookieStorage = Doubling() }, reply: { _ in .ok() }) {
            (server, session) async throws in
            for _ in 0..<5 { _ = try await session.data(from: server.url("/", host: "localhost")) }
            #expect(server.requests.map { $0.header("Cookie") } == Array(repeating: "first=1", count: 5))
        }
    }

    @Test func `no cookies are sent if the storage returns none`() async throws {
        let storage = Empty()
        storage.setCookie(try cookie("a"))
        try await withScenario(configure: { $0.httpCookieStorage = storage }, reply: { _ in .ok() }) {
            (server, session) async throws in
            _ = try await session.data(from: server.url("/", host: "localhost"))
            #expect(server.requests.map { $0.header("Cookie") } == [nil])
        }
    }

    @Test func `a storage is not called for requests that do not handle cookies`() async throws {
        let storage = TaskOverridesStorage()
        let reply: @Sendable (RecordedRequest) -> ScriptedReply = { _ in .ok("", [("Set-Cookie", "a=1")]) }
        try await withScenario(configure: { $0.httpCookieStorage = storage }, reply: reply) { (server, session) async throws in
            var request = URLRequest(server.url())
            request.httpShouldHandleCookies = false
            _ = try await session.data(for: request)
            #expect(storage.journal == [])
        }
        try await withScenario(
            configure: {
                $0.httpCookieStorage = storage
                $0.httpCookieAcceptPolicy = .never
            }, reply: reply
        ) { (server, session) async throws in
            _ = try await session.data(from: server.url("/p"))
            #expect(storage.journal == ["get for /p"])
        }
    }

    @Test func `third-party cookies are not stored in an app's own storage`() async throws {
        let storage = TaskOverridesStorage()
        try await withScenario(
            configure: { $0.httpCookieStorage = storage }, reply: { _ in .ok("", [("Set-Cookie", "a=1")]) }
        ) { (server, session) async throws in
            var request = URLRequest(server.url("/p"))
            request.mainDocumentURL = URL(string: "http://other.example/")
            _ = try await session.data(for: request)
            #expect(storage.journal == ["get for /p"])
        }
    }

    @Test func `cookies of an app's own storage cannot inject header fields`() async throws {
        final class Hostile: HTTPCookieStorage, @unchecked Sendable {
            override func getCookiesFor(_ task: URLSessionTask, completionHandler: @escaping @Sendable ([HTTPCookie]?) -> Void) {
                let made = ["1\r\nX-Evil: 1", "1\nX-Evil: 1", "1\0"].compactMap {
                    HTTPCookie(properties: [.name: "x", .value: $0, .domain: "localhost", .path: "/"])
                }
                completionHandler(made)
            }
        }
        try await withScenario(configure: { $0.httpCookieStorage = Hostile() }, reply: { _ in .ok() }) {
            (server, session) async throws in
            _ = try? await session.data(from: server.url())
            for request in server.requests {
                #expect(request.header("X-Evil") == nil)
                #expect(!request.headText.contains("\0"))
            }
        }
    }

    @Test func `cancelling a load while its storage is called ends the load without a request`() async throws {
        final class Silent: HTTPCookieStorage, @unchecked Sendable {
            let asked = Delivered<Bool>()
            override func getCookiesFor(_ task: URLSessionTask, completionHandler: @escaping @Sendable ([HTTPCookie]?) -> Void) {
                asked(true)
            }
        }
        let storage = Silent()
        let recorder = EventRecorder()
        try await withScenario(
            delegate: recorder, configure: { $0.httpCookieStorage = storage }, reply: { _ in .ok() }
        ) { (server, session) async throws in
            let task = session.dataTask(with: server.url())
            task.resume()
            _ = try await storage.asked.value
            task.cancel()
            let record = try await recorder.completion(of: task)
            #expect((record.error as? URLError)?.code == .cancelled)
            #expect(server.requests.isEmpty)
        }
    }

    @Test func `reset empties an app's own storage`() async throws {
        let storage = URLOverridesStorage()
        storage.setCookie(try cookie("a"))
        try await withSession {
            $0.httpCookieStorage = storage
        } test: { (session) async throws in
            await session.reset()
            #expect(storage.cookies == [])
        }
    }
}
