// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Redirects in the WebSocket handshake, and the credentials that must not follow them.
@Suite(.timeLimit(.minutes(1)))
struct WebSocketRedirectTests {
    private static let secrets = [
        "Authorization": "Bearer secret", "Cookie": "session=secret", "Proxy-Authorization": "Basic secret",
    ]

    private static func socket(_ request: RecordedRequest) -> ScriptedReply { .greeting(request).then(.stall) }

    @Test(arguments: [301, 302, 303, 307, 308])
    func `a redirect within the origin is followed with a new key, and the delegate is called`(status: Int) async throws {
        let recorder = WebSocketRecorder()
        try await withScenario(
            delegate: recorder, reply: { $0.path == "/a" ? .redirect(status, to: "b?x") : Self.socket($0) }
        ) { (server, session) async throws in
            var request = URLRequest(server.socketURL("/a"), headers: Self.secrets)
            request.setValue("chat", forHTTPHeaderField: "Sec-WebSocket-Protocol")
            let task = session.webSocketTask(with: request)
            task.resume()
            #expect(try await task.nextText() == "hello")
            let record = try await recorder.completion(of: task)
            #expect(record.letters == "croxME" && record.error == nil)
            #expect(record.redirects.map(\.url) == [server.socketURL("/b?x")])
            #expect(server.requests.map(\.target) == ["/a", "/b?x"] && server.requests.map(\.method) == ["GET", "GET"])
            #expect(server.requests.map { $0.values(of: "Sec-WebSocket-Protocol") } == [["chat"], ["chat"]])
            #expect(Set(server.requests.compactMap { $0.header("Sec-WebSocket-Key") }).count == 2)
            #expect(task.currentRequest?.url == server.socketURL("/b?x") && task.originalRequest?.url == server.socketURL("/a"))
            #expect(task.response?.url == server.socketURL("/b?x"))
        }
    }

    @Test(arguments: ["http", "ws"]) func `credentials follow a redirect within the origin`(scheme: String) async throws {
        // As for http; http://host:port is the same origin as ws://host:port.
        let place = Watched("")
        try await withScenario(
            reply: { $0.path == "/a" ? .redirect(302, to: place.read { $0 }) : Self.socket($0) }
        ) { (server, session) async throws in
            place.change { [port = server.port] in $0 = "\(scheme)://127.0.0.1:\(port)/b" }
            let task = session.webSocketTask(with: URLRequest(server.socketURL("/a"), headers: Self.secrets))
            task.resume()
            #expect(try await task.nextText() == "hello")
            #expect(server.requests.map { $0.header("Authorization") } == ["Bearer secret", "Bearer secret"])
            #expect(server.requests.map { $0.header("Cookie") } == ["session=secret", "session=secret"])
        }
    }

    @Test(arguments: ["http", "ws"]) func `credentials do not follow a redirect to another host or port, nor return from it`(
        scheme: String
    ) async throws {
        let back = Watched("")
        try await withScriptedServer(
            reply: { $0.path == "/b" ? .redirect(302, to: back.read { $0 }) : Self.socket($0) }
        ) { (other) async throws in
            for host in ["127.0.0.1", "localhost"] {
                let target = "\(scheme)://\(host):\(other.port)/b"
                try await withScenario(
                    reply: { $0.path == "/a" ? .redirect(302, to: target) : Self.socket($0) }
                ) { (server, session) async throws in
                    back.change { [port = server.port] in $0 = "\(scheme)://127.0.0.1:\(port)/c" }
                    let task = session.webSocketTask(with: URLRequest(server.socketURL("/a"), headers: Self.secrets))
                    task.resume()
                    #expect(try await task.nextText() == "hello")
                    #expect(server.requests.map(\.path) == ["/a", "/c"])
                    #expect(server.requests[0].header("Authorization") == "Bearer secret")
                    for request in [try #require(other.requests.last), server.requests[1]] {
                        #expect(!request.headText.contains("secret"))
                        #expect(request.header("Upgrade")?.lowercased() == "websocket")
                    }
                }
            }
        }
    }

    @Test(arguments: ["https", "wss"]) func `redirects to TLS and to cleartext drop credentials`(scheme: String) async throws {
        let certificates = try TestCertificates.shared.get()
        try await withScriptedServer(reply: Self.socket) { (clear) async throws in
            let last = "\(scheme == "https" ? "http" : "ws")://localhost:\(clear.port)/c"
            try await withScriptedServer(
                identity: certificates.valid, reply: { $0.path == "/d" ? Self.socket($0) : .redirect(302, to: last) }
            ) { (secure) async throws in
                for (path, isSecure) in [("/d", true), ("/b", false)] {
                    let target = "\(scheme)://localhost:\(secure.port)\(path)"
                    let recorder = WebSocketRecorder()
                    try await withScenario(
                        delegate: recorder, configure: { $0.tlsTrustRoots = [certificates.root] },
                        reply: { _ in .redirect(302, to: target) }
                    ) { (server, session) async throws in
                        let task = session.webSocketTask(with: URLRequest(server.socketURL("/a"), headers: Self.secrets))
                        task.resume()
                        #expect(try await task.nextText() == "hello")
                        let schemes = isSecure ? ["https", "wss"] : ["http", "ws"]
                        #expect(schemes.contains(task.currentRequest?.url?.scheme ?? ""))
                        let request = try #require((isSecure ? secure : clear).requests.last)
                        #expect(!request.headText.contains("secret") && request.header("Sec-WebSocket-Version") == "13")
                    }
                }
            }
        }
    }

    @Test func `credentials do not follow a redirect from wss to ws`() async throws {
        let certificates = try TestCertificates.shared.get()
        try await withScriptedServer(reply: Self.socket) { (clear) async throws in
            let target = "ws://127.0.0.1:\(clear.port)/b"
            try await withScenario(
                identity: certificates.valid, configure: { $0.tlsTrustRoots = [certificates.root] },
                reply: { _ in .redirect(302, to: target) }
            ) { (server, session) async throws in
                let task = session.webSocketTask(with: URLRequest(server.socketURL("/a"), headers: Self.secrets))
                task.resume()
                #expect(try await task.nextText() == "hello")
                #expect(try #require(clear.requests.first).headText.contains("secret") == false)
                #expect(server.requests.first?.header("Authorization") == "Bearer secret")
            }
        }
    }

    @Test func `a redirect loop fails with its own error`() async throws {
        let recorder = WebSocketRecorder()
        try await withScenario(delegate: recorder, reply: { .redirect(302, to: "/\($0.order)") }) {
            (server, session) async throws in
            let task = session.webSocketTask(with: server.socketURL())
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.code == .httpTooManyRedirects)
            #expect((16...21).contains(server.requests.count))
        }
    }

    @Test func `a redirect that the delegate refuses fails the handshake`() async throws {
        var answers = WebSocketRecorder.Answers()
        answers.redirect = { _, _ in nil }
        let recorder = WebSocketRecorder(answers)
        try await withScenario(delegate: recorder, reply: { $0.order == 0 ? .redirect(302, to: "/b") : Self.socket($0) }) {
            (server, session) async throws in
            let task = session.webSocketTask(with: server.socketURL("/a"))
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.code == .badServerResponse && record.letters == "crME")
            #expect((task.response as? HTTPURLResponse)?.statusCode == 302 && server.requests.count == 1)
        }
    }

    @Test(arguments: ["ftp://127.0.0.1/", "myapp://x/", "file:///etc/hostname", "data:,x", "mailto:a@b.example"])
    func `a redirect to another scheme fails`(location: String) async throws {
        let recorder = WebSocketRecorder()
        try await withScenario(delegate: recorder, reply: { _ in .redirect(302, to: location) }) {
            (server, session) async throws in
            let task = session.webSocketTask(with: server.socketURL())
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.code == .unsupportedURL)
            #expect(!record.letters.contains("o") && server.requests.count == 1)
        }
    }

    @Test func `an http load does not follow a redirect to a WebSocket`() async throws {
        try await withScenario(
            reply: { $0.path == "/a" ? .redirect(302, to: "ws://\($0.header("Host") ?? "")/b") : Self.socket($0) }
        ) { (server, session) async throws in
            await expectFailure(.unsupportedURL) { try await session.data(from: server.url("/a")) }
            #expect(server.requests.map(\.path) == ["/a"])
        }
    }

    @Test func `a redirect without a Location fails the handshake`() async throws {
        let recorder = WebSocketRecorder()
        try await withScenario(delegate: recorder, reply: { _ in .status(302, body: "where?") }) {
            (server, session) async throws in
            let task = session.webSocketTask(with: server.socketURL())
            task.resume()
            #expect(try await recorder.completion(of: task).code == .badServerResponse)
        }
    }
}
