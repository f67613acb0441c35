// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

private let head = "HTTP/1.1 200 OK\r\n"

/// Valid HTTP/1.1: requests, responses and their bodies.
@Suite(.timeLimit(.minutes(1)))
struct HTTP1ExchangeTests {
    @Test func `a GET sends the default header fields`() async throws {
        try await withScenario(reply: { _ in .ok("hello") }) { (server, session) async throws in
            let (text, response) = try await session.text(URLRequest(server.url("/a/b?c=d&e=%20#f")))
            #expect(text == "hello")
            #expect(response.expectedContentLength == 5)
            let request = try await server.request(0)
            #expect(request.method == "GET")
            #expect(request.target == "/a/b?c=d&e=%20")
            #expect(request.version == "HTTP/1.1")
            #expect(request.values(of: "Host") == ["127.0.0.1:\(server.port)"])
            #expect(request.values(of: "Accept") == ["*/*"])
            let codings = try #require(request.header("Accept-Encoding"))
            #expect(codings.contains("gzip") && codings.contains("deflate"))
            #expect(request.header("Accept-Language")?.isEmpty == false)
            #expect(request.header("User-Agent")?.isEmpty == false)
            #expect(request.header("Content-Length") == nil)
            #expect(request.header("Transfer-Encoding") == nil)
            #expect(request.header("Cookie") == nil)
        }
    }

    @Test func `header fields of the request precede those of the configuration, and those precede the defaults`() async throws {
        try await withScenario(
            configure: { $0.httpAdditionalHeaders = ["X-One": "configuration", "X-Two": "configuration", "User-Agent": "mine"] },
            reply: { _ in .ok() }
        ) { (server, session) async throws in
            _ = try await session.data(for: URLRequest(server.url(), headers: ["x-one": "request"]))
            let request = try await server.request(0)
            #expect(request.values(of: "X-One") == ["request"])
            #expect(request.values(of: "X-Two") == ["configuration"])
            #expect(request.values(of: "User-Agent") == ["mine"])
        }
    }

    @Test func `a policy that ignores remote caches sends no-cache, from the request or the session`() async throws {
        try await withScenario(reply: { _ in .ok() }) { (server, session) async throws in
            var request = URLRequest(server.url())
            for policy in [URLRequest.CachePolicy.reloadIgnoringLocalAndRemoteCacheData, .reloadIgnoringLocalCacheData] {
                request.cachePolicy = policy
                _ = try await session.data(for: request)
            }
            request.cachePolicy = .reloadIgnoringLocalAndRemoteCacheData
            request.setValue("no-store", forHTTPHeaderField: "Cache-Control")
            _ = try await session.data(for: request)
            #expect(server.requests.map { $0.values(of: "Cache-Control") } == [["no-cache"], [], ["no-store"]])
            #expect(server.requests.map { $0.values(of: "Pragma") } == [["no-cache"], [], []])
        }
        try await withScenario(
            configure: { $0.requestCachePolicy = .reloadIgnoringLocalAndRemoteCacheData }, reply: { _ in .ok() }
        ) { (server, session) async throws in
            _ = try await session.data(from: server.url())
            #expect(server.requests[0].header("Cache-Control") == "no-cache")
        }
    }

    @Test func `a POST gets the length of its body and the content type of a form`() async throws {
        try await withScenario(reply: { _ in .ok() }) { (server, session) async throws in
            _ = try await session.data(for: URLRequest(server.url(), method: "POST", body: Data("a=b".utf8)))
            _ = try await session.data(
                for: URLRequest(server.url(), method: "POST", headers: ["Content-Type": "x/y"], body: Data("a".utf8)))
            _ = try await session.data(for: URLRequest(server.url(), method: "POST"))
            let requests = try await server.waitForRequests(3)
            #expect(requests.map { $0.header("Content-Type") }.prefix(2) == ["application/x-www-form-urlencoded", "x/y"])
            #expect(requests.map { $0.values(of: "Content-Length") } == [["3"], ["1"], ["0"]])
            #expect(requests.map(\.bodyText) == ["a=b", "a", ""])
        }
    }

    @Test func `a GET with a body is rejected`() async throws {
        try await withScenario(reply: { _ in .ok() }) { (server, session) async throws in
            await expectFailure(.dataLengthExceedsMaximum) {
                try await session.data(for: URLRequest(server.url(), body: Data("x".utf8)))
            }
            #expect(server.requests.isEmpty)
        }
    }

    @Test func `chunks are joined to one body, and trailers are accepted`() async throws {
        try await withScenario(
            reply: { _ in .chunked(["hello ", "chunked ", "world"], trailers: [("X-Trailer", "1")]) }
        ) { (server, session) async throws in
            for _ in 0..<3 {
                let (text, response) = try await session.text(URLRequest(server.url()))
                #expect(text == "hello chunked world")
                #expect(response.expectedContentLength == -1)
            }
            #expect(server.connectionCount == 1)
        }
    }

    @Test(arguments: [head + "\r\n", "HTTP/1.0 200 OK\r\n\r\n", head + "Connection: close\r\n\r\n"])
    func `a body without framing ends with its connection`(start: String) async throws {
        try await withScenario(reply: { _ in [.write(start), .write("to the end"), .close] }) { (server, session) async throws in
            #expect(try await session.text(server.url()) == "to the end")
            #expect(try await session.text(server.url()) == "to the end")
            #expect(server.connectionCount == 2)
        }
    }

    @Test func `HEAD, 204 and 304 have no body and keep their connection`() async throws {
        try await withScenario(
            reply: { request in
                switch request.path {
                case "/204": .raw("HTTP/1.1 204 No Content\r\n\r\n")
                case "/304": .raw("HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\n\r\n")
                case "/head": .raw(head + "Content-Length: 100\r\n\r\n")
                default: .raw(head + "Transfer-Encoding: chunked\r\n\r\n")
                }
            }
        ) { (server, session) async throws in
            for (path, method, status) in [
                ("/204", "GET", 204), ("/304", "GET", 304), ("/head", "HEAD", 200), ("/chunked", "HEAD", 200),
            ] {
                let (text, response) = try await session.text(URLRequest(server.url(path), method: method))
                #expect(text.isEmpty)
                #expect(response.statusCode == status)
            }
            #expect(server.connectionCount == 1)
        }
    }

    @Test func `interim responses are delivered in order and do not end the load`() async throws {
        let recorder = EventRecorder()
        let text = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n"
        try await withScenario(delegate: recorder, reply: { _ in .raw(text + head + "Content-Length: 2\r\n\r\nok") }) {
            (server, session) async throws in
            let task = session.dataTask(with: server.url())
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.letters == "ciiiRDME")
            #expect(record.informational.map(\.statusCode) == [100, 103, 102])
            #expect(record.informational[1].value(forHTTPHeaderField: "Link") == "</a>")
            #expect(record.body == Data("ok".utf8))
        }
    }

    @Test(arguments: [
        (404, "Not Found"), (500, "Internal Server Error"), (401, "Unauthorized"), (407, "Proxy Authentication Required"),
        (299, "Odd"), (599, "Odd"), (451, ""),
    ])
    func `an HTTP error status is a response, not an error`(status: Int, reason: String) async throws {
        try await withScenario(
            reply: { _ in .raw("HTTP/1.1 \(status) \(reason)\r\nContent-Length: 4\r\n\r\nbody") }
        ) { (server, session) async throws in
            let (text, response) = try await session.text(URLRequest(server.url()))
            #expect(response.statusCode == status)
            #expect(text == "body")
        }
    }

    @Test func `repeated header fields are joined, and all of them reach the app`() async throws {
        try await withScenario(
            reply: { _ in
                .ok("", [("X-List", "a"), ("x-list", "b"), ("ETag", "\"e\""), ("Content-Type", "text/html; charset=utf-8")])
            }
        ) { (server, session) async throws in
            let response = try await session.text(URLRequest(server.url())).response
            let list = try #require(response.value(forHTTPHeaderField: "X-LIST"))
            #expect(list.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) } == ["a", "b"])
            #expect(response.mimeType == "text/html")
            #expect(response.textEncodingName == "utf-8")
            #expect(response.allHeaderFields.keys.contains { ($0 as? String)?.lowercased() == "etag" })
        }
    }

    @Test func `an empty body causes no data callback`() async throws {
        let recorder = EventRecorder()
        try await withScenario(delegate: recorder, reply: { _ in .ok("") }) { (server, session) async throws in
            let task = session.dataTask(with: server.url())
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.letters == "cRME")
            #expect(task.countOfBytesReceived == 0)
            #expect(task.countOfBytesExpectedToReceive == 0)
        }
    }

    @Test func `a HEAD task gets no data callback`() async throws {
        let recorder = EventRecorder()
        try await withScenario(delegate: recorder, reply: { _ in .raw(head + "Content-Length: 9\r\n\r\n") }) {
            (server, session) async throws in
            let task = session.dataTask(with: URLRequest(server.url(), method: "HEAD"))
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.letters == "cRME")
            #expect(record.response?.expectedContentLength == 9)
        }
    }

    @Test func `a large body arrives completely`() async throws {
        let content = ScriptedFile.pattern(3_000_000)
        try await withScenario(reply: { _ in .ok(content) }) { (server, session) async throws in
            let (data, _) = try await session.data(from: server.url())
            #expect(data == Data(content))
        }
    }

    @Test func `multipart x-mixed-replace delivers a response for every part`() async throws {
        let recorder = EventRecorder()
        let parts = "--b\r\nContent-Type: text/plain\r\n\r\none\r\n--b\r\nContent-Type: text/html\r\n\r\ntwo\r\n--b--\r\n"
        try await withScenario(
            delegate: recorder, reply: { _ in .ok(parts, [("Content-Type", "multipart/x-mixed-replace; boundary=b")]) }
        ) { (server, session) async throws in
            let task = session.dataTask(with: server.url())
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.events.filter { $0.letter == "R" }.count >= 2)
            #expect(record.body == Data("onetwo".utf8))
            try recorder.expectOrder(of: task, EventRecorder.dataGrammar)
        }
    }

    @Test func `a part whose head is too long is delivered unsplit with the rest of the body`() async throws {
        let recorder = EventRecorder()
        let rest = String(repeating: "x", count: 8_000_000)
        try await withScenario(
            delegate: recorder,
            reply: { _ in
                .ok("--b\r\n\r\none\r\n--b\r\n" + rest, [("Content-Type", "multipart/x-mixed-replace; boundary=b")])
            }
        ) { (server, session) async throws in
            let task = session.dataTask(with: server.url())
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.error == nil && record.events.count { $0.letter == "R" } == 2)
            #expect(record.body == Data(("one" + rest).utf8))
        }
    }

    @Test func `a refused connection fails with cannotConnectToHost`() async throws {
        let port = try RefusingPort()
        let url = try #require(URL(string: "http://127.0.0.1:\(port.number)/"))
        try await withSession { (session) async throws in
            let error = await expectFailure(.cannotConnectToHost) { try await session.data(from: url) }
            #expect(error?.failingURL == url)
            // The underlying error describes the connection attempt.
            #expect(error?.userInfo[NSUnderlyingErrorKey] != nil)
        }
    }

    @Test func `a URL with an IPv6 address is loaded, and Host contains the address in brackets`() async throws {
        let server = try await ScriptedServer.start(address: "::1", reply: { _ in .ok("six") })
        try await withSession { (session) async throws in
            #expect(try await session.text(server.url()) == "six")
            #expect(server.requests[0].header("Host") == "[::1]:\(server.port)")
        }
        try await server.close()
    }

    @Test func `a name with an unreachable address connects to another address`() async throws {
        try await withScenario(reply: { _ in .ok("four") }) { (server, session) async throws in
            #expect(try await session.text(server.url("/", host: "localhost")) == "four")
        }
    }
}
