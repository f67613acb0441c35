// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// The handshake request, and the 101 responses that complete it (RFC 6455, section 4).
@Suite(.timeLimit(.minutes(1)))
struct WebSocketHandshakeTests {
    /// Opens a task at a scripted server that accepts it, and returns the request.
    private func request(
        _ make: (ScriptedServer, URLSession) throws -> URLSessionWebSocketTask,
        configure: (URLSessionConfiguration) -> Void = { _ in },
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> RecordedRequest {
        let recorder = WebSocketRecorder()
        var recorded = RecordedRequest()
        try await withScenario(delegate: recorder, configure: configure, reply: { .greeting($0).then(.stall) }) {
            (server, session) async throws in
            let task = try make(server, session)
            task.resume()
            try await recorder.opening(of: task, sourceLocation: sourceLocation)
            recorded = try #require(server.requests.first)
        }
        return recorded
    }

    // MARK: The request

    @Test func `the request is as in the RFC, and has no Origin`() async throws {
        let request = try await request { server, session in session.webSocketTask(with: server.socketURL("/chat?x=1")) }
        #expect(request.method == "GET" && request.target == "/chat?x=1" && request.version == "HTTP/1.1")
        #expect(request.values(of: "Host").count == 1 && request.header("Host")?.hasPrefix("127.0.0.1:") == true)
        #expect(request.values(of: "Upgrade").map { $0.lowercased() } == ["websocket"])
        let options = request.values(of: "Connection").flatMap { $0.lowercased().components(separatedBy: ", ") }
        #expect(options.contains("upgrade") && !options.contains("close"))
        #expect(request.values(of: "Sec-WebSocket-Version") == ["13"])
        let keys = request.values(of: "Sec-WebSocket-Key")
        #expect(keys.count == 1 && Data(base64Encoded: keys[0])?.count == 16)
        for name in [
            "Origin", "Sec-WebSocket-Protocol", "Sec-WebSocket-Extensions", "Sec-WebSocket-Accept", "Content-Length",
            "Transfer-Encoding", "Authorization", "Cookie", "If-None-Match", "Range",
        ] {
            #expect(request.values(of: name) == [], "\(name)")
        }
        #expect(request.header("User-Agent") != nil)
    }

    @Test(arguments: [("", "/"), ("/", "/"), ("?a=b", "/?a=b"), ("/a%20b/%C3%A4", "/a%20b/%C3%A4"), ("/a#fragment", "/a")])
    func `the target is the path and query only`(path: String, target: String) async throws {
        let request = try await request { server, session in
            session.webSocketTask(with: try #require(URL(string: "ws://127.0.0.1:\(server.port)\(path)")))
        }
        #expect(request.target == target && !request.headText.contains("fragment"))
    }

    @Test func `each handshake has its own key`() async throws {
        let keys = Delivered<String>()
        try await withWebSocket { connection in
            keys(connection.field("Sec-WebSocket-Key") ?? "")
            try echoing(connection)
        } test: { (peer, session) async throws in
            for _ in 0..<20 { session.webSocketTask(with: peer.url()).resume() }
            try await keys.count(reaches: 20)
            #expect(Set(keys.all).count == 20)
        }
    }

    @Test func `header fields of the request and the session are sent`() async throws {
        let request = try await request(
            { server, session in
                var request = URLRequest(
                    server.socketURL(),
                    headers: [
                        "X-Mine": "1", "Authorization": "Bearer mine", "Origin": "https://app.example", "X-Both": "request",
                    ])
                request.setValue("app/1", forHTTPHeaderField: "User-Agent")
                return session.webSocketTask(with: request)
            }, configure: { $0.httpAdditionalHeaders = ["X-Session": "2", "X-Both": "session"] })
        #expect(request.values(of: "X-Mine") == ["1"] && request.values(of: "X-Session") == ["2"])
        #expect(request.values(of: "X-Both") == ["request"])
        #expect(request.values(of: "Authorization") == ["Bearer mine"] && request.values(of: "User-Agent") == ["app/1"])
        #expect(request.values(of: "Origin") == ["https://app.example"])
    }

    @Test func `a request's own Host is sent`() async throws {
        let request = try await request { server, session in
            session.webSocketTask(with: URLRequest(server.socketURL(), headers: ["Host": "chat.example"]))
        }
        #expect(request.values(of: "Host") == ["chat.example"])
    }

    @Test func `handshake fields set by the app are replaced`() async throws {
        let own = [
            "Sec-WebSocket-Key": "bXkgb3duIGtleSBvZiAxNg==", "Sec-WebSocket-Version": "8", "Sec-WebSocket-Extensions": "x-mine",
            "Upgrade": "h2c", "Connection": "close", "Content-Length": "5",
            "Transfer-Encoding": "chunked", "Expect": "100-continue", "HTTP2-Settings": "AAMAAABk",
        ]
        for isOfSession in [false, true] {
            let request = try await request(
                { server, session in
                    session.webSocketTask(with: URLRequest(server.socketURL(), headers: isOfSession ? [:] : own))
                }, configure: { if isOfSession { $0.httpAdditionalHeaders = own } })
            #expect(request.values(of: "Sec-WebSocket-Version") == ["13"])
            let keys = request.values(of: "Sec-WebSocket-Key")
            #expect(keys.count == 1 && keys != ["bXkgb3duIGtleSBvZiAxNg=="])
            #expect(request.values(of: "Upgrade").map { $0.lowercased() } == ["websocket"])
            let options = request.values(of: "Connection").joined(separator: ", ").lowercased()
            #expect(options.contains("upgrade") && !options.contains("close"))
            for name in ["Sec-WebSocket-Extensions", "Content-Length", "Transfer-Encoding"] {
                #expect(request.values(of: name) == [], "\(name)")
            }
        }
    }

    @Test func `a request with another method is refused, and nothing is sent`() async throws {
        let recorder = WebSocketRecorder()
        try await withScenario(delegate: recorder, reply: { .greeting($0).then(.stall) }) { (server, session) async throws in
            for request in [
                URLRequest(server.socketURL(), method: "POST", body: Data("body".utf8)),
                URLRequest(server.socketURL(), method: "CONNECT"), URLRequest(server.socketURL(), method: "HEAD"),
            ] {
                let task = session.webSocketTask(with: request)
                task.resume()
                let record = try await recorder.completion(of: task)
                #expect(record.code == .badURL && record.letters == "cME", "\(request.httpMethod ?? "")")
            }
            #expect(server.connectionCount == 0)
        }
    }

    // MARK: Subprotocols

    @Test(
        arguments: [
            ([], nil, nil), (["chat"], "chat", "chat"), (["a", "b", "c"], nil, nil), (["a", "b", "c"], "b", "b"),
            (["v1.chat+json", "!#$%&'*+-.^_`|~09"], "!#$%&'*+-.^_`|~09", "!#$%&'*+-.^_`|~09"),
        ] as [([String], String?, String?)])
    func `the server selects one subprotocol or none`(offered: [String], chosen: String?, told: String?) async throws {
        let recorder = WebSocketRecorder()
        try await withScenario(
            delegate: recorder,
            reply: { .greeting($0, chosen.map { [("Sec-WebSocket-Protocol", $0)] } ?? []).then(.stall) }
        ) { (server, session) async throws in
            let task = session.webSocketTask(with: server.socketURL(), protocols: offered)
            task.resume()
            try await recorder.opening(of: task)
            #expect(recorder.record(of: task).protocols == [told])
            let values = try #require(server.requests.first).values(of: "Sec-WebSocket-Protocol")
            #expect(values == (offered.isEmpty ? [] : [offered.joined(separator: ", ")]))
        }
    }

    @Test(
        arguments: [
            ("v1, v2", ["v2"], true), ("v1, v2", [], true), ("v1,v2", ["v1"], true), ("v1", ["v3"], false), ("", ["v1"], false),
        ] as [(String, [String], Bool)])
    func `the app's own subprotocol field is sent and enforced`(field: String, chosen: [String], opens: Bool) async throws {
        let recorder = WebSocketRecorder()
        try await withScenario(
            delegate: recorder, reply: { .greeting($0, chosen.map { ("Sec-WebSocket-Protocol", $0) }).then(.stall) }
        ) { (server, session) async throws in
            var request = URLRequest(server.socketURL())
            if !field.isEmpty { request.setValue(field, forHTTPHeaderField: "Sec-WebSocket-Protocol") }
            let task = session.webSocketTask(with: request)
            task.resume()
            try await recorder.wait(for: task) { $0.letters.contains("o") || $0.isComplete }
            let record = recorder.record(of: task)
            let values = try #require(server.requests.first).values(of: "Sec-WebSocket-Protocol")
            let elements = values.joined(separator: ",").split(separator: ",").map { $0.filter { $0 != " " } }
            #expect(elements == field.split(separator: ",").map { $0.filter { $0 != " " } } && values.count <= 1)
            #expect(record.protocols == (opens ? [chosen.first] : []))
            #expect(record.code == (opens ? nil : .badServerResponse))
        }
    }

    @Test(arguments: [
        "", " ", "a b", "a,b", "a\r\nX-Injected: 1", "a\nb", "a\rb", "a\u{0}b", "gr\u{FC}n", "a;b", "a=b", "a/b", "\"a\"", "a\t",
        "(a)", "[a]", "{a}", "a:b", "a@b", "a\\b", "\u{7F}",
    ])
    func `a subprotocol that is not a token is refused, and nothing is sent`(name: String) async throws {
        let recorder = WebSocketRecorder()
        try await withScenario(delegate: recorder, reply: { .greeting($0).then(.stall) }) { (server, session) async throws in
            for protocols in [[name], ["good", name]] {
                let task = session.webSocketTask(with: server.socketURL(), protocols: protocols)
                task.resume()
                let record = try await recorder.completion(of: task)
                #expect(record.code == .badURL && record.letters == "cME")
                await expectFailure(.badURL) { try await task.receive() }
            }
            #expect(server.connectionCount == 0)
        }
    }

    @Test func `a subprotocol that is offered twice is refused, and nothing is sent`() async throws {
        // RFC 6455, section 4.1: the elements "MUST all be unique strings".
        let recorder = WebSocketRecorder()
        try await withScenario(delegate: recorder, reply: { .greeting($0).then(.stall) }) { (server, session) async throws in
            let task = session.webSocketTask(with: server.socketURL(), protocols: ["a", "b", "a"])
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.code == .badURL && record.letters == "cME")
            #expect(server.connectionCount == 0)
        }
    }

    // MARK: Accepted responses

    @Test(arguments: [
        "Upgrade: WebSocket\r\nConnection: upgrade\r\n", "Upgrade: WEBSOCKET\r\nConnection: UPGRADE\r\n",
        "Upgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n",
        "Upgrade: websocket\r\nConnection: keep-alive\r\nConnection: Upgrade\r\n",
        "upgrade:websocket\r\nconnection:Upgrade\r\n", "Upgrade: \t websocket \t\r\nConnection:  Upgrade  \r\n",
        // A 101 must have no Content-Length (RFC 9110, section 8.6); the client ignores it.
        "Upgrade: websocket\r\nConnection: Upgrade\r\nContent-Length: 7\r\n",
        "Upgrade: websocket\r\nConnection: Upgrade\r\nContent-Length: 0\r\n",
        "Upgrade: websocket\r\nConnection: Upgrade\r\nX-Other: 1\r\nServer: x\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n",
    ])
    func `a 101 in any accepted form opens the task, with frames directly after it`(fields: String) async throws {
        let recorder = WebSocketRecorder()
        try await withWebSocket(delegate: recorder) { connection in
            let head = "HTTP/1.1 101 Whatever\r\n\(fields)Sec-WebSocket-Accept: \(connection.acceptValue)\r\n\r\n"
            try connection.write(Array(head.utf8) + WebSocketPeer.frame(1, Array("at once".utf8)))
            try connection.echo()
        } test: { (peer, session) async throws in
            let task = session.webSocketTask(with: peer.url())
            task.resume()
            #expect(try await task.nextText() == "at once")
            try await recorder.opening(of: task)
            #expect(recorder.record(of: task).letters == "co")
        }
    }

    @Test func `a 101 that arrives byte by byte opens the task`() async throws {
        let recorder = WebSocketRecorder()
        try await withScenario(
            delegate: recorder,
            reply: { request in
                guard let bytes = ScriptedReply.webSocket(request).effects.first?.bytes else { return [.close] }
                return [.writeSlowly(bytes + WebSocketPeer.frame(1, Array("slow".utf8))), .stall]
            }
        ) { (server, session) async throws in
            let task = session.webSocketTask(with: server.socketURL())
            task.resume()
            #expect(try await task.nextText() == "slow")
        }
    }

    @Test func `interim responses before the 101 are reported`() async throws {
        let recorder = WebSocketRecorder()
        try await withWebSocket(delegate: recorder) { connection in
            try connection.write("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: </a>\r\n\r\n")
            try echoing(connection)
        } test: { (peer, session) async throws in
            let task = session.webSocketTask(with: peer.url())
            task.resume()
            try await recorder.opening(of: task)
            try await task.send(.string("open"))
            #expect(try await task.nextText() == "open")
        }
    }

    // MARK: Schemes

    @Test(arguments: [
        "http://HOST/", "https://HOST/", "ftp://HOST/", "myapp://HOST/", "about:blank", "file:///etc/hostname", "file://HOST/a",
        "data:,hello", "data:text/plain;base64,AA==",
    ])
    func `a WebSocket task rejects URLs of other schemes`(text: String) async throws {
        let recorder = WebSocketRecorder()
        try await withScenario(delegate: recorder, reply: { .greeting($0).then(.stall) }) { (server, session) async throws in
            let url = try #require(URL(string: text.replacingOccurrences(of: "HOST", with: "127.0.0.1:\(server.port)")))
            let task = session.webSocketTask(with: url)
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.code == .unsupportedURL && record.letters == "cME", "\(String(describing: record.error))")
            await expectFailure(.unsupportedURL) { try await task.receive() }
            #expect(server.connectionCount == 0)
        }
    }

    @Test(arguments: ["ws", "wss", "WS"]) func `tasks of other kinds reject WebSocket URLs`(scheme: String) async throws {
        try await withScenario(reply: { .greeting($0).then(.stall) }) { (server, session) async throws in
            let url = try #require(URL(string: "\(scheme)://127.0.0.1:\(server.port)/"))
            await expectFailure(.unsupportedURL) { try await session.data(from: url) }
            await expectFailure(.unsupportedURL) { try await session.download(from: url) }
            await expectFailure(.unsupportedURL) { try await session.bytes(from: url) }
            await expectFailure(.unsupportedURL) {
                try await session.upload(for: URLRequest(url, method: "POST"), from: Data([1]))
            }
            #expect(server.connectionCount == 0)
        }
    }

    @Test func `the scheme is case-insensitive`() async throws {
        let request = try await request { server, session in
            session.webSocketTask(with: try #require(URL(string: "WS://127.0.0.1:\(server.port)/a")))
        }
        #expect(request.target == "/a")
    }

    @Test func `a data task cannot upgrade to a WebSocket`() async throws {
        try await withScenario(reply: { .greeting($0).then(.stall) }) { (server, session) async throws in
            let request = URLRequest(
                server.url(),
                headers: [
                    "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13",
                    "Sec-WebSocket-Key": "bXkgb3duIGtleSBvZiAxNg==",
                ])
            await expectFailure(.badServerResponse) { try await session.data(for: request) }
            try await server.waitForClose(0)
        }
    }

    // MARK: Timeouts

    @Test func `a handshake without a response times out`() async throws {
        let recorder = WebSocketRecorder()
        try await withWebSocket(delegate: recorder, { try $0.drain() }) { (peer, session) async throws in
            var request = URLRequest(peer.url())
            request.timeoutInterval = 0.3
            let task = session.webSocketTask(with: request)
            let sent = Delivered<URLError.Code?>()
            task.send(.string("never")) { sent(($0 as? URLError)?.code) }
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.code == .timedOut && record.letters == "cME")
            #expect(try await sent.value == .timedOut)
            try await peer.waitForEnds()
        }
    }

    @Test func `the request timeout ends with the handshake`() async throws {
        let recorder = WebSocketRecorder()
        try await withWebSocket(delegate: recorder, configure: { $0.timeoutIntervalForRequest = 0.5 }, echoing) {
            (peer, session) async throws in
            let task = session.webSocketTask(with: peer.url())
            task.resume()
            try await recorder.opening(of: task)
            let waiting = Task { try await task.nextText() }
            try await waitOut(0.5, times: 3)
            #expect(task.state == .running && !recorder.record(of: task).isComplete)
            try await task.send(.string("still open"))
            #expect(try await waiting.value == "still open")
        }
    }

    @Test func `the resource timeout applies to the whole task`() async throws {
        let recorder = WebSocketRecorder()
        try await withWebSocket(delegate: recorder, configure: { $0.timeoutIntervalForResource = 1 }, echoing) {
            (peer, session) async throws in
            let task = session.webSocketTask(with: peer.url())
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.code == .timedOut)
        }
    }
}
