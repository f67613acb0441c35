// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Which header fields of requests and configurations are sent, and which are reserved.
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct RequestFieldTests {
    @Test func `a Host field set by the app replaces the URL's host`() async throws {
        try await withScenario(reply: { _ in .ok() }) { (server, session) async throws in
            let task = session.dataTask(with: URLRequest(server.url("/x"), headers: ["host": "virtual.example"]))
            task.resume()
            let sent = try await server.request(0)
            #expect(sent.values(of: "Host") == ["virtual.example"])
            #expect(sent.headers.first?.name == "Host")
            #expect(task.currentRequest?.value(forHTTPHeaderField: "Host") == "virtual.example")
        }
    }

    @Test func `a Host field set by the app is kept in redirects only within the origin`() async throws {
        try await withScriptedServer(reply: { _ in .ok("end") }) { (other) async throws in
            let target = other.url("/c").absoluteString
            try await withScenario(reply: { .redirect(302, to: $0.order == 0 ? "/b" : target) }) {
                (server, session) async throws in
                let request = URLRequest(server.url("/a"), headers: ["Host": "virtual.example"])
                #expect(try await session.text(request).text == "end")
                #expect(server.requests.map { $0.values(of: "Host") } == [["virtual.example"], ["virtual.example"]])
                #expect(other.requests.map { $0.values(of: "Host") } == [["127.0.0.1:\(other.port)"]])
            }
        }
    }

    @Test func `a stored response is not used for a request with another Host field`() async throws {
        try await withScenario(
            reply: { .ok("of \($0.header("Host") ?? "nobody")", [("Cache-Control", "max-age=1000")]) }
        ) { (server, session) async throws in
            let own = "of 127.0.0.1:\(server.port)"
            let other = URLRequest(server.url(), headers: ["Host": "virtual.example"])
            for _ in 0..<2 {
                #expect(try await session.text(server.url()) == own)
                #expect(try await session.text(other).text == "of virtual.example")
            }
            // A Host field equal to the URL's host makes no difference.
            #expect(try await session.text(URLRequest(server.url(), headers: ["Host": "127.0.0.1:\(server.port)"])).text == own)
            #expect(server.requests.map { $0.header("Host") == "virtual.example" } == [false, true, true])
        }
    }

    @Test func `Proxy-Authorization is not sent to an origin server`() async throws {
        try await withScenario(reply: { _ in .ok() }) { (server, session) async throws in
            _ = try await session.data(
                for: URLRequest(server.url(), headers: ["Proxy-Authorization": "Basic secret", "X-Own": "1"]))
            #expect(server.requests[0].values(of: "Proxy-Authorization").isEmpty)
            #expect(server.requests[0].values(of: "X-Own") == ["1"])
        }
    }

    @Test func `reserved fields of the configuration are neither sent nor shown`() async throws {
        let reserved = ["Connection", "Host", "Proxy-Authenticate", "Proxy-Authorization", "WWW-Authenticate"]
        let fields = Dictionary(uniqueKeysWithValues: reserved.map { ($0, "reserved") } + [("X-Session", "1")])
        try await withScenario(configure: { $0.httpAdditionalHeaders = fields }, reply: { _ in .ok() }) {
            (server, session) async throws in
            let done = Delivered<Bool>()
            let task = session.dataTask(with: server.url()) { _, _, error in done(error == nil) }
            task.resume()
            #expect(try await done.value)
            #expect(!server.requests[0].headText.contains("reserved"))
            #expect(server.requests[0].values(of: "X-Session") == ["1"])
            #expect(server.requests[0].values(of: "Host") == ["127.0.0.1:\(server.port)"])
            #expect(task.currentRequest?.allHTTPHeaderFields == ["X-Session": "1"])
        }
    }

    @Test(arguments: [("X-Token", "a\nb"), ("X-Token", "a\0"), ("X Token", "a"), ("", "a")])
    func `an invalid field of the configuration fails each load with a message`(name: String, value: String) async throws {
        try await withScenario(configure: { $0.httpAdditionalHeaders = [name: value] }, reply: { _ in .ok() }) {
            (server, session) async throws in
            for request in [URLRequest(server.url()), URLRequest(server.url(), headers: ["X-Own": "1"])] {
                let error = await expectFailure(.badURL) { try await session.data(for: request) }
                #expect(error?.localizedDescription.contains("the request cannot be sent: the ") == true)
            }
            #expect(server.requests.isEmpty)
        }
    }

    @Test func `a token that was read from a file is sent without its line end`() async throws {
        try await withScenario(configure: { $0.httpAdditionalHeaders = ["X-Session": "secret\r\n"] }, reply: { _ in .ok() }) {
            (server, session) async throws in
            var request = URLRequest(server.url())
            request.setValue("Bearer token\n", forHTTPHeaderField: "Authorization")
            _ = try await session.data(for: request)
            #expect(server.requests[0].values(of: "Authorization") == ["Bearer token"])
            #expect(server.requests[0].values(of: "X-Session") == ["secret"])
        }
    }

    @Test func `an empty body has no Content-Type`() async throws {
        try await withScenario(reply: { _ in .ok() }) { (server, session) async throws in
            _ = try await session.data(for: URLRequest(server.url(), method: "POST", body: Data()))
            _ = try await session.upload(for: URLRequest(server.url(), method: "POST"), from: Data())
            _ = try await session.data(for: URLRequest(server.url(), method: "POST"))
            let directory = try TemporaryDirectory()
            let file = try directory.write(Data(), to: "empty")
            _ = try await session.upload(for: URLRequest(server.url(), method: "POST"), fromFile: file)
            let requests = try await server.waitForRequests(4)
            #expect(requests.allSatisfy { $0.values(of: "Content-Type").isEmpty })
            #expect(requests.allSatisfy { $0.values(of: "Content-Length") == ["0"] })
        }
    }

    // MARK: Requests that cannot be sent

    @Test func `every kind of task fails with unsupportedURL if its request has no URL`() async throws {
        var request = URLRequest(url: URL(filePath: "/"))
        request.url = nil
        let nowhere = request
        try await withSession { (session) async throws in
            await expectFailure(.unsupportedURL) { try await session.data(for: nowhere) }
            await expectFailure(.unsupportedURL) { try await session.download(for: nowhere) }
            await expectFailure(.unsupportedURL) { try await session.upload(for: nowhere, from: Data("x".utf8)) }
            await expectFailure(.unsupportedURL) { try await session.bytes(for: nowhere) }
            let done = Delivered<URLError?>()
            session.dataTask(with: nowhere) { done($2 as? URLError) }.resume()
            #expect(try await done.value?.code == .unsupportedURL)
            #expect(try await done.value?.failingURL == nil)
        }
    }

    @Test func `a GET with a body is offered to URLProtocol classes before it fails`() async throws {
        try await withScenario(
            configure: { $0.protocolClasses = [EchoProtocol.self] }, reply: { _ in .ok("sent") }
        ) { (server, session) async throws in
            let body = Data("query".utf8)
            #expect(try await session.text(URLRequest(server.url("/echo"), body: body)).text == "query")
            let refused = await expectFailure(.dataLengthExceedsMaximum) {
                try await session.data(for: URLRequest(server.url(), body: body))
            }
            #expect(refused?.failingURL == server.url())
            await expectFailure(.dataLengthExceedsMaximum) { try await session.upload(for: URLRequest(server.url()), from: body) }
            var streamed = URLRequest(server.url())
            streamed.httpBodyStream = InputStream(data: body)
            await expectFailure(.dataLengthExceedsMaximum) { try await session.data(for: streamed) }
            #expect(try await session.text(URLRequest(server.url(), body: Data())).text == "sent")
            #expect(server.requests.count == 1)
        }
    }

    @Test func `a redirect fails if the delegate adds a body to its GET`() async throws {
        var answers = EventRecorder.Answers()
        answers.redirect = { _, request in
            var request = request
            request.httpBody = Data("x".utf8)
            return request
        }
        let recorder = EventRecorder(answers)
        try await withScenario(delegate: recorder, reply: { _ in .redirect(302, to: "/b") }) { (server, session) async throws in
            let task = session.dataTask(with: server.url("/a"))
            task.resume()
            #expect((try await recorder.completion(of: task).error as? URLError)?.code == .dataLengthExceedsMaximum)
            #expect(server.requests.count == 1)
        }
    }
}

/// Responds to `/echo` with the body of the request.
private final class EchoProtocol: URLProtocol, @unchecked Sendable {
    override class func canInit(with request: URLRequest) -> Bool { request.url?.path == "/echo" }
    override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

    override func startLoading() {
        guard let url = request.url, let client,
            let response = HTTPURLResponse(url: url, statusCode: 200, httpVersion: nil, headerFields: nil)
        else { return }
        client.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
        client.urlProtocol(self, didLoad: request.httpBody ?? Data())
        client.urlProtocolDidFinishLoading(self)
    }

    override func stopLoading() {}
}
