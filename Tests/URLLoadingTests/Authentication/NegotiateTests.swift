// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Negotiate with Kerberos; each suite runs in a process of its own, because the Kerberos library reads its environment once per
/// process.
@Suite(.timeLimit(.minutes(1)))
struct NegotiateTests {
    private func withApache(
        _ users: [String: String], test: (KerberosRealm, ApacheServer) async throws -> Void
    ) async throws {
        let realm = try KerberosRealm.start(users: users)
        defer { realm.stop() }
        let apache = try ApacheServer.start(TestCertificates.shared.get(), realm: realm)
        defer { apache.stop() }
        try await test(realm, apache)
    }

    @Test func `loads with a ticket`() async throws {
        try await withApache(["ada": "lovelace"]) { (realm, apache) async throws in
            var environment = try realm.ticket(for: "ada", password: "lovelace")
            environment["KRB5_KTNAME"] = realm.keytab.path
            environment[NegotiatePlace.variable] = apache.url(NegotiatePlace.path).absoluteString
            try await SeparateProcess.run("LoadsWithTicketTests", environment: environment)
        }
    }

    @Test func `loads with passwords`() async throws {
        try await withApache(["ada": "lovelace", "bob": "builder"]) { (realm, apache) async throws in
            var environment = realm.environment
            environment[NegotiatePlace.variable] = apache.url(NegotiatePlace.path).absoluteString
            try await SeparateProcess.run("LoadsWithPasswordsTests", environment: environment)
        }
    }
}

/// A protected page of the Apache server that the parent process runs.
private enum NegotiatePlace {
    static let variable = "URL_LOADING_NEGOTIATE_URL"
    static let path = "/negotiate/page.txt"
    static let page = "page of negotiate"

    static func url() throws -> URL {
        try #require(ProcessInfo.processInfo.environment[variable].flatMap { URL(string: $0) })
    }

    /// Forwards an `Authorization` value to Apache, like a proxy that lacks Apache's key, and returns Apache's response.
    ///
    /// If `isWrong` is true, the token in the returned challenge is damaged.
    static func answer(to authorization: String, isWrong: Bool) throws -> (status: Int, challenge: String, text: String) {
        let directory = try TemporaryDirectory()
        let page = directory.file("page")
        let text = try ServerProcess.run(
            ServerProcess.Command(
                [
                    ServerProcess.program("curl", package: "curl"), "-q", "-sS", "-4", "-o", page.path,
                    "-H", "Authorization: \(authorization)", "-w", "%{http_code} %header{www-authenticate}",
                    url().absoluteString,
                ],
                output: directory.file("output")
            )
        )
        let words = text.split(whereSeparator: \.isWhitespace)
        var token = words.count == 3 && words[1] == "Negotiate" ? Data(base64Encoded: String(words[2])) ?? Data() : Data()
        let last = try #require(token.indices.last, "Apache says \(text)")
        if isWrong { token[last] ^= 1 }
        let challenge = "Negotiate \(token.base64EncodedString())"
        return (try #require(Int(words[0])), challenge, try String(contentsOf: page, encoding: .utf8))
    }
}

@Suite(.enabled(if: SeparateProcess.isCurrentSuite("LoadsWithTicketTests")))
struct LoadsWithTicketTests {
    @Test func `over TLS each token is bound to the server's certificate`() async throws {
        let certificates = try TestCertificates.shared.get()
        try await withScenario(
            identity: certificates.valid, configure: { $0.tlsTrustRoots = [certificates.root] },
            reply: { request in
                guard request.header("Authorization") != nil else { return .unauthorized("Negotiate") }
                return .ok("in", [("Connection", "close")]).then(.close)
            }
        ) { (server, session) async throws in
            // The second token is sent preemptively, and is made before there is a connection.
            for _ in 0..<2 { #expect(try await session.text(server.url("/x", host: "localhost")) == "in") }
            let tokens = server.requests.compactMap { request in
                request.header("Authorization").flatMap { Data(base64Encoded: String($0.dropFirst("Negotiate ".count))) }
            }
            #expect(server.requests.count == 3 && tokens.count == 2)
            // RFC 5929, section 4.1.
            let leaf = try #require(certificates.valid.chain.first)
            let binding = Array("tls-server-end-point:".utf8) + TestCertificates.sha256(Data(leaf))
            let other = binding.dropLast() + [(binding.last ?? 0) ^ 1]
            for token in tokens.map(Array.init) {
                #expect(try GSSAPIAcceptor.error(of: token, binding: binding) == "0")
                // GSS_S_BAD_BINDINGS
                #expect(try GSSAPIAcceptor.error(of: token, binding: Array(other)) == "4")
            }
        }
    }

    @Test(arguments: [304, 200, 0])
    func `a response obtained with a ticket is not cached, and removes the older one`(status: Int) async throws {
        let fields = [("ETag", "\"v\"")]
        try await withCachedScenario(reply: { request in
            guard request.order > 0 else { return .ok("all", fields + [("Cache-Control", "max-age=0")]) }
            guard request.header("Authorization") != nil else { return .unauthorized("Negotiate") }
            let later = fields + [("Cache-Control", "max-age=600"), ("X-User", "ada")]
            switch status {
            case 304: return .bare(304, later)
            case 0: return .bare(200, later + [("Content-Length", "3")])
            default: return .ok("new", later)
            }
        }) { (server, session, scene) async throws in
            let url = server.url("/x", host: "localhost")
            #expect(try await session.text(url) == "all")
            let (text, response) = try await session.text(URLRequest(url, method: status == 0 ? "HEAD" : "GET"))
            #expect(text == (status == 304 ? "all" : status == 0 ? "" : "new"))
            #expect(response.value(forHTTPHeaderField: "X-User") == "ada")
            #expect(server.requests.last?.header("Authorization") != nil)
            #expect(scene.cache.entries().isEmpty)
        }
    }

    /// Expects that a load returns `text`, or that it fails if the server's token is wrong.
    private func load(_ url: URL, by session: URLSession, isWrong: Bool, text: String) async throws {
        guard isWrong else {
            #expect(try await session.text(url) == text)
            return
        }
        let error = await expectFailure(.badServerResponse) { try await session.text(url) }
        #expect(error?.localizedDescription.contains("did not prove") == true, "\(String(describing: error))")
        #expect(error?.failingURL == url)
    }

    @Test(arguments: [false, true])
    func `a server whose last token is wrong is not authenticated`(isWrong: Bool) async throws {
        try await withScenario(reply: { request in
            guard let authorization = request.header("Authorization") else { return .unauthorized("Negotiate") }
            let answer = try NegotiatePlace.answer(to: authorization, isWrong: isWrong)
            return .status(answer.status, [("WWW-Authenticate", answer.challenge)], body: answer.text)
        }) { (server, session) async throws in
            let url = server.url(NegotiatePlace.path, host: "localhost")
            try await load(url, by: session, isWrong: isWrong, text: NegotiatePlace.page)
            #expect(server.requests.map { $0.header("Authorization") != nil } == [false, true])
        }
    }

    @Test(arguments: [false, true])
    func `a forwarding proxy whose last token is wrong is not authenticated`(isWrong: Bool) async throws {
        try await withScriptedServer(reply: { request in
            guard let authorization = request.header("Proxy-Authorization") else { return .proxyUnauthorized("Negotiate") }
            let answer = try NegotiatePlace.answer(to: authorization, isWrong: isWrong)
            return .ok("through", [("Proxy-Authenticate", answer.challenge)])
        }) { (proxy) async throws in
            try await withSession {
                $0.connectionProxyDictionary = proxyDictionary(http: proxy.port)
            } test: { (session) async throws in
                let url = try #require(URL(string: "http://far.local/x"))
                try await load(url, by: session, isWrong: isWrong, text: "through")
                #expect(proxy.requests.map { $0.header("Proxy-Authorization") != nil } == [false, true])
            }
        }
    }

    @Test(arguments: [false, true])
    func `a tunneling proxy whose last token is wrong is not authenticated`(isWrong: Bool) async throws {
        let certificates = try TestCertificates.shared.get()
        try await withScriptedServer(identity: certificates.valid, reply: { _ in .ok("through") }) { (server) async throws in
            let port = server.port
            try await withTunnelProxy({ demand in
                let ask = ScriptedReply.head(407, [("Proxy-Authenticate", "Negotiate"), ("Content-Length", "0")])
                guard let authorization = demand.authorization,
                    let answer = try? NegotiatePlace.answer(to: authorization, isWrong: isWrong)
                else { return .say(ask) }
                return .tunnel(to: port, fields: "Proxy-Authenticate: \(answer.challenge)\r\n")
            }) { (proxy) async throws in
                try await withSession {
                    $0.tlsTrustRoots = [certificates.root]
                    $0.connectionProxyDictionary = proxyDictionary(https: proxy.port)
                } test: { (session) async throws in
                    try await load(server.url("/x"), by: session, isWrong: isWrong, text: "through")
                    #expect(proxy.demands.map { $0.authorization != nil } == [false, true])
                    #expect(server.requests.count == (isWrong ? 0 : 1))
                }
            }
        }
    }
}

@Suite(.enabled(if: SeparateProcess.isCurrentSuite("LoadsWithPasswordsTests")))
struct LoadsWithPasswordsTests {
    /// Reports the local port of a load's last request.
    private final class PortListener: NSObject, URLSessionTaskDelegate, Sendable {
        let port = Delivered<Int?>()

        func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
            port(metrics.transactionMetrics.last?.localPort)
        }
    }

    @Test func `each user has a separate connection, and so do requests without a user`() async throws {
        let users = [("ada", "lovelace"), ("bob", "builder")]
        let interview = Interview { _, number in
            let (user, password) = users[number % 2]
            return (.useCredential, URLCredential(user: user, password: password, persistence: .none))
        }
        // There is no cache, because the last transaction of a revalidated page does not report a connection.
        try await withSession(delegate: Interviewer(interview)) {
            $0.urlCache = nil
        } test: { (session) async throws in
            let place = try NegotiatePlace.url()
            let open = try #require(URL(string: "/open/page.txt", relativeTo: place))
            var ports: [Int?] = []
            for (url, user) in [(place, "ada@\(KerberosRealm.name)"), (place, "bob@\(KerberosRealm.name)"), (open, "")] {
                let listener = PortListener()
                let (data, response) = try await session.data(from: url.absoluteURL, delegate: listener)
                let http = try #require(response as? HTTPURLResponse)
                #expect(http.statusCode == 200 && String(decoding: data, as: UTF8.self).hasPrefix("page of"))
                #expect(http.value(forHTTPHeaderField: "X-User") == user)
                ports.append(try await listener.port.value)
            }
            #expect(!ports.contains(nil) && Set(ports).count == 3, "\(ports)")
            #expect(interview.methods == ["Negotiate", "Negotiate"] && interview.failures == [0, 0])
            #expect(interview.questions.allSatisfy { $0.by == "session" && $0.realm == nil })
        }
    }
}
