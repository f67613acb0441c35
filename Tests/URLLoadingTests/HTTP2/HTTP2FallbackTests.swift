// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// When HTTP/1.1 is spoken instead of HTTP/2, and when one connection serves several hosts.
@Suite(.timeLimit(.minutes(1)))
struct HTTP2FallbackTests {
    private static let page = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none"

    /// The protocols of a task's transactions.
    private func protocols(_ record: EventRecorder.Record) -> [String?] {
        record.metrics?.transactionMetrics.map(\.networkProtocolName) ?? []
    }

    @Test(arguments: [["http/1.1"], ["h3", "http/1.1"], ["spdy/3"]])
    func `HTTP/1.1 is spoken if ALPN does not agree on HTTP/2`(offer: [String]) async throws {
        let recorder = EventRecorder()
        try await withHTTP2Scenario(
            protocols: offer, delegate: recorder, greeting: { _ in [] }, reply: { _ in [.write(Self.page)] }
        ) { (server, session) async throws in
            let task = session.dataTask(with: server.url("/page"))
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.body == Data("one".utf8))
            #expect(protocols(record) == ["http/1.1"])
            #expect(server.protocols == [offer.contains("http/1.1") ? "http/1.1" : nil])
            #expect(server.requests.map(\.isHTTP2) == [false])
        }
    }

    @Test func `HTTP/1.1 is spoken to a server without ALPN`() async throws {
        let recorder = EventRecorder()
        let certificates = try TestCertificates.shared.get()
        try await withScenario(
            identity: certificates.valid, delegate: recorder, configure: { $0.tlsTrustRoots = [certificates.root] },
            reply: { _ in .ok("one") }
        ) { (server, session) async throws in
            let task = session.dataTask(with: server.url("/", host: "localhost"))
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.body == Data("one".utf8) && protocols(record) == ["http/1.1"])
        }
    }

    /// RFC 9113, section 3.1: the `h2c` upgrade is obsolete.
    @Test func `HTTP/1.1 is spoken in cleartext, and no upgrade is requested`() async throws {
        let recorder = EventRecorder()
        try await withScenario(delegate: recorder, reply: { _ in .ok("one") }) { (server, session) async throws in
            let task = session.dataTask(with: server.url())
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(protocols(record) == ["http/1.1"])
            #expect(server.requests[0].header("Upgrade") == nil && server.requests[0].header("HTTP2-Settings") == nil)
        }
    }

    @Test func `prior knowledge does not apply to https URLs`() async throws {
        try await withHTTP2Scenario(
            protocols: ["http/1.1"], configure: { $0.connectionOptions.httpVersions = .http2PriorKnowledge },
            greeting: { _ in [] }, reply: { _ in [.write(Self.page)] }
        ) { (server, session) async throws in
            #expect(try await session.text(server.url()) == "one")
        }
    }

    /// RFC 9113, section 7: HTTP_1_1_REQUIRED for a stream or for the connection.
    @Test(arguments: [false, true]) func `a request is retried over HTTP/1.1 if the server requires it`(
        isGoAway: Bool
    ) async throws {
        let recorder = EventRecorder()
        try await withHTTP2Scenario(
            delegate: recorder, greeting: { $0 == 0 ? [.settings()] : [] },
            reply: { request in
                guard request.isHTTP2 else { return [.awaitRequestEnd, .write(Self.page)] }
                return [.awaitRequestEnd, isGoAway ? .goAway(last: 0, .http11Required) : .resetStream(.http11Required)]
            }
        ) { (server, session) async throws in
            let request = URLRequest(server.url("/up"), method: "POST", body: Data("body".utf8))
            let task = session.dataTask(with: request)
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.body == Data("one".utf8))
            #expect(protocols(record).last == "http/1.1")
            #expect(server.requests.map(\.isHTTP2) == [true, false])
            #expect(server.requests.map(\.bodyText) == ["body", "body"])
            #expect(server.protocols == ["h2", "http/1.1"])
        }
    }

    @Test func `a server that requires HTTP/1.1 but does not speak it fails the load`() async throws {
        try await withHTTP2Scenario(
            greeting: { $0 == 0 ? [.settings()] : [.close] }, reply: { _ in [.resetStream(.http11Required)] }
        ) { (server, session) async throws in
            await expectFailure(in: brokenProtocol) { try await session.text(server.url()) }
            #expect((2...4).contains(server.connectionCount))
        }
    }

    /// RFC 9113, section 9.2.2 and appendix A: cipher suites without ephemeral key exchange and AEAD are prohibited.
    ///
    /// nginx offers HTTP/2 even over prohibited cipher suites.
    @Test(
        arguments: [
            ("ECDHE-ECDSA-AES128-GCM-SHA256", 0xC02B, "h2"), ("ECDHE-ECDSA-CHACHA20-POLY1305", 0xCCA9, "h2"),
            ("ECDHE-ECDSA-AES128-SHA", 0xC009, "http/1.1"), ("ECDHE-ECDSA-AES256-SHA", 0xC00A, "http/1.1"),
        ])
    func `over a cipher suite that is prohibited for HTTP/2, HTTP/1.1 is spoken`(
        name: String, suite: Int, version: String
    ) async throws {
        let certificates = try TestCertificates.shared.get()
        let nginx = try NginxServer.start(certificates.valid, ciphers: name)
        defer { nginx.stop() }
        try nginx.put("small".utf8, at: "/small.txt")
        let recorder = EventRecorder()
        let configure = { (configuration: URLSessionConfiguration) in
            configuration.speakHTTP2(.secure, certificates)
            configuration.urlCache = nil
        }
        try await withSession(delegate: recorder, configure) { (session) async throws in
            let url = nginx.url("/small.txt", .http2)
            async let texts = [session.text(url), session.text(url), session.text(url)]
            #expect(try await texts == ["small", "small", "small"])
            let task = session.dataTask(with: url)
            task.resume()
            let metrics = try #require(try await recorder.completion(of: task).metrics?.transactionMetrics)
            #expect(metrics.map(\.networkProtocolName) == [version])
            #expect(metrics.map(\.isReusedConnection) == [true])
            #expect(metrics.map { $0.negotiatedTLSCipherSuite.map { Int($0.rawValue) } } == [suite])
        }
    }

    /// NTLM authenticates an HTTP/1.1 connection, as Negotiate does (RFC 4559, section 6); RFC 9113 defines no such authentication.
    @Test func `NTLM uses HTTP/1.1 even if the server offers it over HTTP/2`() async throws {
        let script = NTLMScript()
        let answer = script.script()
        let interview = Interview(user: "ada", password: "lovelace")
        try await withHTTP2Scenario(
            delegate: Interviewer(interview), greeting: { $0 == 0 ? [.settings()] : [] },
            reply: { request in
                if request.isHTTP2 { return .status(401, [("www-authenticate", "NTLM")]) }
                var recorded = RecordedRequest()
                recorded.headers = request.fields.map { ($0.name, $0.value) }
                recorded.connection = request.connection
                return answer(recorded).effects.compactMap { effect in
                    if case .close = effect { return .close }
                    return effect.bytes.map { .write($0) }
                }
            }
        ) { (server, session) async throws in
            let (text, response) = try await session.text(URLRequest(server.url("/ntlm")))
            #expect(text == "in as ada" && response.statusCode == 200)
            #expect(server.requests.filter(\.isHTTP2).count <= 2)
            #expect(script.legs.map(\.message).suffix(2) == [1, 3])
            #expect(server.requests.filter(\.isHTTP2).allSatisfy { $0.header("authorization") == nil })
        }
    }

    // MARK: Several hosts on one connection (RFC 9113, section 9.1.1)

    private func withHosts(
        _ hosts: [String: [String]], identity: TestCertificates.Identity? = nil,
        delegate: (any URLSessionDelegate)? = nil,
        reply: @escaping HTTP2ScriptedServer.Reply = { .ok("\($0.authority) on \($0.connection)") },
        test: (HTTP2ScriptedServer, URLSession) async throws -> Void
    ) async throws {
        let certificates = try TestCertificates.shared.get()
        try await withHTTP2Scenario(
            identity: identity ?? certificates.wildcard, delegate: delegate,
            configure: { configuration in
                for (host, addresses) in hosts { configuration.connectionOptions.addresses[.init(host: host)] = addresses }
            }, reply: reply, test: test)
    }

    @Test func `hosts with one certificate and one address share a connection`() async throws {
        let hosts = ["a.example.com": ["127.0.0.1"], "b.example.com": ["127.0.0.1"]]
        try await withHosts(hosts) { (server, session) async throws in
            for host in ["a.example.com", "b.example.com", "a.example.com"] {
                #expect(try await session.text(server.url("/", host: host)) == "\(host):\(server.port) on 0")
            }
            #expect(server.serverNames == ["a.example.com"])
        }
    }

    @Test func `hosts with different addresses do not share a connection`() async throws {
        let hosts = ["a.example.com": ["127.0.0.1"], "b.example.com": ["127.0.0.2"]]
        try await withHosts(hosts) { (server, session) async throws in
            let first = server.url("/", host: "a.example.com")
            #expect(try await session.text(first) == "a.example.com:\(server.port) on 0")
            // No server listens on the address of b.example.com.
            await expectFailure(.cannotConnectToHost) { try await session.text(server.url("/", host: "b.example.com")) }
            #expect(server.connectionCount == 1)
        }
    }

    @Test func `a host that is not in the certificate neither shares the connection nor is trusted`() async throws {
        let hosts = ["a.example.com": ["127.0.0.1"], "a.b.example.com": ["127.0.0.1"], "example.com": ["127.0.0.1"]]
        try await withHosts(hosts) { (server, session) async throws in
            #expect(try await session.text(server.url("/", host: "a.example.com")) == "a.example.com:\(server.port) on 0")
            for host in ["a.b.example.com", "example.com"] {
                await expectFailure(.serverCertificateUntrusted, in: host) { try await session.text(server.url("/", host: host)) }
            }
            #expect(server.requests.count == 1)
        }
    }

    /// RFC 9110, section 15.5.20: the client may retry the request over a different connection.
    @Test func `a request that gets 421 on a shared connection is retried on a new one`() async throws {
        let hosts = ["a.example.com": ["127.0.0.1"], "b.example.com": ["127.0.0.1"]]
        try await withHosts(
            hosts,
            reply: { request in
                let isMisdirected = request.connection == 0 && request.authority.hasPrefix("b.")
                return isMisdirected ? .status(421) : .ok("\(request.authority) on \(request.connection)")
            }
        ) { (server, session) async throws in
            let (a, b) = (server.url("/", host: "a.example.com"), server.url("/", host: "b.example.com"))
            #expect(try await session.text(a) == "a.example.com:\(server.port) on 0")
            let request = URLRequest(b, method: "POST", body: Data("body".utf8))
            #expect(try await session.text(request).text == "b.example.com:\(server.port) on 1")
            #expect(server.serverNames == ["a.example.com", "b.example.com"])
            // Later requests to b.example.com use the new connection, too.
            #expect(try await session.text(b) == "b.example.com:\(server.port) on 1")
            #expect(try await session.text(a) == "a.example.com:\(server.port) on 0")
            #expect(server.requests.map(\.bodyText) == ["", "body", "body", "", ""])
        }
    }

    @Test func `a streamed body is requested again after a 421 on a shared connection`() async throws {
        let hosts = ["a.example.com": ["127.0.0.1"], "b.example.com": ["127.0.0.1"]]
        try await withHosts(
            hosts, delegate: BodyStreamProvider(),
            reply: { request in
                request.connection == 0 && request.authority.hasPrefix("b.") ? .status(421) : .ok("on \(request.connection)")
            }
        ) { (server, session) async throws in
            #expect(try await session.text(server.url("/", host: "a.example.com")) == "on 0")
            var request = URLRequest(server.url("/", host: "b.example.com"), method: "POST")
            request.httpBodyStream = InputStream(data: Data("body".utf8))
            #expect(try await session.text(request).text == "on 1")
            #expect(server.requests.map(\.bodyText) == ["", "body", "body"])
        }
    }

    @Test func `a host that shared a connection gets its own after a flush`() async throws {
        let hosts = ["a.example.com": ["127.0.0.1"], "b.example.com": ["127.0.0.1"]]
        try await withHosts(
            hosts,
            reply: { request in
                let answer: [HTTP2Step] = .ok("\(request.authority) on \(request.connection)")
                return request.path == "/slow" ? [.awaitRequestEnd, .gate("slow")] + answer : answer
            }
        ) { (server, session) async throws in
            let (a, b) = (server.url("/", host: "a.example.com"), server.url("/", host: "b.example.com"))
            #expect(try await session.text(a) == "a.example.com:\(server.port) on 0")
            #expect(try await session.text(b) == "b.example.com:\(server.port) on 0")
            let slow = server.url("/slow", host: "a.example.com")
            async let text = session.text(slow)
            _ = try await server.request(2)
            await session.flush()
            #expect(try await session.text(b) == "b.example.com:\(server.port) on 1")
            #expect(server.serverNames == ["a.example.com", "b.example.com"])
            server.open("slow")
            let last = try await text
            #expect(last == "a.example.com:\(server.port) on 0")
        }
    }

    @Test func `421 on an unshared connection is the response`() async throws {
        try await withHTTP2Scenario(reply: { _ in .status(421, body: Array("not here".utf8)) }) {
            (server, session) async throws in
            let (text, response) = try await session.text(URLRequest(server.url()))
            #expect(text == "not here" && response.statusCode == 421 && server.requests.count == 1)
        }
    }

    @Test func `HTTP/2 works through a proxy's tunnel`() async throws {
        let proxy = try SmallServer.tinyproxy()
        defer { proxy.stop() }
        let recorder = EventRecorder()
        try await withHTTP2Scenario(
            delegate: recorder,
            configure: { $0.connectionProxyDictionary = ["HTTPSEnable": 1, "HTTPSProxy": "127.0.0.1", "HTTPSPort": proxy.port] },
            reply: { .ok($0.path) }
        ) { (server, session) async throws in
            let task = session.dataTask(with: server.url("/a", host: "127.0.0.1"))
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.body == Data("/a".utf8) && protocols(record) == ["h2"])
            #expect(record.metrics?.transactionMetrics.first?.isProxyConnection == true)
            #expect(server.protocols == ["h2"])
        }
    }
}

/// A delegate that supplies the body stream again, and leaves server trust to the system.
private final class BodyStreamProvider: NSObject, URLSessionTaskDelegate {
    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
    ) {
        completionHandler(InputStream(data: Data("body".utf8)))
    }
}
