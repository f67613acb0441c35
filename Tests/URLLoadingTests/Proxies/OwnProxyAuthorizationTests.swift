// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// A `Proxy-Authorization` field that the app sets on a request is only for the first proxy of the task.
@Suite(.timeLimit(.minutes(1)))
struct OwnProxyAuthorizationTests {
    private static let mine = "Basic own-secret"
    private static let ada = basic("ada", "lovelace")
    private static let refusal = "HTTP/1.1 407 Who\r\nProxy-Authenticate: Basic realm=\"gate\"\r\nContent-Length: 0\r\n\r\n"
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    private func request(_ url: URL, _ value: String = mine) -> URLRequest {
        URLRequest(url, headers: ["Proxy-Authorization": value])
    }

    private func request(_ text: String, _ value: String = mine) throws -> URLRequest {
        request(try #require(URL(string: text)), value)
    }

    /// Runs a test with a scripted server as the proxy of a session's http requests.
    private func withProxy(
        delegate: (any URLSessionDelegate)? = nil, _ more: [String: Any] = [:],
        reply: @escaping @Sendable (RecordedRequest) -> ScriptedReply, test: (ScriptedServer, URLSession) async throws -> Void
    ) async throws {
        try await withScriptedServer(reply: reply) { (proxy) async throws in
            try await withSession(delegate: delegate) {
                $0.connectionProxyDictionary = proxyDictionary(http: proxy.port, more)
                $0.appTransportSecurity = ["NSAllowsArbitraryLoads": true]
            } test: { (session) async throws in
                try await test(proxy, session)
            }
        }
    }

    /// Runs a test with two proxies, and a session whose script chooses between them.
    private func withTwoProxies(
        delegate: (any URLSessionDelegate)? = nil, script: @escaping (_ one: Int, _ two: Int) -> String,
        one: @escaping @Sendable (RecordedRequest) -> ScriptedReply, two: @escaping @Sendable (RecordedRequest) -> ScriptedReply,
        test: (ScriptedServer, ScriptedServer, URLSession) async throws -> Void
    ) async throws {
        try await withScriptedServer(reply: one) { (one) async throws in
            try await withScriptedServer(reply: two) { (two) async throws in
                try await withCachedSession(delegate: delegate) {
                    $0.connectionProxyDictionary = [
                        "ProxyAutoConfigEnable": 1,
                        "ProxyAutoConfigJavaScript":
                            "function FindProxyForURL(url, host) { return \(script(one.port, two.port)) }",
                    ]
                    $0.appTransportSecurity = ["NSAllowsArbitraryLoads": true]
                } test: { (session) async throws in
                    try await test(one, two, session)
                }
            }
        }
    }

    private func withCachedSession(
        delegate: (any URLSessionDelegate)?, _ configure: (URLSessionConfiguration) -> Void,
        test: (URLSession) async throws -> Void
    ) async throws {
        let scene = try CacheScene(memory: CacheScene.largeCapacity, disk: CacheScene.largeCapacity)
        try await withSession(delegate: delegate) {
            $0.urlCache = scene.cache
            configure($0)
        } test: { (session) async throws in
            try await test(session)
        }
    }

    /// Runs a test with a secure server, a proxy that makes tunnels to it, and a session that uses the proxy.
    private func withTunnel(
        delegate: (any URLSessionDelegate)? = nil,
        proxy answer: @escaping @Sendable (TunnelProxy.Demand, _ port: Int) -> TunnelProxy.Answer = { .tunnel(to: $1) },
        reply: @escaping @Sendable (RecordedRequest) -> ScriptedReply = { _ in .ok("in") },
        test: (ScriptedServer, TunnelProxy, URLSession) async throws -> Void
    ) async throws {
        try await withScriptedServer(identity: certificates.valid, reply: reply) { (server) async throws in
            try await withTunnelProxy({ [port = server.port] in answer($0, port) }) { (proxy) async throws in
                try await withSession(delegate: delegate) {
                    $0.tlsTrustRoots = [certificates.root]
                    $0.connectionProxyDictionary = proxyDictionary(https: proxy.port)
                } test: { (session) async throws in
                    try await test(server, proxy, session)
                }
            }
        }
    }

    // MARK: Redirects

    @Test func `the field stays with the request while redirects lead through the same proxy`() async throws {
        let recorder = EventRecorder()
        try await withProxy(
            delegate: recorder,
            reply: { request in
                switch request.order {
                case 0: .redirect(302, to: "/b")
                case 1: .redirect(307, to: "http://other.invalid/c")
                default: .ok("end")
                }
            }
        ) { (proxy, session) async throws in
            let task = session.dataTask(with: try request("http://origin.invalid/a"))
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(
                proxy.requests.map(\.target) == ["/a", "/b"].map { "http://origin.invalid" + $0 } + ["http://other.invalid/c"])
            #expect(proxy.requests.map { $0.values(of: "Proxy-Authorization") } == [[Self.mine], [Self.mine], [Self.mine]])
            // A delegate that returns the proposed request does not remove the field.
            #expect(
                record.redirectRequests.map { $0.value(forHTTPHeaderField: "Proxy-Authorization") } == [Self.mine, Self.mine])
        }
    }

    @Test func `the field is dropped for a host that is reached directly, and does not come back`() async throws {
        let back = "http://origin.invalid/c"
        try await withScriptedServer(reply: { _ in .redirect(302, to: back) }) { (server) async throws in
            let target = server.url("/b").absoluteString
            try await withProxy(
                ["ExceptionsList": ["127.0.0.1"]], reply: { $0.order == 0 ? .redirect(302, to: target) : .ok("end") }
            ) { (proxy, session) async throws in
                #expect(try await session.text(request("http://origin.invalid/a")).text == "end")
                #expect(proxy.requests.map(\.proxyAuthorization) == [Self.mine, nil])
                #expect(server.requests.map(\.proxyAuthorization) == [nil])
            }
        }
    }

    @Test func `the field of a request without a proxy is not sent to a proxy after a redirect`() async throws {
        try await withScriptedServer(reply: { _ in .redirect(302, to: "http://origin.invalid/") }) { (server) async throws in
            try await withProxy(["ExceptionsList": ["127.0.0.1"]], reply: { _ in .ok("end") }) { (proxy, session) async throws in
                #expect(try await session.text(request(server.url())).text == "end")
                #expect((server.requests + proxy.requests).map(\.proxyAuthorization) == [nil, nil])
            }
        }
    }

    @Test func `the field is dropped for another proxy, and does not come back`() async throws {
        try await withTwoProxies(
            script: { "'PROXY 127.0.0.1:' + (host === 'two.invalid' ? \($1) : \($0))" },
            one: { $0.order == 0 ? .redirect(302, to: "http://two.invalid/") : .ok("end") },
            two: { _ in .redirect(302, to: "http://one.invalid/") }
        ) { (one, two, session) async throws in
            #expect(try await session.text(request("http://one.invalid/")).text == "end")
            #expect(one.requests.map(\.proxyAuthorization) == [Self.mine, nil])
            #expect(two.requests.map(\.proxyAuthorization) == [nil])
        }
    }

    @Test func `a credential for one proxy's challenge is not sent to another`() async throws {
        let gate: @Sendable (RecordedRequest, ScriptedReply) -> ScriptedReply = { request, reply in
            request.proxyAuthorization == Self.ada ? reply : .proxyUnauthorized("Basic realm=\"gate\"")
        }
        for persistence in [URLCredential.Persistence.none, .forSession] {
            try await withTwoProxies(
                delegate: TaskInterviewer(Interview(.ada(persistence))),
                script: { "'PROXY 127.0.0.1:' + (host === 'two.invalid' ? \($1) : \($0))" },
                one: { gate($0, .redirect(302, to: "http://two.invalid/")) }, two: { _ in .ok("end") }
            ) { (one, two, session) async throws in
                #expect(try await session.text(try #require(URL(string: "http://one.invalid/"))) == "end")
                #expect(one.requests.map(\.proxyAuthorization) == [nil, Self.ada])
                #expect(two.requests.map(\.proxyAuthorization) == [nil])
            }
        }
    }

    @Test(arguments: [URLCredential.Persistence.none, .forSession])
    func `a credential for a proxy over TLS is not sent to it in cleartext`(persistence: URLCredential.Persistence) async throws {
        let interview = Interview(.ada(persistence))
        try await withScriptedServer(
            identity: certificates.valid, isClear: { $0 > 0 },
            reply: { request in
                guard request.proxyAuthorization == Self.ada else { return .proxyUnauthorized("Basic realm=\"gate\"") }
                return request.connection == 0 ? .redirect(302, to: "http://two.invalid/") : .ok("end")
            }
        ) { (proxy) async throws in
            try await withSession(delegate: TaskInterviewer(interview)) {
                $0.tlsTrustRoots = [certificates.root]
                $0.connectionProxyDictionary = [
                    "ProxyAutoConfigEnable": 1,
                    "ProxyAutoConfigJavaScript": """
                    function FindProxyForURL(url, host) {
                        return (host === 'two.invalid' ? 'PROXY' : 'HTTPS') + ' 127.0.0.1:\(proxy.port)'
                    }
                    """,
                ]
                $0.appTransportSecurity = ["NSAllowsArbitraryLoads": true]
            } test: { (session) async throws in
                #expect(try await session.text(try #require(URL(string: "http://one.invalid/"))) == "end")
                #expect(proxy.requests.map(\.proxyAuthorization) == [nil, Self.ada, nil, Self.ada])
                #expect(proxy.requests.map(\.connection) == [0, 0, 1, 1])
                #expect(interview.questions.count == 2)
            }
        }
    }

    @Test func `the field is sent to the first proxy when a URLProtocol class redirects the request`() async throws {
        try await withScriptedServer(reply: { _ in .ok("end") }) { (proxy) async throws in
            try await withSession {
                $0.protocolClasses = [RedirectingProtocol.self]
                $0.connectionProxyDictionary = proxyDictionary(http: proxy.port)
                $0.appTransportSecurity = ["NSAllowsArbitraryLoads": true]
            } test: { (session) async throws in
                #expect(try await session.text(request("http://move.invalid/a")).text == "end")
                #expect(proxy.requests.map(\.target) == ["http://end.invalid/a"])
                #expect(proxy.requests.map(\.proxyAuthorization) == [Self.mine])
            }
        }
    }

    @Test func `a field that the delegate sets on a redirected request is sent to the next proxy`() async throws {
        var answers = EventRecorder.Answers()
        answers.redirect = { _, request in
            var request = request
            request.setValue("Basic next", forHTTPHeaderField: "Proxy-Authorization")
            return request
        }
        let recorder = EventRecorder(answers)
        try await withTwoProxies(
            delegate: recorder, script: { "'PROXY 127.0.0.1:' + (host === 'two.invalid' ? \($1) : \($0))" },
            one: { _ in .redirect(302, to: "http://two.invalid/") }, two: { _ in .ok("end") }
        ) { (one, two, session) async throws in
            let task = session.dataTask(with: try request("http://one.invalid/"))
            task.resume()
            _ = try await recorder.completion(of: task)
            #expect(one.requests.map(\.proxyAuthorization) == [Self.mine])
            #expect(two.requests.map(\.proxyAuthorization) == ["Basic next"])
        }
    }

    @Test func `the field is not sent to a fallback proxy`() async throws {
        let gone = try RefusingPort()
        try await withTwoProxies(
            script: { one, _ in "'PROXY 127.0.0.1:\(gone.number); PROXY 127.0.0.1:\(one)'" },
            one: { _ in .ok("end") }, two: { _ in .ok() }
        ) { (one, _, session) async throws in
            #expect(try await session.text(request("http://one.invalid/")).text == "end")
            #expect(one.requests.map(\.proxyAuthorization) == [nil])
        }
    }

    @Test func `a background revalidation sends the field only to the proxy that it was for`() async throws {
        let lenient = [("Cache-Control", "max-age=60, stale-while-revalidate=600"), ("Age", "100")]
        try await withTwoProxies(
            script: { "'PROXY 127.0.0.1:' + (url.endsWith('/two') ? \($1) : \($0))" },
            one: { _ in .redirect(302, to: "/two") }, two: { .ok("\($0.order)", lenient) }
        ) { (one, two, session) async throws in
            for _ in 0..<2 { #expect(try await session.text(request("http://one.invalid/one")).text == "0") }
            #expect(try await two.waitForRequests(2).map(\.proxyAuthorization) == [nil, nil])
            #expect(one.requests.map(\.proxyAuthorization) == [Self.mine, Self.mine])
        }
    }

    // MARK: Tunnels

    @Test func `the field is sent with CONNECT but not through the tunnel, even after redirects`() async throws {
        let target = Delivered<String>()
        try await withTunnel(reply: { $0.order == 0 ? .redirect(302, to: target.all.first ?? "") : .ok("in") }) {
            (server, proxy, session) async throws in
            target(server.url("/b", host: "localhost").absoluteString)
            #expect(try await session.text(request(server.url("/a"))).text == "in")
            #expect(proxy.demands.map(\.target) == ["127.0.0.1:\(server.port)", "localhost:\(server.port)"])
            #expect(proxy.demands.map { $0.values(of: "Proxy-Authorization") } == [[Self.mine], [Self.mine]])
            #expect(server.requests.map(\.path) == ["/a", "/b"])
            #expect(server.requests.allSatisfy { !$0.headText.contains("own-secret") })
        }
    }

    @Test func `for http through a tunnel the field is only sent with CONNECT`() async throws {
        try await withScriptedServer(reply: { _ in .ok("in") }) { (server) async throws in
            try await withTunnelProxy({ [port = server.port] _ in .tunnel(to: port) }) { (proxy) async throws in
                try await withSession {
                    let port = NWEndpoint.Port(rawValue: UInt16(proxy.port))
                    $0.proxyConfigurations = [ProxyConfiguration(httpCONNECTProxy: .hostPort(host: "127.0.0.1", port: port))]
                } test: { (session) async throws in
                    #expect(try await session.text(request(server.url())).text == "in")
                    #expect(proxy.demands.map(\.authorization) == [Self.mine])
                    #expect(server.requests.map(\.proxyAuthorization) == [nil])
                }
            }
        }
    }

    @Test func `a tunnel is only shared by requests with the same field`() async throws {
        try await withTunnel { (server, proxy, session) async throws in
            for _ in 0..<2 {
                #expect(try await session.text(request(server.url())).text == "in")
                #expect(try await session.text(request(server.url(), "Basic other")).text == "in")
                #expect(try await session.text(server.url()) == "in")
            }
            #expect(proxy.demands.map(\.authorization) == [Self.mine, "Basic other", nil])
            #expect(server.requests.map(\.connection) == [0, 1, 2, 0, 1, 2])
        }
    }

    @Test func `HTTP/2 works through a tunnel that was opened with the field`() async throws {
        try await withHTTP2Server(
            identity: certificates.valid, reply: { .ok("\($0.isHTTP2) \($0.header("proxy-authorization") ?? "nothing")") }
        ) { (server) async throws in
            try await withTunnelProxy({ [port = server.port] _ in .tunnel(to: port) }) { (proxy) async throws in
                try await withSession {
                    $0.tlsTrustRoots = [certificates.root]
                    $0.connectionProxyDictionary = proxyDictionary(https: proxy.port)
                } test: { (session) async throws in
                    for _ in 0..<2 { #expect(try await session.text(request(server.url())).text == "true nothing") }
                    #expect(proxy.demands.map(\.authorization) == [Self.mine])
                }
            }
        }
    }

    @Test func `concurrent requests with different fields use different tunnels`() async throws {
        try await withTunnel(reply: { .ok($0.path) }) { (server, proxy, session) async throws in
            try await withThrowingTaskGroup(of: Bool.self) { group in
                for number in 0..<40 {
                    let own = request(server.url("/\(number)"), "Basic \(number % 4)")
                    group.addTask { try await session.text(own).text == "/\(number)" }
                }
                for try await isRight in group { #expect(isRight) }
            }
            // Each connection only served requests with the same field.
            let served = Dictionary(grouping: server.requests, by: \.connection).mapValues { requests in
                Set(requests.compactMap { Int($0.path.dropFirst()).map { $0 % 4 } })
            }
            #expect(served.values.allSatisfy { $0.count == 1 })
            #expect(Set(proxy.demands.compactMap(\.authorization)) == Set((0..<4).map { "Basic \($0)" }))
        }
    }

    // MARK: Challenges

    @Test func `a refused field leads to a challenge, and later requests send their own field first`() async throws {
        let interview = Interview(.ada())
        try await withTunnel(
            delegate: TaskInterviewer(interview),
            proxy: { demand, port in demand.authorization == Self.ada ? .tunnel(to: port) : .say(Self.refusal) }
        ) { (server, proxy, session) async throws in
            for host in ["127.0.0.1", "127.0.0.1", "localhost"] {
                #expect(try await session.text(request(server.url(host: host))).text == "in")
            }
            #expect(proxy.demands.map(\.authorization) == [Self.mine, Self.ada, Self.mine, Self.ada])
            #expect(interview.questions.count == 1 && interview.failures == [0])
            #expect(server.requests.allSatisfy { $0.proxyAuthorization == nil })
        }
    }

    @Test func `a refusal without an answer fails the load, and the error does not reveal the field`() async throws {
        try await withTunnel(proxy: { _, _ in .say(Self.refusal) }) { (server, proxy, session) async throws in
            let error = await expectFailure(.userAuthenticationRequired) { try await session.data(for: request(server.url())) }
            var text = ""
            dump(error, to: &text)
            text += "\(String(describing: error)) \(String(describing: error?.userInfo))"
            #expect(!text.contains("own-secret"))
            #expect(proxy.demands.map(\.authorization) == [Self.mine])
        }
    }

    @Test func `after a refusal that closes the connection, the credential is sent on the next one`() async throws {
        try await withTunnel(
            delegate: TaskInterviewer(Interview(.ada())),
            proxy: { demand, port in
                demand.authorization == Self.ada ? .tunnel(to: port) : .say(Self.refusal, closes: true)
            }
        ) { (server, proxy, session) async throws in
            #expect(try await session.text(request(server.url())).text == "in")
            #expect(proxy.demands.map(\.authorization) == [Self.mine, Self.ada])
            #expect(proxy.connectionCount == 2)
        }
    }

    @Test func `a credential that a forwarding proxy accepted does not replace the field without a challenge`() async throws {
        let interview = Interview(.ada())
        try await withProxy(
            delegate: TaskInterviewer(interview),
            reply: { request in
                if request.path == "/moved" { return .redirect(302, to: "/end") }
                return request.proxyAuthorization == Self.ada ? .ok("in") : .proxyUnauthorized("Basic realm=\"gate\"")
            }
        ) { (proxy, session) async throws in
            #expect(try await session.text(try #require(URL(string: "http://origin.invalid/"))) == "in")
            #expect(try await session.text(request("http://origin.invalid/")).text == "in")
            #expect(
                proxy.requests.map { $0.values(of: "Proxy-Authorization") } == [[], [Self.ada], [Self.mine], [Self.ada]])
            #expect(interview.questions.count == 1)
        }
    }

    @Test func `a field refused before NTLM is not sent again on the authenticated connection`() async throws {
        let script = NTLMScript(isProxy: true)
        try await withProxy(
            delegate: Interviewer(Interview(.ada())),
            reply: { request in
                let reply = script.script()(request)
                guard request.target.hasSuffix("/a"), script.owners[request.connection] != nil else { return reply }
                return .redirect(302, to: "/b")
            }
        ) { (proxy, session) async throws in
            #expect(try await session.text(request("http://origin.invalid/a")).text == "in as ada")
            #expect(proxy.requests.filter { $0.proxyAuthorization == Self.mine }.count == 1)
            #expect(script.legs.map(\.message) == [0, 1, 3, 0])
        }
    }
}

/// Redirects requests for one host to another.
private final class RedirectingProtocol: URLProtocol, @unchecked Sendable {
    override class func canInit(with request: URLRequest) -> Bool { request.url?.host == "move.invalid" }
    override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

    override func startLoading() {
        var next = request
        next.url = URL(string: "http://end.invalid" + (request.url?.path ?? ""))
        guard let url = request.url,
            let response = HTTPURLResponse(url: url, statusCode: 307, httpVersion: nil, headerFields: nil)
        else { return }
        client?.urlProtocol(self, wasRedirectedTo: next, redirectResponse: response)
    }

    override func stopLoading() {}
}
