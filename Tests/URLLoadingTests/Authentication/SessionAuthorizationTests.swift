// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// `Authorization` in `httpAdditionalHeaders`: where it is sent, what takes precedence, and where it is never visible.
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct SessionAuthorizationTests {
    private static let mine = "Bearer session-secret"
    private static let ada = basic("ada", "lovelace")

    private static func logIn(_ configuration: URLSessionConfiguration) {
        configuration.httpAdditionalHeaders = ["Authorization": mine, "X-Session": "1"]
    }

    private static func isHidden(_ value: Any) -> Bool {
        var text = ""
        dump(value, to: &text)
        return !(text + String(describing: value) + String(reflecting: value)).contains("session-secret")
    }

    // MARK: Where it is sent

    @Test func `every kind of task sends the session-wide Authorization, in default and ephemeral sessions`() async throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write(Data("body".utf8), to: "body")
        try await withScriptedServer(reply: { $0.method == "HEAD" ? .bare(200) : .ok("in") }) { (server) async throws in
            for configuration in [URLSessionConfiguration.default, .ephemeral] {
                configuration.urlCache = nil
                try configuration.trustVersion()
                Self.logIn(configuration)
                let session = URLSession(configuration: configuration)
                defer { session.invalidateAndCancel() }
                let post = URLRequest(server.url(), method: "POST", headers: ["X-Own": "1"], body: Data("x".utf8))
                #expect(try await session.text(server.url()) == "in")
                #expect(try await session.text(URLRequest(server.url(), method: "HEAD")).text == "")
                #expect(try await session.text(post).text == "in")
                _ = try await session.upload(for: URLRequest(server.url(), method: "PUT"), fromFile: file)
                let (location, _) = try await session.download(from: server.url())
                try FileManager.default.removeItem(at: location)
                let (bytes, _) = try await session.bytes(from: server.url())
                #expect(try await bytes.reduce(into: 0) { count, _ in count += 1 } == 2)
            }
            #expect(server.requests.count == 12)
            #expect(server.requests.allSatisfy { $0.values(of: "Authorization") == [Self.mine] })
        }
    }

    @Test func `each task sends the session-wide Authorization to the first origin of the task`() async throws {
        try await withScriptedServer(reply: { _ in .ok("other") }) { (other) async throws in
            try await withScenario(configure: Self.logIn, reply: { _ in .ok("one") }) { (server, session) async throws in
                for _ in 0..<2 {
                    #expect(try await session.text(server.url()) == "one")
                    #expect(try await session.text(other.url()) == "other")
                }
                #expect((server.requests + other.requests).map(\.authorization) == Array(repeating: Self.mine, count: 4))
            }
        }
    }

    @Test func `over HTTP version 2, the session-wide Authorization is sent once per request`() async throws {
        try await withHTTP2Scenario(configure: Self.logIn, reply: { .ok($0.header("authorization") ?? "nobody") }) {
            (server, session) async throws in
            for path in ["/1", "/1", "/2"] { #expect(try await session.text(server.url(path)) == Self.mine) }
            #expect(server.requests.map { $0.values(of: "authorization").count } == [1, 1, 1])
        }
    }

    @Test func `a retry over a new connection sends the session-wide Authorization again`() async throws {
        try await withScenario(
            configure: Self.logIn, reply: { $0.order == 1 ? [.close] : .ok("\($0.order)") }
        ) { (server, session) async throws in
            for text in ["0", "2"] { #expect(try await session.text(server.url()) == text) }
            #expect(server.requests.map(\.authorization) == [Self.mine, Self.mine, Self.mine])
        }
    }

    @Test func `a background revalidation of a stale response sends the session-wide Authorization`() async throws {
        let lenient = [("Cache-Control", "max-age=60, stale-while-revalidate=600"), ("Age", "100")]
        try await withCachedScenario(configure: Self.logIn, reply: { .ok("\($0.order)", lenient) }) {
            (server, session, _) async throws in
            for _ in 0..<2 { #expect(try await session.text(server.url()) == "0") }
            #expect(try await server.request(1).authorization == Self.mine)
        }
    }

    // MARK: Redirects

    @Test func `a redirect from https to http removes it for the rest of the task`() async throws {
        let certificates = try TestCertificates.shared.get()
        let back = Delivered<String>()
        try await withScriptedServer(reply: { _ in .redirect(302, to: back.all.first ?? "") }) { (clear) async throws in
            let target = clear.url("/b").absoluteString
            try await withScenario(
                identity: certificates.valid,
                configure: {
                    $0.tlsTrustRoots = [certificates.root]
                    Self.logIn($0)
                },
                reply: { $0.path == "/a" ? .redirect(302, to: target) : .ok("end") }
            ) { (server, session) async throws in
                back(server.url("/c").absoluteString)
                #expect(try await session.text(server.url("/a")) == "end")
                #expect(server.requests.map(\.authorization) == [Self.mine, nil])
                #expect(clear.requests.map(\.authorization) == [nil])
                #expect((server.requests + clear.requests).allSatisfy { $0.header("X-Session") == "1" })
            }
        }
    }

    @Test func `the first origin of a task is https after an HSTS upgrade`() async throws {
        let certificates = try TestCertificates.shared.get()
        try await withScenario(
            identity: certificates.valid,
            configure: {
                $0.tlsTrustRoots = [certificates.root]
                Self.logIn($0)
            },
            reply: {
                let fields = [("Strict-Transport-Security", "max-age=1000")]
                return $0.path == "/a" ? .status(302, fields + [("Location", "/b")]) : .ok("end", fields)
            }
        ) { (server, session) async throws in
            #expect(try await session.text(server.url("/", host: "localhost")) == "end")
            let clear = server.url("/a", host: "localhost").absoluteString.replacingOccurrences(of: "https:", with: "http:")
            #expect(try await session.text(try #require(URL(string: clear))) == "end")
            #expect(server.requests.map(\.path) == ["/", "/a", "/b"])
            #expect(server.requests.map(\.authorization) == [Self.mine, Self.mine, Self.mine])
        }
    }

    @Test func `a resumed download sends the session-wide field to its first origin, and resume data omits it`() async throws {
        let file = ScriptedFile(ScriptedFile.pattern(600_000))
        let recorder = EventRecorder()
        try await withScriptedServer(
            reply: { $0.order == 0 ? file.reply(to: $0, cutAfter: 200_000) : file.reply(to: $0) }
        ) { (store) async throws in
            let place = store.url("/file").absoluteString
            try await withScenario(
                delegate: recorder, configure: Self.logIn,
                reply: { $0.authorization == Self.mine ? .redirect(302, to: place) : .status(401, body: "who?") }
            ) { (server, session) async throws in
                let first = session.downloadTask(with: server.url("/api"))
                first.resume()
                let error = try #require(try await recorder.completion(of: first).error as? URLError)
                let data = try #require(error.downloadTaskResumeData)
                let content = try PropertyListSerialization.propertyList(from: data, format: nil)
                #expect(Self.isHidden(content) && Self.isHidden(error))
                let second = session.downloadTask(withResumeData: data)
                second.resume()
                #expect(try await recorder.completion(of: second).file == Data(file.content))
                #expect(server.requests.map(\.authorization) == [Self.mine, Self.mine])
                #expect(store.requests.map(\.authorization) == [nil, nil])
            }
        }
    }

    // MARK: What takes precedence

    @Test func `the request's own Authorization takes precedence`() async throws {
        try await withScenario(configure: Self.logIn, reply: { _ in .ok() }) { (server, session) async throws in
            for own in ["Bearer own", ""] {
                _ = try await session.data(for: URLRequest(server.url(), headers: ["authorization": own]))
                #expect(server.requests.last?.values(of: "Authorization") == [own])
            }
        }
    }

    @Test func `a credential replaces the session-wide Authorization, also when sent preemptively`() async throws {
        let interview = Interview(.ada())
        try await withScenario(
            delegate: TaskInterviewer(interview), configure: Self.logIn,
            reply: { $0.path.hasPrefix("/in/") ? BasicScript()()($0) : .ok("open") }
        ) { (server, session) async throws in
            for path in ["/in/1", "/in/2", "/out"] { _ = try await session.text(server.url(path)) }
            #expect(server.requests.map { $0.values(of: "Authorization") } == [[Self.mine], [Self.ada], [Self.ada], [Self.mine]])
            #expect(interview.questions.count == 1 && interview.failures == [0])
        }
    }

    @Test func `a refused Authorization of the request is replaced by a credential, not by the session-wide one`() async throws {
        let interview = Interview(.ada())
        try await withScenario(delegate: TaskInterviewer(interview), configure: Self.logIn, reply: BasicScript()()) {
            (server, session) async throws in
            let request = URLRequest(server.url(), headers: ["Authorization": "Bearer own"])
            #expect(try await session.text(request).text == "in")
            #expect(server.requests.map { $0.values(of: "Authorization") } == [["Bearer own"], [Self.ada]])
        }
    }

    @Test func `a 401 without an answer is delivered`() async throws {
        try await withScenario(configure: Self.logIn, reply: BasicScript()()) { (server, session) async throws in
            #expect(try await session.text(server.url()) == "who are you?")
            #expect(server.requests.map(\.authorization) == [Self.mine])
        }
    }

    @Test(.over(.http1)) func `a connection authenticated by NTLM does not carry the session-wide Authorization`() async throws {
        let script = NTLMScript()
        try await withScenario(
            delegate: Interviewer(Interview(.ada())), configure: Self.logIn, reply: script.script()
        ) { (server, session) async throws in
            for _ in 0..<3 { #expect(try await session.text(server.url()) == "in as ada") }
            #expect(script.legs.map(\.message) == [0, 1, 3, 0, 0])
            #expect(server.requests.map { $0.authorization == Self.mine } == [true, false, false, false, false])
            #expect(server.requests.suffix(2).map(\.authorization) == [nil, nil])
        }
    }

    // MARK: Where it is not visible

    @Test func `tasks, errors and metrics do not contain the session-wide Authorization`() async throws {
        let recorder = EventRecorder()
        try await withScenario(
            delegate: recorder, configure: Self.logIn,
            reply: { $0.path == "/broken" ? [.nonsense, .close] : .redirect(302, to: "/broken") }
        ) { (server, session) async throws in
            let task = session.dataTask(with: server.url())
            task.resume()
            let record = try await recorder.completion(of: task)
            let error = try #require(record.error)
            let metrics = try #require(record.metrics)
            #expect(server.requests.map(\.authorization) == [Self.mine, Self.mine])
            #expect(task.currentRequest?.allHTTPHeaderFields == ["X-Session": "1"])
            #expect(record.redirectRequests.allSatisfy { $0.value(forHTTPHeaderField: "Authorization") == nil })
            #expect(!"\(session) \(String(reflecting: session))".contains("secret"))
            for value in [task as Any, task.currentRequest as Any, error, (error as NSError).userInfo, metrics] {
                #expect(Self.isHidden(value))
            }
            for transaction in metrics.transactionMetrics {
                #expect(Self.isHidden(transaction) && Self.isHidden(transaction.request))
            }
        }
    }

    @Test func `a URLProtocol class receives neither Authorization nor Cookie of the session`() async throws {
        try await withSession({
            $0.protocolClasses = [EchoedFields.self]
            Self.logIn($0)
            $0.httpAdditionalHeaders?["Cookie"] = "session-secret"
        }) { (session) async throws in
            #expect(try await session.text(try #require(URL(string: "fields://host/"))) == "X-Session")
        }
    }

    @Test(.over(.http1, .http2)) func `CONNECT does not contain the session-wide Authorization`() async throws {
        let certificates = try TestCertificates.shared.get()
        try await withScriptedServer(identity: certificates.valid, reply: { _ in .ok("in") }) { (server) async throws in
            try await withTunnelProxy({ [port = server.port] _ in .tunnel(to: port) }) { (proxy) async throws in
                try await withSession {
                    $0.tlsTrustRoots = [certificates.root]
                    $0.connectionProxyDictionary = proxyDictionary(https: proxy.port)
                    Self.logIn($0)
                } test: { (session) async throws in
                    #expect(try await session.text(server.url()) == "in")
                    #expect(proxy.demands.map { $0.values(of: "Authorization") } == [[]])
                    #expect(proxy.demands.allSatisfy { !$0.head.contains("secret") })
                    #expect(server.requests.map(\.authorization) == [Self.mine])
                }
            }
        }
    }

    @Test func `the server of a proxy script receives neither it nor a session Cookie`() async throws {
        let script = "function FindProxyForURL() { return 'DIRECT' }"
        try await withScriptedServer(reply: { $0.path == "/" ? .redirect(302, to: "/proxy.pac") : .ok(script) }) {
            (scriptServer) async throws in
            try await withScenario(
                configure: {
                    $0.connectionProxyDictionary = [
                        "ProxyAutoConfigEnable": 1, "ProxyAutoConfigURLString": scriptServer.url("/").absoluteString,
                    ]
                    $0.httpAdditionalHeaders = ["Authorization": Self.mine, "Cookie": "session-secret"]
                }, reply: { _ in .ok("in") }
            ) { (server, session) async throws in
                #expect(try await session.text(server.url()) == "in")
                #expect(server.requests.map(\.authorization) == [Self.mine])
                #expect(
                    scriptServer.requests.count == 2
                        && scriptServer.requests.allSatisfy { !$0.headText.contains("session-secret") })
            }
        }
    }
}

/// Replies with the names of the header fields that it receives.
private final class EchoedFields: URLProtocol, @unchecked Sendable {
    override class func canInit(with request: URLRequest) -> Bool { request.url?.scheme == "fields" }
    override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

    override func startLoading() {
        guard let url = request.url,
            let response = HTTPURLResponse(url: url, statusCode: 200, httpVersion: nil, headerFields: nil)
        else { return }
        let names = (request.allHTTPHeaderFields ?? [:]).keys.sorted().joined(separator: " ")
        client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
        client?.urlProtocol(self, didLoad: Data(names.utf8))
        client?.urlProtocolDidFinishLoading(self)
    }

    override func stopLoading() {}
}
