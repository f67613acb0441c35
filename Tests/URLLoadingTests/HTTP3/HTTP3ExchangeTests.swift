// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Requests and responses over HTTP/3 (RFC 9114, section 4).
@Suite(.timeLimit(.minutes(2)))
struct HTTP3ExchangeTests {
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    // MARK: Requests

    /// RFC 9114, sections 4.2 and 4.3.1.
    @Test func `fields are in lower case, after the pseudo-fields, without those of HTTP 1 connections`() async throws {
        try await withHTTP3Scenario(reply: { _ in .ok() }) { (server, session) async throws in
            let request = URLRequest(
                server.url("/a?b=c"), method: "POST",
                headers: [
                    "X-Mixed-Case": "Value", "Connection": "keep-alive, X-Gone", "Keep-Alive": "timeout=5", "Upgrade": "other",
                    "Proxy-Connection": "keep-alive", "TE": "gzip, trailers", "Transfer-Encoding": "chunked",
                    "Authorization": "Bearer secret",
                ])
            _ = try await session.upload(for: request, from: Data("body".utf8))
            let one = try await server.request(0)
            let pseudo: Set = [":method", ":scheme", ":authority", ":path"]
            #expect(Set(one.fields.prefix(4).map(\.name)) == pseudo)
            #expect(one.fields.dropFirst(4).allSatisfy { !$0.name.hasPrefix(":") && $0.name == $0.name.lowercased() })
            #expect(one.method == "POST" && one.path == "/a?b=c" && one.header(":scheme") == "https")
            #expect(one.authority == "localhost:\(server.port)" && one.header("host") == nil)
            #expect(one.header("x-mixed-case") == "Value" && one.header("content-length") == "4")
            for name in ["connection", "keep-alive", "upgrade", "proxy-connection", "transfer-encoding"] {
                #expect(one.header(name) == nil, "\(name)")
            }
            #expect([nil, "trailers"].contains(one.header("te")))
            #expect(one.bodyText == "body" && one.trailers.isEmpty)
        }
    }

    @Test func `a connection opens the control stream and those of QPACK, and no others`() async throws {
        try await withHTTP3Scenario(reply: { _ in .ok() }) { (server, session) async throws in
            _ = try await session.text(server.url())
            let streams = try await server.uni { $0.count >= 3 }
            #expect(streams.count == 3)
            #expect(streams.values.compactMap(\.first).sorted() == [0, 2, 3])
            let control = try #require(streams.values.first { $0.first == 0 })
            #expect(control.dropFirst().first == 4)
        }
    }

    @Test func `methods are sent as they are`() async throws {
        try await withHTTP3Scenario(reply: { .status(200, [("x-method", $0.method)]) }) { (server, session) async throws in
            for method in ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "QUERY", "M-SEARCH"] {
                let response = try await session.text(URLRequest(server.url(), method: method)).response
                #expect(response.value(forHTTPHeaderField: "X-Method") == method)
            }
            #expect(server.connectionCount == 1)
        }
    }

    @Test func `many and long fields arrive whole`() async throws {
        let long = String(repeating: "abcdefgh", count: 1_500)
        try await withHTTP3Scenario(reply: { .ok($0.header("x-long") ?? "") }) { (server, session) async throws in
            var headers = ["X-Long": long]
            for number in 0..<100 { headers["X-\(number)"] = "value \(number)" }
            #expect(try await session.text(URLRequest(server.url(), headers: headers)).text == long)
            let one = try await server.request(0)
            for number in 0..<100 { #expect(one.header("x-\(number)") == "value \(number)") }
        }
    }

    // MARK: Responses

    @Test func `a response has its status, fields and body, in one frame or in many`() async throws {
        let bytes = HTTP3Bytes.frame(.data, Array("hello".utf8)).map { HTTP3Step.write([$0]) }
        let rows: [[HTTP3Step]] = [
            [.head(200, [("x-a", "b")]), .data("hello")],
            [.head(200, [("x-a", "b")]), .data("", ends: false), .data("hel", ends: false), .data("lo", ends: false), .finish],
            // Every byte in a write of its own.
            [.head(200, [("x-a", "b"), ("content-length", "5")])] + bytes + [.finish],
            // Unknown frames between the others (RFC 9114, section 9).
            [
                .frame(0x21, [1, 2, 3]), .head(200, [("x-a", "b")]), .frame(0x40, []), .data("hello", ends: false),
                .frame(0x21, ends: true),
            ],
            // Trailers.
            [.head(200, [("x-a", "b")]), .data("hello", ends: false), .headers([("x-checksum", "1")], ends: true)],
        ]
        try await withHTTP3Scenario(
            reply: { request in [.awaitRequestEnd] + (Int(request.path.dropFirst()).map { rows[$0] } ?? []) }
        ) { (server, session) async throws in
            for number in rows.indices {
                let (text, response) = try await session.text(URLRequest(server.url("/\(number)")))
                #expect(text == "hello" && response.statusCode == 200, "\(number)")
                #expect(response.value(forHTTPHeaderField: "X-A") == "b", "\(number)")
            }
            #expect(server.connectionCount == 1)
        }
    }

    @Test(arguments: [("HEAD", 200), ("GET", 204), ("GET", 304)])
    func `a response that must not have a body has none`(method: String, status: Int) async throws {
        let length = status == 204 ? [] : [("content-length", "5")]
        try await withHTTP3Scenario(
            reply: { request in
                switch request.path {
                case "/head": [.awaitRequestEnd, .head(status, length, ends: true)]
                case "/empty": [.awaitRequestEnd, .head(status, length), .finish]
                default: .ok("next")
                }
            }
        ) { (server, session) async throws in
            for path in ["/head", "/empty"] {
                let (text, response) = try await session.text(URLRequest(server.url(path), method: method))
                #expect(text.isEmpty && response.statusCode == status)
                #expect(response.value(forHTTPHeaderField: "Content-Length") == length.first?.1)
            }
            #expect(try await session.text(server.url("/next")) == "next")
            #expect(server.connectionCount == 1)
        }
    }

    @Test func `interim responses are reported to the delegate`() async throws {
        let recorder = EventRecorder()
        try await withHTTP3Scenario(
            delegate: recorder,
            reply: { _ in [.awaitRequestEnd, .head(103, [("link", "</a>; rel=preload")]), .head(102)] + .ok("done") }
        ) { (server, session) async throws in
            let task = session.dataTask(with: server.url())
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.informational.map(\.statusCode) == [103, 102])
            #expect(record.informational.first?.value(forHTTPHeaderField: "Link") == "</a>; rel=preload")
            #expect(record.body == Data("done".utf8))
            try recorder.expectOrder(of: task, EventRecorder.dataGrammar)
        }
    }

    @Test func `compressed bodies are decoded`() async throws {
        let content = ScriptedFile.pattern(100_000)
        let brotli = try BrotliBytes.compress(content)
        try await withHTTP3Scenario(
            reply: { request in
                request.path == "/gzip"
                    ? .ok(GzipBytes.stored(content), [("content-encoding", "gzip")]) : .ok(brotli, [("content-encoding", "br")])
            }
        ) { (server, session) async throws in
            for path in ["/gzip", "/br"] { #expect(try await session.data(from: server.url(path)).0 == Data(content), "\(path)") }
            #expect(try await server.request(0).header("accept-encoding")?.contains("gzip") == true)
        }
    }

    @Test func `large responses arrive intact, to memory and to a file`() async throws {
        let content = ScriptedFile.pattern(64 << 20)
        let server = try GTLSServer.start(certificates.valid)
        defer { server.stop() }
        try server.put(content, at: "/large")
        try await withSession {
            $0.tlsTrustRoots = [certificates.root]
            $0.connectionOptions.httpVersions = .http3Only
        } test: { (session) async throws in
            let (data, response) = try await session.data(from: server.url("/large"))
            #expect((response as? HTTPURLResponse)?.statusCode == 200)
            #expect(data == Data(content))
            let (file, _) = try await session.download(from: server.url("/large"))
            #expect(try Data(contentsOf: file) == Data(content))
            try FileManager.default.removeItem(at: file)
        }
    }

    // MARK: Beside other versions

    @Test func `redirects lead from one version to another`() async throws {
        try await withHTTP3Server(reply: { request in
            request.path == "/there"
                ? .status(302, [("location", request.header("x-other") ?? "")]) : .ok("quic \(request.path)")
        }) { (quic) async throws in
            let back = quic.url("/back").absoluteString
            try await withScriptedServer(
                version: .http2,
                reply: { $0.path == "/back" ? .redirect(302, to: back) : .ok("tcp \($0.path)") }
            ) { (tcp) async throws in
                try await withSession {
                    $0.tlsTrustRoots = [certificates.root]
                } test: { (session) async throws in
                    let headers = ["X-Other": tcp.url("/end", host: "localhost").absoluteString]
                    let first = try await session.outcome(.assuming(quic.url("/there"), headers: headers))
                    #expect(first.text == "tcp /end" && first.protocols == ["h3", "h2"])
                    // The origin is known to speak HTTP/3, and nothing else.
                    let second = try await session.outcome(tcp.url("/back", host: "localhost"))
                    #expect(second.text == "quic /back" && second.protocols == ["h2", "h3"])
                }
            }
        }
    }

    @Test func `cookies are stored and sent`() async throws {
        try await withHTTP3Scenario(
            configure: { $0.httpCookieAcceptPolicy = .always },
            reply: { request in
                let cookies = [("set-cookie", "a=1; Path=/"), ("set-cookie", "b=2; Path=/; Secure")]
                return request.path == "/set"
                    ? .ok("", cookies) : .ok(request.values(of: "cookie").joined(separator: "; "))
            }
        ) { (server, session) async throws in
            _ = try await session.text(server.url("/set"))
            let text = try await session.text(server.url("/get"))
            #expect(Set(text.components(separatedBy: "; ")) == ["a=1", "b=2"])
        }
    }

    @Test func `responses are stored, used and validated`() async throws {
        try await withHTTP3Scenario(
            configure: { $0.urlCache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0) },
            reply: { request in
                if request.path == "/fresh" { return .ok("fresh", [("cache-control", "max-age=600")]) }
                return request.header("if-none-match") == "\"1\""
                    ? .status(304, [("etag", "\"1\"")]) : .ok("stale", [("etag", "\"1\""), ("cache-control", "max-age=0")])
            }
        ) { (server, session) async throws in
            for _ in 0..<2 {
                #expect(try await session.text(server.url("/fresh")) == "fresh")
                #expect(try await session.text(server.url("/stale")) == "stale")
            }
            #expect(server.requests.map(\.path) == ["/fresh", "/stale", "/stale"])
        }
    }

    // MARK: Downloads

    @Test func `a download resumes after its stream was reset`() async throws {
        let content = ScriptedFile.pattern(600_000)
        let file = ScriptedFile(content)
        let recorder = EventRecorder()
        try await withNeutralHTTP3(
            delegate: recorder,
            reply: { $0.order == 0 ? file.reply(to: $0, cutAfter: 200_000, ending: .fail) : file.reply(to: $0) }
        ) { (server, session) async throws in
            let first = session.downloadTask(with: server.url("/file"))
            first.resume()
            let lost = try #require(try await recorder.completion(of: first).error as? URLError)
            #expect(lost.code == .networkConnectionLost)
            let second = session.downloadTask(withResumeData: try #require(lost.downloadTaskResumeData))
            second.resume()
            let record = try await recorder.completion(of: second)
            #expect(record.error == nil && record.file == Data(content))
            let range = try #require(try await server.request(1).header("Range"))
            #expect(range.hasPrefix("bytes=") && range.hasSuffix("-"))
            #expect(try await server.request(1).header("If-Range") == "\"v1\"")
            #expect((second.response as? HTTPURLResponse)?.statusCode == 206)
            // The stream failed, and not the connection.
            #expect(server.connectionCount == 1)
            try recorder.expectOrder(of: second, EventRecorder.downloadGrammar)
        }
    }

    /// Section 4.1: a response that is cut is not complete, however it is cut.
    @Test func `a response that is cut is no complete response`() async throws {
        let head = HTTP3Step.head(200, [("content-length", "10")])
        let rows: [(String, [HTTP3Step])] = [
            ("reset with no error", [head, .data("hello", ends: false), .reset(.noError)]),
            ("reset with an error", [head, .data("hello", ends: false), .reset(.internalError)]),
            ("reset without a length", [.head(), .data("hello", ends: false), .reset(.noError)]),
            ("too short", [head, .data("hello")]),
            ("closed", [.head(), .data("hello", ends: false), .awaitDelivery(6), .close(.noError)]),
            ("forgotten", [.head(), .data("hello", ends: false), .awaitDelivery(6), .forge(.reset(isValid: true)), .forget]),
        ]
        for (name, steps) in rows {
            try await withHTTP3Scenario(reply: { _ in [.awaitRequestEnd] + steps }) { (server, session) async throws in
                await expectFailure(.networkConnectionLost, .badServerResponse, .cannotParseResponse, in: name) {
                    try await session.data(from: server.url())
                }
                await expectFailure(.networkConnectionLost, .badServerResponse, .cannotParseResponse, in: name) {
                    try await session.download(from: server.url())
                }
            }
        }
    }

    // MARK: Metrics

    @Test func `metrics describe the connection and the exchange`() async throws {
        let content = ScriptedFile.pattern(50_000)
        let coded = GzipBytes.stored(content)
        let recorder = EventRecorder()
        try await withHTTP3Scenario(delegate: recorder, reply: { _ in .ok(coded, [("content-encoding", "gzip")]) }) {
            (server, session) async throws in
            var found: [URLSessionTaskTransactionMetrics] = []
            for _ in 0..<2 {
                let task = session.uploadTask(with: URLRequest(server.url("/a"), method: "POST"), from: Data(count: 12_345))
                task.resume()
                let metrics = try #require(try await recorder.completion(of: task).metrics)
                #expect(metrics.transactionMetrics.count == 1)
                found.append(try #require(metrics.transactionMetrics.first))
            }
            let (first, second) = (found[0], found[1])
            let dates = [
                first.fetchStartDate, first.domainLookupStartDate, first.domainLookupEndDate, first.connectStartDate,
                first.secureConnectionStartDate, first.secureConnectionEndDate, first.connectEndDate, first.requestStartDate,
                first.requestEndDate, first.responseStartDate, first.responseEndDate,
            ]
            let known = dates.compactMap { $0 }
            #expect(known.count == dates.count && known == known.sorted(), "\(dates)")
            #expect(first.secureConnectionStartDate == first.connectStartDate)
            #expect(found.map(\.networkProtocolName) == ["h3", "h3"])
            #expect(found.map(\.isReusedConnection) == [false, true])
            #expect(second.connectStartDate == nil && second.secureConnectionStartDate == nil)
            #expect(second.localPort == first.localPort)
            for one in found {
                #expect(one.negotiatedTLSProtocolVersion == .TLSv13)
                #expect(one.negotiatedTLSCipherSuite != nil)
                #expect(one.remoteAddress == "127.0.0.1" && one.localAddress == "127.0.0.1")
                #expect(one.remotePort == server.port && (one.localPort ?? 0) > 0)
                #expect(!one.isProxyConnection && !one.isMultipath && !one.isCellular)
                #expect(one.resourceFetchType == .networkLoad)
                #expect(one.countOfRequestHeaderBytesSent > 0 && one.countOfResponseHeaderBytesReceived > 0)
                #expect(one.countOfRequestBodyBytesSent == 12_345 && one.countOfRequestBodyBytesBeforeEncoding == 12_345)
                #expect(one.countOfResponseBodyBytesReceived == Int64(coded.count))
                #expect(one.countOfResponseBodyBytesAfterDecoding == 50_000)
            }
        }
    }

    // MARK: Real servers

    @Test func `Caddy announces HTTP/3, and serves it`() async throws {
        let caddy = try CaddyServer.start(certificates.valid, http3: true)
        defer { caddy.stop() }
        let content = ScriptedFile.pattern(300_000)
        try caddy.put(content, at: "/file")
        try caddy.put(Array("text".utf8), at: "/new")
        try await withSession {
            $0.tlsTrustRoots = [certificates.root]
        } test: { (session) async throws in
            let first = try await session.outcome(caddy.url("/new"))
            #expect(first.last == "h2" && first.response.value(forHTTPHeaderField: "Alt-Svc")?.contains("h3=") == true)
        }
        try await withSession {
            $0.tlsTrustRoots = [certificates.root]
            $0.connectionOptions.httpVersions = .http3Only
        } test: { (session) async throws in
            #expect(try await session.data(from: caddy.url("/file")).0 == Data(content))
            let moved = try await session.outcome(caddy.url("/old"))
            #expect(moved.text == "text" && moved.protocols == ["h3", "h3"])
            let request = URLRequest(caddy.url("/echo"), method: "PUT")
            // Caddy does not tell the length over HTTP/3.
            let (answer, _) = try await session.upload(for: request, from: Data(count: 200_000))
            #expect(String(decoding: answer, as: UTF8.self).hasPrefix("PUT "))
            let ranged = URLRequest(caddy.url("/file"), headers: ["Range": "bytes=1000-1999"])
            let (part, response) = try await session.data(for: ranged)
            #expect((response as? HTTPURLResponse)?.statusCode == 206 && part == Data(content[1_000..<2_000]))
        }
    }
}
