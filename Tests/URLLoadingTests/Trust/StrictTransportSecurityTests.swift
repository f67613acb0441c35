// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// RFC 6797: a host that asked for TLS is only contacted over TLS.
@Suite(.timeLimit(.minutes(2)))
struct StrictTransportSecurityTests {
    private static let field = "Strict-Transport-Security"
    /// A host under a preloaded top-level domain; no resolver is asked for it, because a label has at most 63 bytes.
    private static let unresolvable = String(repeating: "a", count: 64) + ".dev"

    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    /// Runs a test with a TLS server whose responses have a Strict-Transport-Security field with each of these values.
    private func withSecure(
        _ values: [String] = ["max-age=1000"],
        delegate: (any URLSessionDelegate)? = nil,
        configure: (URLSessionConfiguration) -> Void = { _ in },
        reply: @escaping @Sendable (RecordedRequest) -> ScriptedReply? = { _ in nil },
        test: (ScriptedServer, URLSession) async throws -> Void
    ) async throws {
        try await withScenario(
            identity: certificates.valid, delegate: delegate,
            configure: { configuration in
                configuration.tlsTrustRoots = [certificates.root]
                configure(configuration)
            },
            reply: { reply($0) ?? .ok("secret", values.map { (Self.field, $0) }) }, test: test
        )
    }

    /// The same URL with http.
    private func inClear(_ url: URL) throws -> URL {
        try #require(URL(string: url.absoluteString.replacingOccurrences(of: "https:", with: "http:")))
    }

    /// Whether a load is sent over TLS, according to its task.
    private func isUpgraded(_ url: URL, _ session: URLSession, recorder: EventRecorder = EventRecorder()) async throws -> Bool {
        let done = Delivered<Bool>()
        let task = session.dataTask(with: url) { _, _, _ in done(true) }
        task.resume()
        _ = try await done.value
        #expect(task.originalRequest?.url == url)
        return task.currentRequest?.url?.scheme == "https"
    }

    // MARK: The upgrade

    @Test func `the next http request is sent over TLS, to the port in its URL`() async throws {
        try await withSecure { (server, session) async throws in
            _ = try await session.data(from: server.url("/", host: "localhost"))
            let url = try inClear(server.url("/path?q=1#f", host: "localhost"))
            let (text, response) = try await session.text(URLRequest(url))
            #expect(text == "secret")
            #expect(response.url == server.url("/path?q=1#f", host: "localhost"))
            #expect(server.requests.map(\.target) == ["/", "/path?q=1"])
        }
    }

    @Test func `no cleartext is sent`() async throws {
        let clear = try await ScriptedServer.start(greeting: { _ in [.awaitBytes(5), .reset] }, reply: { _ in .ok() })
        try await withSecure { (server, session) async throws in
            _ = try await session.data(from: server.url("/", host: "localhost"))
            var request = URLRequest(clear.url("/secret-path", host: "localhost"), headers: ["Authorization": "secret"])
            request.setValue("own=secret", forHTTPHeaderField: "Cookie")
            let error = await expectFailure(.secureConnectionFailed, .networkConnectionLost) {
                try await session.data(for: request)
            }
            #expect(error?.failingURL?.scheme == "https")
            #expect(error?.failingURL?.port == clear.port)
        }
        #expect(clear.requests.isEmpty)
        for connection in 0..<clear.connectionCount {
            let bytes = clear.received(on: connection)
            #expect(bytes.isEmpty || bytes.first == 0x16, "no TLS handshake")
            #expect(!String(decoding: bytes, as: UTF8.self).contains("secret"))
        }
        // Closing fails: the server received a TLS handshake that it cannot parse.
        try? await clear.close()
    }

    @Test func `the upgrade is a transaction without network activity, and not a redirect`() async throws {
        let recorder = EventRecorder()
        try await withSecure(delegate: recorder) { (server, session) async throws in
            _ = try await session.data(from: server.url("/", host: "localhost"))
            let url = try inClear(server.url("/a", host: "localhost"))
            let task = session.dataTask(with: url)
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.letters == "cRDME")
            #expect(record.error == nil)
            let metrics = try #require(record.metrics)
            #expect(metrics.redirectCount == 0)
            let transactions = metrics.transactionMetrics
            try #require(transactions.count == 2)
            #expect(transactions.map { $0.request.url?.scheme } == ["http", "https"])
            #expect(transactions.map { ($0.response as? HTTPURLResponse)?.statusCode } == [307, 200])
            #expect(transactions[0].resourceFetchType != .networkLoad)
            #expect(transactions[0].connectStartDate == nil && transactions[0].remoteAddress == nil)
            #expect(transactions[0].countOfRequestHeaderBytesSent == 0)
            #expect(transactions[1].resourceFetchType == .networkLoad)
            #expect(transactions[1].negotiatedTLSProtocolVersion != nil)
            #expect(task.originalRequest?.url == url)
            #expect(task.currentRequest?.url == server.url("/a", host: "localhost"))
            #expect(task.response?.url == server.url("/a", host: "localhost"))
        }
    }

    @Test func `an upgraded request keeps its method, fields and body, and carries Secure cookies`() async throws {
        try await withSecure(reply: { request in
            request.order == 0 ? .ok("", [(Self.field, "max-age=1000"), ("Set-Cookie", "s=1; Secure; SameSite=Strict")]) : nil
        }) { (server, session) async throws in
            _ = try await session.data(from: server.url("/", host: "localhost"))
            let url = try inClear(server.url("/a", host: "localhost"))
            var request = URLRequest(
                url, method: "POST", headers: ["X-Mine": "1", "Cookie": "own=2"], body: Data("payload".utf8))
            request.mainDocumentURL = url
            _ = try await session.data(for: request)
            let received = try await server.request(1)
            #expect(received.method == "POST" && received.bodyText == "payload")
            #expect(received.header("X-Mine") == "1")
            #expect(received.header("Cookie") == "own=2; s=1")
        }
    }

    @Test func `a redirect to http is upgraded too`() async throws {
        let recorder = EventRecorder()
        try await withSecure(
            delegate: recorder,
            reply: { request in
                guard request.path == "/a" else { return nil }
                return .redirect(302, to: "http://\(request.header("Host") ?? "")/b", [(Self.field, "max-age=1000")])
            }
        ) { (server, session) async throws in
            let task = session.dataTask(with: server.url("/a", host: "localhost"))
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.error == nil && record.body == Data("secret".utf8))
            #expect(record.redirectRequests.count == 1)
            #expect(record.metrics?.redirectCount == 1)
            #expect(record.metrics?.transactionMetrics.map { ($0.response as? HTTPURLResponse)?.statusCode } == [302, 307, 200])
            #expect(task.currentRequest?.url == server.url("/b", host: "localhost"))
            #expect(server.requests.map(\.path) == ["/a", "/b"])
        }
    }

    @Test func `downloads, uploads and completion handlers are upgraded`() async throws {
        try await withSecure { (server, session) async throws in
            _ = try await session.data(from: server.url("/", host: "localhost"))
            let url = try inClear(server.url("/a", host: "localhost"))
            try FileManager.default.removeItem(at: try await session.download(from: url).0)
            let (data, _) = try await session.upload(for: URLRequest(url, method: "PUT"), from: Data("x".utf8))
            #expect(data == Data("secret".utf8))
            let stream = URLRequest(url, method: "POST")
            _ = try await session.upload(for: stream, from: Data(count: 2_000_000))
            #expect(try await isUpgraded(url, session))
            #expect(server.requests.count == 5)
        }
    }

    // MARK: Which responses count

    struct Row: Sendable, CustomTestStringConvertible {
        let fields: [String]
        let host: String
        let isUpgraded: Bool
        var testDescription: String { "\(fields) for \(host)" }
    }

    @Test(arguments: [
        Row(fields: ["max-age=1000"], host: "localhost", isUpgraded: true),
        Row(fields: ["max-age=1000"], host: "LOCALHOST", isUpgraded: true),
        Row(fields: ["max-age=1000"], host: "localhost.", isUpgraded: true),
        Row(fields: ["max-age=1000"], host: "sub.localhost", isUpgraded: false),
        Row(fields: ["max-age=1000; includeSubDomains"], host: "sub.localhost", isUpgraded: true),
        Row(fields: ["INCLUDESUBDOMAINS ; Max-Age = \"1000\" ; preload"], host: "a.b.localhost", isUpgraded: true),
        Row(fields: ["max-age=1000; includeSubDomains"], host: "127.0.0.1", isUpgraded: false),
        Row(fields: ["max-age=0"], host: "localhost", isUpgraded: false),
        Row(fields: ["includeSubDomains"], host: "localhost", isUpgraded: false),
        Row(fields: ["max-age=x"], host: "localhost", isUpgraded: false),
        Row(fields: ["max-age=-1"], host: "localhost", isUpgraded: false),
        Row(fields: ["max-age=1000; max-age=1000"], host: "localhost", isUpgraded: false),
        Row(fields: ["nonsense, max-age"], host: "localhost", isUpgraded: false),
        // "The UA MUST process only the first such header field."
        Row(fields: ["max-age=0", "max-age=1000"], host: "localhost", isUpgraded: false),
        Row(fields: ["max-age=1000", "max-age=0"], host: "localhost", isUpgraded: true),
        Row(fields: ["max-age=99999999999999999999999"], host: "localhost", isUpgraded: true),
        Row(fields: ["max-age=1000; unknown=1; also"], host: "localhost", isUpgraded: true),
    ])
    func `the field applies to its host, and to subdomains if it says so`(row: Row) async throws {
        try await withScriptedServer(greeting: { _ in [] }, reply: { _ in .ok("clear") }) { (clear) async throws in
            try await withSecure(row.fields) { (server, session) async throws in
                _ = try await session.data(from: server.url("/", host: "localhost"))
                let url = (row.isUpgraded ? server : clear).url("/", host: row.host)
                #expect(try await isUpgraded(inClear(url), session) == row.isUpgraded)
                #expect(clear.requests.count == (row.isUpgraded ? 0 : 1))
            }
        }
    }

    @Test func `an IP address is never upgraded`() async throws {
        try await withScriptedServer(reply: { _ in .ok("clear") }) { (clear) async throws in
            try await withSecure(["max-age=1000; includeSubDomains"]) { (server, session) async throws in
                _ = try await session.data(from: server.url())
                #expect(try await session.text(clear.url()) == "clear")
            }
        }
    }

    @Test func `the field is ignored over http`() async throws {
        try await withScenario(
            reply: { _ in .ok("clear", [(Self.field, "max-age=1000; includeSubDomains")]) }
        ) { (server, session) async throws in
            for _ in 0..<2 { #expect(try await session.text(server.url("/", host: "localhost")) == "clear") }
        }
    }

    @Test func `max-age=0 over http does not clear the entry`() async throws {
        let field = Self.field
        try await withScriptedServer(reply: { _ in .ok("clear", [(field, "max-age=0")]) }) { (clear) async throws in
            try await withSecure { (server, session) async throws in
                _ = try await session.data(from: server.url("/", host: "localhost"))
                // Another name of the same server, and the address: neither is upgraded.
                _ = try await session.data(from: clear.url("/", host: "sub.localhost"))
                _ = try await session.data(from: clear.url("/"))
                #expect(try await isUpgraded(inClear(server.url("/", host: "localhost")), session))
            }
        }
    }

    @Test func `the field of a server with an untrusted certificate is ignored`() async throws {
        try await withScriptedServer(reply: { _ in .ok("clear") }) { (clear) async throws in
            try await withScenario(
                identity: certificates.unknownAuthority, reply: { _ in .ok("", [(Self.field, "max-age=1000")]) }
            ) { (server, session) async throws in
                await expectFailure(.serverCertificateHasUnknownRoot) {
                    try await session.data(from: server.url("/", host: "localhost"))
                }
                #expect(try await session.text(clear.url("/", host: "localhost")) == "clear")
            }
        }
    }

    @Test func `a host can clear its entry`() async throws {
        try await withScriptedServer(reply: { _ in .ok("clear") }) { (clear) async throws in
            try await withSecure(reply: { $0.path == "/off" ? .ok("", [(Self.field, "max-age=0")]) : nil }) {
                (server, session) async throws in
                _ = try await session.data(from: server.url("/on", host: "localhost"))
                #expect(try await isUpgraded(inClear(server.url("/", host: "localhost")), session))
                _ = try await session.data(from: server.url("/off", host: "localhost"))
                #expect(try await session.text(clear.url("/", host: "localhost")) == "clear")
            }
        }
    }

    @Test func `a response without the field does not change the entry`() async throws {
        try await withSecure(reply: { $0.path == "/silent" ? .ok("") : nil }) { (server, session) async throws in
            _ = try await session.data(from: server.url("/", host: "localhost"))
            _ = try await session.data(from: server.url("/silent", host: "localhost"))
            #expect(try await isUpgraded(inClear(server.url("/", host: "localhost")), session))
        }
    }

    @Test(arguments: [301, 401, 404, 500])
    func `the field counts with any status`(status: Int) async throws {
        try await withSecure(reply: { $0.order == 0 ? .status(status, [(Self.field, "max-age=1000")]) : nil }) {
            (server, session) async throws in
            _ = try await session.data(from: server.url("/", host: "localhost"))
            #expect(try await isUpgraded(inClear(server.url("/", host: "localhost")), session))
        }
    }

    // MARK: Preloaded domains

    @Test(arguments: [
        ("http://HOST:8080/a?b", "https://HOST:8080/a?b"), ("http://HOST/a", "https://HOST/a"),
        ("http://HOST:80/a", "https://HOST/a"),
    ])
    func `hosts of a preloaded domain are upgraded from the start`(from: String, to: String) async throws {
        let recorder = EventRecorder()
        try await withSession(delegate: recorder) { (session) async throws in
            let url = try #require(URL(string: from.replacingOccurrences(of: "HOST", with: Self.unresolvable)))
            let secure = try #require(URL(string: to.replacingOccurrences(of: "HOST", with: Self.unresolvable)))
            let task = session.dataTask(with: url)
            task.resume()
            let record = try await recorder.completion(of: task)
            let error = try #require(record.error as? URLError)
            #expect(error.code == .cannotFindHost)
            #expect(error.failingURL == secure)
            #expect(task.originalRequest?.url == url)
            #expect(task.currentRequest?.url == secure)
            #expect(record.metrics?.redirectCount == 0)
        }
    }

    // MARK: Disabling, and clearing

    @Test func `a configuration can disable the upgrade`() async throws {
        try await withScriptedServer(reply: { _ in .ok("clear") }) { (clear) async throws in
            try await withSecure(configure: { $0.usesHTTPStrictTransportSecurity = false }) { (server, session) async throws in
                _ = try await session.data(from: server.url("/", host: "localhost"))
                #expect(try await session.text(clear.url("/", host: "localhost")) == "clear")
                let preloaded = try #require(URL(string: "http://\(Self.unresolvable):8080/"))
                #expect(try await !isUpgraded(preloaded, session))
            }
        }
        #expect(URLSessionConfiguration.default.usesHTTPStrictTransportSecurity)
        #expect(URLSessionConfiguration.ephemeral.usesHTTPStrictTransportSecurity)
    }

    @Test func `sessions of one ephemeral configuration share HSTS hosts, others do not`() async throws {
        try await withScriptedServer(reply: { _ in .ok("clear") }) { (clear) async throws in
            try await withSecure { (server, _) async throws in
                let (root, secure) = (certificates.root, server.url("/", host: "localhost"))
                let upgraded = try inClear(secure)
                await #expect(processExitsWith: .success) {
                    [
                        root = root as Data, secure = secure as URL, upgraded = upgraded as URL,
                        clear = clear.url("/", host: "localhost") as URL
                    ] () async throws in
                    try TestHome.trust(root)
                    let configuration = URLSessionConfiguration.ephemeral
                    let (one, two) = (URLSession(configuration: configuration), URLSession(configuration: configuration))
                    _ = try await one.data(from: secure)
                    #expect(try await two.text(upgraded) == "secret")
                    #expect(try await URLSession(configuration: .ephemeral).text(clear) == "clear")
                }
            }
        }
    }

    @Test func `a host trusted through a session's own roots is remembered by that session only`() async throws {
        try await withScriptedServer(reply: { _ in .ok("clear") }) { (clear) async throws in
            let configuration = URLSessionConfiguration.ephemeral
            configuration.tlsTrustRoots = [certificates.root]
            let (one, two) = (URLSession(configuration: configuration), URLSession(configuration: configuration))
            defer {
                one.invalidateAndCancel()
                two.invalidateAndCancel()
            }
            try await withSecure { (server, _) async throws in
                _ = try await one.data(from: server.url("/", host: "localhost"))
                #expect(try await isUpgraded(inClear(server.url("/", host: "localhost")), one))
                #expect(try await two.text(clear.url("/", host: "localhost")) == "clear")
            }
        }
    }

    @Test func `reset clears the HSTS hosts`() async throws {
        try await withScriptedServer(reply: { _ in .ok("clear") }) { (clear) async throws in
            try await withSecure { (server, session) async throws in
                _ = try await session.data(from: server.url("/", host: "localhost"))
                #expect(try await isUpgraded(inClear(server.url("/", host: "localhost")), session))
                await session.reset()
                #expect(try await session.text(clear.url("/", host: "localhost")) == "clear")
            }
        }
    }

    @Test func `HSTS hosts persist across runs of a program until a reset`() async throws {
        let folder = try TemporaryDirectory()
        try await withScriptedServer(reply: { _ in .ok("clear") }) { (clear) async throws in
            try await withSecure { (server, _) async throws in
                let (home, root, secure) = (folder.path, certificates.root, server.url("/", host: "localhost"))
                let upgraded = try inClear(secure)
                await #expect(processExitsWith: .success) {
                    [home = home as String, root = root as Data, secure = secure as URL] () async throws in
                    let session = try Self.session(in: home, root)
                    #expect(try await session.text(secure) == "secret")
                    await session.flush()
                }
                await #expect(processExitsWith: .success) {
                    [home = home as String, root = root as Data, upgraded = upgraded as URL] () async throws in
                    let session = try Self.session(in: home, root)
                    #expect(try await session.text(upgraded) == "secret")
                    await session.reset()
                    await session.flush()
                }
                await #expect(processExitsWith: .success) {
                    [home = home as String, root = root as Data, clear = clear.url("/", host: "localhost") as URL] () async throws
                    in
                    #expect(try await Self.session(in: home, root).text(clear) == "clear")
                }
            }
        }
    }

    /// A session with the default configuration in its own process, which stores its data in a folder.
    private static func session(in home: String, _ root: Data) throws -> URLSession {
        TestHome.settle(in: home)
        try TestHome.trust(root)
        return URLSession(configuration: .default)
    }
}
