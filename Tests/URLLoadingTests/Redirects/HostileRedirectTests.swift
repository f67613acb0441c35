// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Redirects, and the secrets that must not be sent to their targets.
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct HostileRedirectTests {
    private static let secrets = [
        "Authorization": "Bearer secret", "Cookie": "session=secret", "Proxy-Authorization": "Basic secret",
    ]

    private func expectNoSecrets(_ request: RecordedRequest, sourceLocation: SourceLocation = #_sourceLocation) {
        #expect(!request.headText.contains("secret"), sourceLocation: sourceLocation)
        for name in Self.secrets.keys { #expect(request.header(name) == nil, sourceLocation: sourceLocation) }
    }

    @Test(arguments: [301, 302, 303, 307, 308])
    func `the caller's credentials are not sent to another port`(status: Int) async throws {
        try await withScriptedServer(reply: { _ in .ok("end") }) { (other) async throws in
            let target = other.url("/b").absoluteString
            try await withScenario(reply: { _ in .redirect(status, to: target) }) { (server, session) async throws in
                let (text, _) = try await session.text(URLRequest(server.url("/a"), headers: Self.secrets))
                #expect(text == "end")
                #expect(server.requests[0].header("Authorization") == "Bearer secret")
                expectNoSecrets(try await other.request(0))
            }
        }
    }

    @Test(arguments: [301, 302, 303, 307, 308])
    func `the configuration's credentials are not sent to another port, and do not come back`(status: Int) async throws {
        let back = Delivered<String>()
        try await withScriptedServer(reply: { _ in .redirect(status, to: back.all.first ?? "") }) { (other) async throws in
            let target = other.url("/b").absoluteString
            try await withScenario(
                configure: { $0.httpAdditionalHeaders = Self.secrets },
                reply: { ["/a", "/b"].contains($0.path) ? .redirect(status, to: $0.path == "/a" ? "/b" : target) : .ok("end") }
            ) { (server, session) async throws in
                back(server.url("/c").absoluteString)
                #expect(try await session.text(URLRequest(server.url("/a"))).text == "end")
                for index in 0...1 {
                    #expect(server.requests[index].header("Cookie") == "session=secret")
                    #expect(server.requests[index].header("Authorization") == "Bearer secret")
                    #expect(server.requests[index].header("Proxy-Authorization") == nil, "reserved")
                }
                expectNoSecrets(try await other.request(0))
                expectNoSecrets(server.requests[2])
            }
        }
    }

    @Test func `the caller's credentials are not sent to another host`() async throws {
        try await withScenario(
            reply: { request in
                guard request.order == 0 else { return .ok("end") }
                let port = request.header("Host")?.split(separator: ":").last ?? ""
                return .redirect(302, to: "//localhost:\(port)/b")
            }
        ) { (server, session) async throws in
            #expect(try await session.text(URLRequest(server.url("/a"), headers: Self.secrets)).text == "end")
            expectNoSecrets(try await server.request(1))
        }
    }

    @Test func `the caller's credentials are not sent from https to http`() async throws {
        let certificates = try TestCertificates.shared.get()
        try await withScriptedServer(reply: { _ in .ok("end") }) { (clear) async throws in
            let target = clear.url("/b").absoluteString
            try await withScenario(
                identity: certificates.valid, configure: { $0.tlsTrustRoots = [certificates.root] },
                reply: { _ in .redirect(302, to: target) }
            ) { (server, session) async throws in
                #expect(try await session.text(URLRequest(server.url("/a"), headers: Self.secrets)).text == "end")
                expectNoSecrets(try await clear.request(0))
            }
        }
    }

    @Test func `a delegate that returns the proposed request sends no credentials`() async throws {
        let recorder = EventRecorder()
        try await withScriptedServer(reply: { _ in .ok("end") }) { (other) async throws in
            let target = other.url("/b").absoluteString
            try await withScenario(delegate: recorder, reply: { _ in .redirect(302, to: target) }) {
                (server, session) async throws in
                let task = session.dataTask(with: URLRequest(server.url("/a"), headers: Self.secrets))
                task.resume()
                let record = try await recorder.completion(of: task)
                #expect(record.redirectRequests.first?.value(forHTTPHeaderField: "Authorization") == nil)
                expectNoSecrets(try await other.request(0))
            }
        }
    }

    @Test func `user information in the first URL is not sent to another origin`() async throws {
        try await withScriptedServer(reply: { _ in .ok("end") }) { (other) async throws in
            let target = other.url("/b").absoluteString
            try await withScenario(reply: { _ in .redirect(302, to: target) }) { (server, session) async throws in
                #expect(try await session.text(server.url("/a", user: "user:secret")) == "end")
                let request = try await other.request(0)
                #expect(!request.headText.contains("secret"))
                #expect(!request.headText.contains("dXNlcjpzZWNyZXQ"))
                #expect(!server.requests[0].headText.contains("user:secret"))
            }
        }
    }

    @Test func `credentials dropped by a redirect do not come back`() async throws {
        let origin = Watched("")
        try await withScriptedServer(reply: { _ in .redirect(302, to: origin.read { $0 } + "c") }) { (other) async throws in
            let target = other.url("/b").absoluteString
            try await withScenario(reply: { $0.order == 0 ? .redirect(302, to: target) : .ok("end") }) {
                (server, session) async throws in
                origin.change { [url = server.url().absoluteString] in $0 = url }
                #expect(try await session.text(URLRequest(server.url("/a"), headers: Self.secrets)).text == "end")
                expectNoSecrets(try await other.request(0))
                expectNoSecrets(try await server.request(1))
            }
        }
    }

    @Test(
        arguments: [
            ("file:///etc/passwd", .unsupportedURL), ("data:text/plain,root", .unsupportedURL),
            ("javascript:alert(1)", .unsupportedURL),
            ("gopher://127.0.0.1/", .unsupportedURL), ("mailto:root@localhost", .unsupportedURL),
            ("http://", .redirectToNonExistentLocation), ("http:///", .redirectToNonExistentLocation),
            ("http://127.0.0.1:99999/", .redirectToNonExistentLocation), ("http://127.0.0.1:x/", .redirectToNonExistentLocation),
        ] as [(String, URLError.Code)])
    func `a redirect to a forbidden or invalid URL fails the load`(location: String, code: URLError.Code) async throws {
        try await withScenario(reply: { _ in .redirect(302, to: location, body: "redirect") }) { (server, session) async throws in
            await expectFailure(code) { try await session.data(from: server.url()) }
            #expect(server.requests.count == 1)
        }
    }

    @Test func `a redirect loop fails with too many redirects`() async throws {
        try await withScenario(reply: { _ in .redirect(302, to: "/again") }) { (server, session) async throws in
            let error = await expectFailure(.httpTooManyRedirects) { try await session.data(from: server.url()) }
            #expect(error?.failingURL != nil)
            #expect((17...21).contains(server.requests.count))
        }
    }

    @Test(arguments: [307, 308])
    func `a body from Data or a file is resent byte for byte`(status: Int) async throws {
        let content = Data(ScriptedFile.pattern(300_000))
        let directory = try TemporaryDirectory()
        let file = try directory.write(content, to: "body")
        try await withScenario(
            reply: { $0.path == "/a" ? .redirect(status, to: "/b") : .ok("end") }
        ) { (server, session) async throws in
            let request = URLRequest(server.url("/a"), method: "POST", headers: ["Content-Type": "text/x-test"])
            _ = try await session.upload(for: request, from: content)
            _ = try await session.upload(for: request, fromFile: file)
            let requests = try await server.waitForRequests(4)
            #expect(requests.map(\.path) == ["/a", "/b", "/a", "/b"])
            for request in requests {
                #expect(request.body == Array(content))
                #expect(request.method == "POST")
                #expect(request.values(of: "Content-Length") == ["300000"])
                #expect(request.header("Content-Type") == "text/x-test")
            }
        }
    }

    @Test(arguments: [307, 308])
    func `a body stream is requested again and resent byte for byte`(status: Int) async throws {
        let content = Data(ScriptedFile.pattern(300_000))
        var answers = EventRecorder.Answers()
        answers.bodyStream = { InputStream(data: content) }
        let recorder = EventRecorder(answers)
        try await withScenario(
            delegate: recorder, reply: { $0.path == "/a" ? .redirect(status, to: "/b") : .ok("end") }
        ) { (server, session) async throws in
            let task = session.uploadTask(withStreamedRequest: URLRequest(server.url("/a"), method: "POST"))
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.error == nil)
            #expect(record.events.filter { $0 == .needBodyStream }.count == 2)
            let requests = try await server.waitForRequests(2)
            for request in requests {
                #expect(request.body == Array(content))
                #expect(request.header("Content-Length") == nil)
            }
        }
    }

    @Test(arguments: [301, 302, 303])
    func `a POST that becomes a GET loses its body and the fields that described it`(status: Int) async throws {
        try await withScenario(reply: { $0.order == 0 ? .redirect(status, to: "/b") : .ok() }) { (server, session) async throws in
            let headers = ["Content-Type": "text/x-test", "Content-Language": "de", "Content-Encoding": "x", "X-Kept": "1"]
            _ = try await session.data(for: URLRequest(server.url("/a"), method: "POST", headers: headers, body: Data("x".utf8)))
            let second = try await server.request(1)
            #expect(second.method == "GET")
            #expect(second.bodyLength == 0)
            #expect(second.headers.filter { $0.name.lowercased().hasPrefix("content-") }.map(\.name) == [])
            #expect(second.header("Transfer-Encoding") == nil)
            #expect(second.header("X-Kept") == "1")
        }
    }

    @Test func `the fragment is inherited unless the Location has its own`() async throws {
        try await withScenario(
            reply: {
                $0.path == "/own" ? .redirect(302, to: "/end#own") : $0.path == "/none" ? .redirect(302, to: "/end") : .ok()
            }
        ) { (server, session) async throws in
            for (path, fragment) in [("/none#mine", "mine"), ("/own#mine", "own"), ("/own", "own")] {
                let (_, response) = try await session.data(from: server.url(path))
                #expect(response.url?.fragment == fragment)
            }
            #expect(server.requests.allSatisfy { !$0.target.contains("#") })
        }
    }
}
