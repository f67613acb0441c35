// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Requests for `http` URLs through a proxy, and the proxy's own challenges (407).
@Suite(.timeLimit(.minutes(1)))
struct ProxyForwardingTests {
    private static let ada = basic("ada", "lovelace")
    private let challenge = "Basic realm=\"gate\""

    /// The scripted server acts as the proxy and as the origin behind it.
    private func withProxy(
        delegate: (any URLSessionDelegate)? = nil, _ more: [String: Any] = [:],
        configure: @escaping (URLSessionConfiguration) -> Void = { _ in },
        reply: @escaping @Sendable (RecordedRequest) -> ScriptedReply,
        test: (ScriptedServer, URLSession) async throws -> Void
    ) async throws {
        try await withScriptedServer(reply: reply) { (proxy) async throws in
            try await withSession(delegate: delegate) {
                $0.connectionProxyDictionary = proxyDictionary(http: proxy.port, more)
                $0.appTransportSecurity = ["NSAllowsArbitraryLoads": true]
                configure($0)
            } test: { (session) async throws in
                try await test(proxy, session)
            }
        }
    }

    private func url(_ text: String) throws -> URL { try #require(URL(string: text)) }

    @Test func `the request line is in absolute form, and the proxy resolves the host name`() async throws {
        try await withProxy(reply: { _ in .ok("by proxy") }) { (proxy, session) async throws in
            #expect(try await session.text(url("http://origin.invalid/a%20b?c=d#e")) == "by proxy")
            #expect(try await session.text(url("http://Origin.invalid:8080")) == "by proxy")
            #expect(try await session.text(url("http://user:secret@[::1]:81/x")) == "by proxy")
            #expect(
                proxy.requests.map(\.target) == [
                    "http://origin.invalid/a%20b?c=d", "http://origin.invalid:8080/", "http://[::1]:81/x",
                ])
            #expect(proxy.requests.map { $0.header("Host") } == ["origin.invalid", "origin.invalid:8080", "[::1]:81"])
            #expect(proxy.requests.allSatisfy { $0.proxyAuthorization == nil && !$0.headText.contains("secret") })
        }
    }

    /// "The proxy MUST ignore the received Host header field (if any) and instead replace it with the host information of the
    /// request-target" (RFC 9112, section 3.2.2): the request line decides, and it has the URL's host.
    @Test func `a request's own Host is sent once, and the request line keeps the URL's host`() async throws {
        try await withProxy(reply: { _ in .ok("by proxy", Fields.fresh) }) { (proxy, session) async throws in
            for _ in 0..<2 {
                let request = URLRequest(try url("http://origin.invalid/a"), headers: ["Host": "other.invalid"])
                #expect(try await session.text(request).text == "by proxy")
            }
            // A cached response is not used for the other host.
            #expect(try await session.text(url("http://origin.invalid/a")) == "by proxy")
            #expect(try await session.text(url("http://other.invalid/a")) == "by proxy")
            #expect(
                proxy.requests.map(\.target) == [
                    "http://origin.invalid/a", "http://origin.invalid/a", "http://origin.invalid/a", "http://other.invalid/a",
                ])
            #expect(
                proxy.requests.map { $0.values(of: "Host") } == [
                    ["other.invalid"], ["other.invalid"], ["origin.invalid"], ["other.invalid"],
                ])
        }
    }

    @Test func `a POST keeps its method and body, and connections are reused for all hosts`() async throws {
        try await withProxy(reply: { .ok($0.body) }) { (proxy, session) async throws in
            for host in ["a", "b", "c"] {
                let request = URLRequest(try url("http://\(host).invalid/"), method: "POST", body: Data(host.utf8))
                #expect(try await session.text(request).text == host)
            }
            #expect(proxy.requests.map(\.method) == ["POST", "POST", "POST"])
        }
    }

    @Test func `Proxy-Connection closes the connection to a proxy, but not to a server`() async throws {
        let fields = [("Proxy-Connection", "Close")]
        try await withProxy(reply: { _ in .ok("by proxy", fields) }) { (proxy, session) async throws in
            for _ in 0..<3 { #expect(try await session.text(url("http://origin.invalid/")) == "by proxy") }
            #expect(proxy.connectionCount == 3)
            try await proxy.waitForClose(0)
        }
        try await withScenario(reply: { _ in .ok("direct", fields) }) { (server, session) async throws in
            for _ in 0..<3 { #expect(try await session.text(server.url()) == "direct") }
            #expect(server.connectionCount == 1)
        }
    }

    @Test func `hosts in the exceptions list are reached directly`() async throws {
        try await withProxy(["ExceptionsList": ["localhost", "127.*"]], reply: { _ in .ok("by proxy") }) {
            (proxy, session) async throws in
            try await withScriptedServer(reply: { _ in .ok("direct") }) { (server) async throws in
                #expect(try await session.text(server.url()) == "direct")
                #expect(try await session.text(server.url(host: "localhost")) == "direct")
                #expect(try await session.text(url("http://local.invalid/")) == "by proxy")
                #expect(server.requests.map(\.target) == ["/", "/"])
            }
        }
    }

    @Test func `a proxy for https only is not used for http`() async throws {
        try await withScenario(
            configure: { $0.connectionProxyDictionary = proxyDictionary(https: 1) }, reply: { _ in .ok("direct") }
        ) { (server, session) async throws in
            #expect(try await session.text(server.url()) == "direct")
        }
    }

    @Test func `a proxy that is not enabled is not used`() async throws {
        try await withScenario(
            configure: { $0.connectionProxyDictionary = ["HTTPEnable": 0, "HTTPProxy": "127.0.0.1", "HTTPPort": 1] },
            reply: { _ in .ok("direct") }
        ) { (server, session) async throws in
            #expect(try await session.text(server.url()) == "direct")
        }
    }

    @Test func `a 407 without an answer is delivered`() async throws {
        for delegate in [nil, TaskInterviewer(Interview(.performDefaultHandling)), TaskInterviewer(Interview(.useCredential))] {
            try await withProxy(delegate: delegate, reply: { _ in .proxyUnauthorized("Basic realm=\"gate\"") }) {
                (proxy, session) async throws in
                let (text, response) = try await session.text(URLRequest(try url("http://origin.invalid/")))
                #expect(text == "who passes?" && response.statusCode == 407)
                #expect(proxy.requests.count == 1)
            }
        }
    }

    @Test func `the delegate is asked for the proxy's space, and later requests to any host send the credential`() async throws {
        let interview = Interview(.ada())
        try await withProxy(
            delegate: Interviewer(interview),
            reply: { $0.proxyAuthorization == Self.ada ? .ok("passed") : .proxyUnauthorized("Basic realm=\"gate\"") }
        ) { (proxy, session) async throws in
            for host in ["a", "a", "b"] { #expect(try await session.text(url("http://\(host).invalid/x")) == "passed") }
            #expect(proxy.requests.map(\.proxyAuthorization) == [nil, Self.ada, Self.ada, Self.ada])
            #expect(proxy.requests.allSatisfy { $0.authorization == nil })
            #expect(
                interview.questions == [
                    Interview.Question(
                        by: "task", method: "HTTPBasic", realm: "gate", host: "127.0.0.1", port: proxy.port, kind: "http",
                        isProxy: true,
                        failures: 0, proposed: nil, status: 407
                    )
                ])
        }
    }

    @Test func `cancelling a challenge of the proxy fails the load with a separate error code`() async throws {
        try await withProxy(
            delegate: TaskInterviewer(Interview(.cancelAuthenticationChallenge)),
            reply: { _ in .proxyUnauthorized("Basic realm=\"gate\"") }
        ) { (proxy, session) async throws in
            await expectFailure(.userCancelledAuthentication) { try await session.data(from: url("http://origin.invalid/")) }
        }
    }

    @Test func `the user name and password of the proxy dictionary answer the challenge of the proxy once`() async throws {
        for (password, text) in [("lovelace", "passed"), ("wrong", "who passes?")] {
            try await withProxy(
                ["kCFProxyUsernameKey": "ada", "kCFProxyPasswordKey": password],
                reply: { $0.proxyAuthorization == Self.ada ? .ok("passed") : .proxyUnauthorized("Basic realm=\"gate\"") }
            ) { (proxy, session) async throws in
                #expect(try await session.text(url("http://origin.invalid/")) == text)
                #expect(proxy.requests.count == 2)
            }
        }
    }

    @Test func `a stored credential answers the challenge of the proxy only if it is stored for the proxy`() async throws {
        for isProxy in [true, false] {
            let storage = URLCredentialStorage()
            try await withProxy(
                configure: { $0.urlCredentialStorage = storage },
                reply: { $0.proxyAuthorization == Self.ada ? .ok("passed") : .proxyUnauthorized("Basic realm=\"gate\"") }
            ) { (proxy, session) async throws in
                storage.set(
                    .ada(),
                    for: isProxy
                        ? URLProtectionSpace(
                            proxyHost: "127.0.0.1", port: proxy.port, type: NSURLProtectionSpaceHTTPProxy, realm: "gate",
                            authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
                        : .of(proxy, realm: "gate"))
                #expect(try await session.text(url("http://origin.invalid/")) == (isProxy ? "passed" : "who passes?"))
            }
        }
    }

    @Test func `proxy and origin are each answered with their own credential`() async throws {
        let interview = Interview { challenge, _ in
            challenge.protectionSpace.isProxy()
                ? (.useCredential, .ada()) : (.useCredential, URLCredential(user: "bob", password: "x", persistence: .forSession))
        }
        try await withProxy(
            delegate: TaskInterviewer(interview),
            reply: { request in
                guard request.proxyAuthorization == Self.ada else { return .proxyUnauthorized("Basic realm=\"same\"") }
                return request.authorization == basic("bob", "x") ? .ok("both") : .unauthorized("Basic realm=\"same\"")
            }
        ) { (proxy, session) async throws in
            for _ in 0..<2 { #expect(try await session.text(url("http://origin.invalid/")) == "both") }
            #expect(interview.questions.map(\.isProxy) == [true, false])
            #expect(interview.failures == [0, 0])
            #expect(proxy.requests.count == 4)
        }
    }

    @Test func `Digest for a proxy is computed over the absolute form`() async throws {
        var rules = DigestGate.Rules()
        rules.isProxy = true
        rules.proof = .right
        let gate = DigestGate(rules)
        let interview = Interview(user: rules.user, password: rules.password)
        try await withProxy(delegate: TaskInterviewer(interview), reply: gate.script({ .ok($0.body) })) {
            (proxy, session) async throws in
            for text in ["one", "two"] {
                let request = URLRequest(try url("http://origin.invalid/a?b"), method: "POST", body: Data(text.utf8))
                #expect(try await session.text(request).text == text)
            }
            #expect(gate.problems == [])
            #expect(gate.proofs.map { $0["nc"] } == ["00000001", "00000002"])
            #expect(interview.questions.count == 1)
        }
    }

    @Test func `NTLM for a proxy uses one connection`() async throws {
        let script = NTLMScript(isProxy: true)
        let interview = Interview(.ada())
        try await withProxy(delegate: Interviewer(interview), reply: script.script()) { (proxy, session) async throws in
            for _ in 0..<2 { #expect(try await session.text(url("http://origin.invalid/")) == "in as ada") }
            #expect(interview.questions.map(\.by) == ["session"])
            let messages = script.legs.filter { $0.message > 0 }
            #expect(Set(messages.map(\.connection)).count == 1 && messages.map(\.message) == [1, 3])
        }
    }

    @Test func `a password that is always wrong ends with the 407`() async throws {
        let interview = Interview(.wrong())
        try await withProxy(delegate: TaskInterviewer(interview), reply: { _ in .proxyUnauthorized("Basic realm=\"gate\"") }) {
            (proxy, session) async throws in
            #expect(try await session.text(URLRequest(try url("http://origin.invalid/"))).response.statusCode == 407)
            #expect(interview.failures == Array(0..<interview.questions.count))
            #expect((2...50).contains(interview.questions.count))
        }
    }

    @Test func `the proxy credential does not reach an excepted host to which the proxy redirects`() async throws {
        try await withScriptedServer(reply: { _ in .ok("direct") }) { (server) async throws in
            let target = server.url("/direct").absoluteString
            try await withProxy(
                delegate: TaskInterviewer(Interview(.ada())), ["ExceptionsList": ["127.0.0.1"]],
                reply: {
                    $0.proxyAuthorization == Self.ada ? .redirect(302, to: target) : .proxyUnauthorized("Basic realm=\"gate\"")
                }
            ) { (proxy, session) async throws in
                #expect(try await session.text(url("http://origin.invalid/")) == "direct")
                #expect(server.requests.map(\.proxyAuthorization) == [nil])
                #expect(server.requests.map(\.authorization) == [nil])
            }
        }
    }

    @Test func `direct requests to the proxy's own host and port use a separate connection`() async throws {
        try await withProxy(
            ["ExceptionsList": ["127.0.0.1"], "kCFProxyUsernameKey": "ada", "kCFProxyPasswordKey": "lovelace"],
            reply: {
                guard $0.target.hasPrefix("http:") else { return .ok("direct") }
                return $0.proxyAuthorization == Self.ada ? .ok("passed") : .proxyUnauthorized("Basic realm=\"gate\"")
            }
        ) { (proxy, session) async throws in
            for _ in 0..<2 {
                #expect(try await session.text(url("http://origin.invalid/a")) == "passed")
                #expect(try await session.text(proxy.url("/a")) == "direct")
            }
            let whole = "http://origin.invalid/a"
            #expect(proxy.requests.map(\.target) == [whole, whole, "/a", whole, "/a"])
            #expect(proxy.requests.map(\.proxyAuthorization) == [nil, Self.ada, nil, Self.ada, nil])
            // Proxied and direct requests each keep their own connection.
            #expect(proxy.requests.map(\.connection) == [0, 0, 1, 0, 1])
        }
    }

    @Test func `a 407 from a server that is not a proxy is delivered without asking the app`() async throws {
        let interview = Interview(.ada())
        try await withScenario(delegate: Interviewer(interview), reply: { _ in .proxyUnauthorized("Basic realm=\"r\"") }) {
            (server, session) async throws in
            #expect(try await session.text(URLRequest(server.url(user: "ada:lovelace"))).response.statusCode == 407)
            #expect(interview.questions == [])
            #expect(server.requests.map(\.proxyAuthorization) == [nil])
        }
    }

    @Test func `metrics report that a proxy was used`() async throws {
        let recorder = EventRecorder()
        try await withProxy(delegate: recorder, reply: { _ in .ok() }) { (proxy, session) async throws in
            let task = session.dataTask(with: try url("http://origin.invalid/"))
            task.resume()
            let metrics = try #require(try await recorder.completion(of: task).metrics)
            #expect(metrics.transactionMetrics.map(\.isProxyConnection) == [true])
            #expect(metrics.transactionMetrics.map(\.remotePort) == [proxy.port])
        }
    }

    @Test func `an unreachable proxy fails the load, and the proxy is not bypassed`() async throws {
        let port = try RefusingPort()
        try await withScenario(
            configure: { $0.connectionProxyDictionary = proxyDictionary(http: port.number) }, reply: { _ in .ok("direct") }
        ) { (server, session) async throws in
            await expectFailure(.cannotConnectToHost) { try await session.data(from: server.url()) }
            #expect(server.connectionCount == 0)
        }
    }
}
