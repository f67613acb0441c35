// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Which redirects are followed, and with which request.
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct RedirectTests {
    struct Row: Sendable {
        var status: Int
        var method: String
        /// The method of the second request, or nil if the redirect is not followed.
        var then: String?
        var keepsBody: Bool
    }

    @Test(arguments: [
        Row(status: 300, method: "GET", then: nil, keepsBody: false),
        Row(status: 301, method: "GET", then: "GET", keepsBody: false),
        Row(status: 301, method: "POST", then: "GET", keepsBody: false),
        Row(status: 301, method: "PUT", then: "PUT", keepsBody: true),
        Row(status: 302, method: "HEAD", then: "HEAD", keepsBody: false),
        Row(status: 302, method: "POST", then: "GET", keepsBody: false),
        Row(status: 302, method: "DELETE", then: "DELETE", keepsBody: false),
        Row(status: 303, method: "GET", then: "GET", keepsBody: false),
        Row(status: 303, method: "POST", then: "GET", keepsBody: false),
        Row(status: 303, method: "PUT", then: "GET", keepsBody: false),
        Row(status: 303, method: "HEAD", then: "GET", keepsBody: false),
        Row(status: 304, method: "GET", then: nil, keepsBody: false),
        Row(status: 307, method: "GET", then: "GET", keepsBody: false),
        Row(status: 307, method: "POST", then: "POST", keepsBody: true),
        Row(status: 307, method: "PUT", then: "PUT", keepsBody: true),
        Row(status: 308, method: "POST", then: "POST", keepsBody: true),
        Row(status: 308, method: "PATCH", then: "PATCH", keepsBody: true),
    ])
    func `status and method determine the next request`(row: Row) async throws {
        let sendsBody = ["POST", "PUT", "PATCH"].contains(row.method)
        try await withScenario(
            reply: { request in
                if request.path == "/b" { return request.method == "HEAD" ? .bare(200) : .ok("end") }
                if request.method == "HEAD" || row.status == 304 {
                    return .bare(row.status, [("Location", "/b")])
                }
                return .redirect(row.status, to: "/b")
            }
        ) { (server, session) async throws in
            let request = URLRequest(
                server.url("/a"), method: row.method, headers: sendsBody ? ["Content-Type": "text/x-test"] : [:],
                body: sendsBody ? Data("payload".utf8) : nil
            )
            let response = try await session.text(request).response
            #expect(response.statusCode == (row.then == nil ? row.status : 200))
            #expect(response.url == server.url(row.then == nil ? "/a" : "/b"))
            #expect(server.requests.map(\.method) == [row.method] + (row.then.map { [$0] } ?? []))
            guard row.then != nil else { return }
            let second = try await server.request(1)
            #expect(second.bodyText == (row.keepsBody && sendsBody ? "payload" : ""))
            #expect(second.header("Content-Type") == (row.keepsBody && sendsBody ? "text/x-test" : nil))
        }
    }

    @Test(
        arguments: [
            ("/b", "/b"), ("b", "/dir/b"), ("../b", "/b"), ("../../../b", "/b"), ("./b", "/dir/b"), ("?q=2", "/dir/a?q=2"),
            ("/x/./y/../z", "/x/z"), ("/a b", "/a%20b"), ("/%7euser", "/%7euser"), ("/\u{FC}", "/%C3%BC"), ("  /b\t", "/b"),
            ("/b?x=%20&y=[1]", "/b?x=%20&y=%5B1%5D"), ("/b#f", "/b"), ("/b;c=d", "/b;c=d"), ("/%E4%zz", "/%E4%25zz"),
            ("/a|b", "/a%7Cb"),
            ("/{x}", "/%7Bx%7D"),
        ] as [(String, String)])
    func `a Location is resolved against the current URL`(location: String, target: String) async throws {
        try await withScenario(
            reply: { $0.order == 0 ? .redirect(302, to: location) : .ok("end") }
        ) { (server, session) async throws in
            #expect(try await session.text(server.url("/dir/a?x=1")) == "end")
            #expect(try await server.request(1).target == target)
        }
    }

    @Test func `a Location without a scheme, or with an absolute URL, names its host`() async throws {
        let scheme = ScriptedVersion.current?.isSecure == true ? "HTTPS" : "HTTP"
        try await withScenario(
            reply: { request in
                let host = request.header("Host") ?? ""
                return switch request.order {
                case 0: .redirect(302, to: "//\(host)/1")
                case 1: .redirect(302, to: "\(scheme)://\(host)")
                default: .ok("end")
                }
            }
        ) { (server, session) async throws in
            #expect(try await session.text(server.url("/0")) == "end")
            #expect(server.requests.map(\.target) == ["/0", "/1", "/"])
        }
    }

    @Test func `a redirect without Location is the response`() async throws {
        try await withScenario(reply: { _ in .status(302, body: "where?") }) { (server, session) async throws in
            let (text, response) = try await session.text(URLRequest(server.url()))
            #expect(text == "where?")
            #expect(response.statusCode == 302)
        }
    }

    @Test func `sixteen redirects are followed`() async throws {
        try await withScenario(
            reply: { $0.order < 16 ? .redirect(302, to: "/\($0.order + 1)") : .ok("end") }
        ) { (server, session) async throws in
            #expect(try await session.text(server.url("/0")) == "end")
            #expect(server.connectionCount == 1)
        }
    }

    @Test func `the delegate is asked before a redirect is followed, and the redirect is not reported as a response`()
        async throws
    {
        let recorder = EventRecorder()
        try await withScenario(
            delegate: recorder, reply: { $0.order == 0 ? .redirect(302, to: "/b") : .ok("end") }
        ) { (server, session) async throws in
            let task = session.dataTask(with: server.url("/a"))
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.letters == "crRDME")
            #expect(record.redirectRequests.map(\.url) == [server.url("/b")])
            #expect(record.redirectResponses.map(\.statusCode) == [302])
            #expect(task.originalRequest?.url == server.url("/a"))
            #expect(task.currentRequest?.url == server.url("/b"))
            #expect(task.response?.url == server.url("/b"))
        }
    }

    @Test func `a refused redirect is delivered with its body`() async throws {
        var answers = EventRecorder.Answers()
        answers.redirect = { _, _ in nil }
        let recorder = EventRecorder(answers)
        try await withScenario(
            delegate: recorder, reply: { _ in .redirect(302, to: "/b", body: "the old place") }
        ) { (server, session) async throws in
            let task = session.dataTask(with: server.url("/a"))
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.letters == "crRDME")
            #expect(record.body == Data("the old place".utf8))
            #expect((record.response as? HTTPURLResponse)?.statusCode == 302)
            #expect(record.error == nil)
            #expect(server.requests.count == 1)
        }
    }

    @Test func `a delegate may replace the request of a redirect`() async throws {
        var answers = EventRecorder.Answers()
        answers.redirect = { _, request in
            var request = request
            request.url = request.url.flatMap { URL(string: "/c", relativeTo: $0)?.absoluteURL }
            request.setValue("yes", forHTTPHeaderField: "X-Changed")
            return request
        }
        let recorder = EventRecorder(answers)
        try await withScenario(
            delegate: recorder, reply: { $0.path == "/a" ? .redirect(302, to: "/b") : .ok("end") }
        ) { (server, session) async throws in
            let task = session.dataTask(with: server.url("/a"))
            task.resume()
            try await recorder.completion(of: task)
            #expect(server.requests.map(\.path) == ["/a", "/c"])
            #expect(server.requests[1].header("X-Changed") == "yes")
        }
    }

    @Test func `a redirect is reported for completion-handler tasks and for async calls`() async throws {
        let recorder = EventRecorder()
        try await withScenario(
            delegate: recorder, reply: { $0.path == "/a" ? .redirect(302, to: "/b") : .ok("end") }
        ) { (server, session) async throws in
            let done = Delivered<Data?>()
            let task = session.dataTask(with: server.url("/a")) { data, _, _ in done(data) }
            task.resume()
            #expect(try await done.value == Data("end".utf8))
            #expect(recorder.letters(of: task).hasPrefix("cr"))
            let asked = EventRecorder()
            let (data, _) = try await session.data(for: URLRequest(server.url("/a")), delegate: asked)
            #expect(data == Data("end".utf8))
        }
    }

    @Test func `a task cancelled while its delegate decides on a redirect closes its connection`() async throws {
        let never = Watched(false)
        var answers = EventRecorder.Answers()
        answers.redirect = { _, request in
            _ = try? await never.value { $0 ? true : nil }
            return request
        }
        let recorder = EventRecorder(answers)
        let stalled: ScriptedReply = [.head(302, [("Location", "/b"), ("Content-Length", "10")], "mo"), .stall]
        try await withScenario(
            delegate: recorder, configure: { $0.httpMaximumConnectionsPerHost = 1 },
            reply: { $0.order == 0 ? stalled : .ok("next") }
        ) { (server, session) async throws in
            let task = session.dataTask(with: server.url("/a"))
            task.resume()
            try await recorder.wait(for: task) { $0.letters.contains("r") }
            task.cancel()
            #expect((try await recorder.completion(of: task).error as? URLError)?.code == .cancelled)
            never.change { $0 = true }
            try await server.waitForAbandoning(0)
            #expect(try await session.text(server.url()) == "next")
        }
    }

    @Test func `a redirect is followed even if its body stalls`() async throws {
        let stalls: ScriptedReply = [.head(302, [("Location", "/end"), ("Content-Length", "5")], "be"), .stall]
        try await withScenario(reply: { $0.order == 0 ? stalls : .ok("end") }) { (server, session) async throws in
            #expect(try await session.text(URLRequest(server.url())).text == "end")
            try await server.waitForAbandoning(0)
        }
    }

    @Test(.over(.http1, .http1OverTLS)) func `a redirect is followed even if its chunked body stalls`() async throws {
        let stalls: ScriptedReply = [
            .write("HTTP/1.1 302 Found\r\nLocation: /end\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nbe"), .stall,
        ]
        try await withScenario(reply: { $0.order == 0 ? stalls : .ok("end") }) { (server, session) async throws in
            #expect(try await session.text(URLRequest(server.url())).text == "end")
            try await server.waitForAbandoning(0)
        }
    }

    @Test func `fields of the first request are kept within an origin`() async throws {
        try await withScenario(
            reply: { $0.order == 0 ? .redirect(302, to: "/b") : .ok() }
        ) { (server, session) async throws in
            _ = try await session.data(for: URLRequest(server.url("/a"), headers: ["X-Mine": "1", "Accept": "text/x"]))
            #expect(server.requests[1].header("X-Mine") == "1")
            #expect(server.requests[1].header("Accept") == "text/x")
            #expect(server.requests[1].values(of: "Host") == server.requests[0].values(of: "Host"))
        }
    }
}
