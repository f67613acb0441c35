// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Cookies as a server sees them: a cookie that a response sets is sent back, for every kind of task and response.
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct CookieLoadTests {
    // MARK: Storing and sending

    @Test func `a cookie that a response sets is sent with the next request`() async throws {
        try await withCookies { (scene) async throws in
            try await scene.receive("id=abc")
            #expect(try await scene.sent() == "id=abc")
            #expect(try scene.stored == ["id=abc"])
        }
    }

    @Test func `each Set-Cookie field sets one cookie, including commas, quotes and equals signs`() async throws {
        try await withCookies { (scene) async throws in
            try await scene.receive(
                "a=1, 2; Expires=Wed, 01 Jan 2098 00:00:00 GMT", "b=\"x y\"", "c=k=v&l=w==", "empty=", "d=4 ; Path=/"
            )
            #expect(try await scene.sent() == "a=1, 2; b=\"x y\"; c=k=v&l=w==; empty=; d=4")
        }
    }

    @Test func `a cookie replaces the cookie of the same name, domain and path, at the same position`() async throws {
        try await withCookies { (scene) async throws in
            try await scene.receive("a=1", "b=2")
            try await scene.receive("a=3", at: "/")
            #expect(try await scene.sent() == "a=3; b=2")
        }
    }

    @Test func `sessions that share a storage share cookies, and others do not`() async throws {
        let storage = HTTPCookieStorage()
        try await withCookies(configure: { $0.httpCookieStorage = storage }) { (scene) async throws in
            try await scene.receive("id=abc")
            try await withSession {
                $0.httpCookieStorage = storage
            } test: { (other) async throws in
                #expect(try await scene.with(other).sent() == "id=abc")
            }
            try await withSession { (other) async throws in
                #expect(try await scene.with(other).sent() == nil)
                try await scene.with(other).receive("own=1")
            }
            #expect(storage.cookies?.map(\.name) == ["id"])
        }
    }

    @Test func `sessions of one ephemeral configuration share its storage, sessions of two do not`() async throws {
        let configuration = try URLSessionConfiguration.scripted()
        #expect(configuration.httpCookieStorage !== URLSessionConfiguration.ephemeral.httpCookieStorage)
        #expect(configuration.httpCookieStorage !== HTTPCookieStorage.shared)
        #expect(URLSessionConfiguration.default.httpCookieStorage === HTTPCookieStorage.shared)
        let (one, two) = (URLSession(configuration: configuration), URLSession(configuration: configuration))
        defer {
            one.invalidateAndCancel()
            two.invalidateAndCancel()
        }
        try await withCookies { (scene) async throws in
            try await scene.with(one).receive("id=abc")
            #expect(try await scene.with(two).sent() == "id=abc")
            #expect(try await scene.sent() == nil)
        }
    }

    @Test func `cookies that the app stores are sent, and cookies that it removes are not`() async throws {
        try await withCookies { (scene) async throws in
            let made = try cookie("own", "1 2")
            try scene.storage.setCookie(made)
            #expect(try await scene.sent() == "own=1 2")
            try scene.storage.deleteCookie(made)
            #expect(try await scene.sent() == nil)
        }
    }

    @Test func `a session without a storage stores no cookies, and sends those of the request`() async throws {
        try await withCookies(configure: { $0.httpCookieStorage = nil }) { (scene) async throws in
            try await scene.receive("id=abc")
            #expect(try await scene.sent() == nil)
            #expect(try await scene.sent { $0.setValue("own=1", forHTTPHeaderField: "Cookie") } == "own=1")
        }
    }

    @Test func `the app sees the cookies of a response`() async throws {
        try await withScenario(reply: { _ in .ok("", [("Set-Cookie", "a=1; Path=/"), ("Set-Cookie", "b=2; Path=/x")]) }) {
            (server, session) async throws in
            let response = try await session.text(URLRequest(server.url("/x/y"))).response
            let fields = try #require(response.allHeaderFields as? [String: String])
            let cookies = HTTPCookie.cookies(withResponseHeaderFields: fields, for: try #require(response.url))
            #expect(cookies.map(\.name) == ["a", "b"])
            #expect(cookies.map(\.path) == ["/", "/x"])
        }
    }

    // MARK: Responses before the final one

    @Test(arguments: [301, 302, 303, 307, 308])
    func `cookies of a redirect are sent with the next hop`(status: Int) async throws {
        try await withScenario(
            reply: { request in
                switch request.path {
                case "/a": .redirect(status, to: "/b", [("Set-Cookie", "one=1"), ("Set-Cookie", "other=1; Path=/elsewhere")])
                case "/b": .redirect(status, to: "/c", [("Set-Cookie", "two=2"), ("Set-Cookie", "one=; Max-Age=0")])
                default: .ok("end")
                }
            }
        ) { (server, session) async throws in
            #expect(try await session.text(server.url("/a")) == "end")
            #expect(server.requests.map { $0.header("Cookie") } == [nil, "one=1", "two=2"])
        }
    }

    @Test func `a redirect that the app refuses sets its cookies`() async throws {
        var answers = EventRecorder.Answers()
        answers.redirect = { _, _ in nil }
        let recorder = EventRecorder(answers)
        try await withScenario(
            delegate: recorder, reply: { _ in .redirect(302, to: "/b", [("Set-Cookie", "one=1")]) }
        ) { (server, session) async throws in
            let task = session.dataTask(with: server.url("/a"))
            task.resume()
            try await recorder.completion(of: task)
            #expect(session.configuration.httpCookieStorage?.cookies?.map(\.name) == ["one"])
        }
    }

    @Test func `the cookies of a redirect are stored before the app is asked about it`() async throws {
        let storage = HTTPCookieStorage()
        let seen = Delivered<[String]?>()
        var answers = EventRecorder.Answers()
        answers.redirect = { _, request in
            seen(storage.cookies?.map(\.name))
            return request
        }
        let recorder = EventRecorder(answers)
        try await withScenario(
            delegate: recorder, configure: { $0.httpCookieStorage = storage },
            reply: { $0.order == 0 ? .redirect(302, to: "/b", [("Set-Cookie", "one=1")]) : .ok() }
        ) { (server, session) async throws in
            let task = session.dataTask(with: server.url("/a"))
            task.resume()
            try await recorder.completion(of: task)
            #expect(seen.all == [["one"]])
            // The header field is part of the sent message, not of the request that the app sees.
            #expect(task.currentRequest?.value(forHTTPHeaderField: "Cookie") == nil)
            #expect(task.originalRequest?.value(forHTTPHeaderField: "Cookie") == nil)
        }
    }

    @Test func `a 401 sets cookies, whether answered or delivered`() async throws {
        try await withScenario(
            reply: { request in
                let fields = [("Set-Cookie", "nonce=7"), ("WWW-Authenticate", "Basic realm=\"x\"")]
                return request.header("Authorization") == nil ? .status(401, fields) : .ok("in")
            }
        ) { (server, session) async throws in
            #expect(try await session.text(server.url("/", user: "user:pass")) == "in")
            #expect(server.requests.map { $0.header("Cookie") } == [nil, "nonce=7"])
        }
        try await withScenario(reply: { _ in .status(401, [("Set-Cookie", "nonce=7")]) }) { (server, session) async throws in
            #expect(try await session.text(URLRequest(server.url())).response.statusCode == 401)
            _ = try await session.data(from: server.url())
            #expect(server.requests.map { $0.header("Cookie") } == [nil, "nonce=7"])
        }
    }

    @Test func `an informational response sets cookies`() async throws {
        try await withScenario(
            reply: { request in
                guard request.order == 0 else { return .ok("end") }
                return .redirect(302, to: "/b").after(.head(103, [("Set-Cookie", "early=1")]))
            }
        ) { (server, session) async throws in
            #expect(try await session.text(server.url("/a")) == "end")
            #expect(server.requests.map { $0.header("Cookie") } == [nil, "early=1"])
        }
    }

    @Test func `a response that fails later sets its cookies`() async throws {
        try await withScenario(
            reply: {
                $0.order == 0
                    ? [.head(200, [("Set-Cookie", "a=1"), ("Content-Length", "9")]), .close] : .ok()
            }
        ) { (server, session) async throws in
            await expectFailure(.networkConnectionLost) { try await session.data(from: server.url()) }
            _ = try await session.data(from: server.url())
            #expect(server.requests[1].header("Cookie") == "a=1")
        }
    }

    @Test(arguments: [204, 304, 404, 500])
    func `responses of any status set cookies`(status: Int) async throws {
        try await withScenario(
            reply: { _ in
                .bare(status, [("Set-Cookie", "a=1")] + (status < 400 ? [] : [("Content-Length", "0")]))
            }
        ) { (server, session) async throws in
            _ = try await session.data(from: server.url())
            _ = try await session.data(from: server.url())
            #expect(server.requests.map { $0.header("Cookie") } == [nil, "a=1"])
        }
    }

    // MARK: The request's own Cookie field

    @Test func `a request's own cookies precede the stored ones`() async throws {
        try await withCookies { (scene) async throws in
            try await scene.receive("stored=1")
            #expect(try await scene.sent { $0.setValue("own=2", forHTTPHeaderField: "Cookie") } == "own=2; stored=1")
            #expect(try scene.stored == ["stored=1"])
        }
    }

    @Test func `a request's own cookies are only sent to its origin, and the stored ones follow their own rules`() async throws {
        try await withScriptedServer(reply: { _ in .ok("end") }) { (far) async throws in
            try await withScenario(
                reply: { .redirect(302, to: far.url("/b", host: String($0.path.dropFirst())).absoluteString) }
            ) { (near, session) async throws in
                let storage = try #require(session.configuration.httpCookieStorage)
                storage.setCookie(try cookie("local"))
                storage.setCookie(try cookie("numbered", "2", [.domain: "127.0.0.1"]))
                for host in ["127.0.0.1", "localhost"] {
                    let request = URLRequest(near.url("/" + host, host: "localhost"), headers: ["Cookie": "own=3"])
                    #expect(try await session.text(request).text == "end")
                }
                #expect(near.requests.map { $0.header("Cookie") } == ["own=3; local=1", "own=3; local=1"])
                // The other port is another origin, but the same host.
                #expect(far.requests.map { $0.header("Cookie") } == ["numbered=2", "local=1"])
            }
        }
    }

    @Test func `a request's own cookies are kept by redirects within its origin`() async throws {
        try await withScenario(
            reply: { $0.order == 0 ? .redirect(302, to: "/b", [("Set-Cookie", "new=1")]) : .ok() }
        ) { (server, session) async throws in
            _ = try await session.data(for: URLRequest(server.url("/a"), headers: ["Cookie": "own=2"]))
            #expect(server.requests.map { $0.header("Cookie") } == ["own=2", "own=2; new=1"])
        }
    }

    // MARK: Every kind of task

    @Test func `every kind of task sends and stores cookies`() async throws {
        let recorder = EventRecorder()
        try await withScenario(
            delegate: recorder, reply: { .ok("body", [("Set-Cookie", "n=\($0.order)")]) }
        ) { (server, session) async throws in
            let url = server.url()
            let upload = URLRequest(url, method: "POST")
            _ = try await session.data(from: url)
            let (file, _) = try await session.download(from: url)
            try FileManager.default.removeItem(at: file)
            _ = try await session.upload(for: upload, from: Data("x".utf8))
            let (bytes, _) = try await session.bytes(from: url)
            for try await _ in bytes {}
            let done = Delivered<Int>()
            session.dataTask(with: url) { _, _, _ in done(4) }.resume()
            #expect(try await done.value == 4)
            session.downloadTask(with: url) { _, _, _ in done(5) }.resume()
            try await done.count(reaches: 2)
            session.uploadTask(with: upload, from: Data("x".utf8)) { _, _, _ in done(6) }.resume()
            try await done.count(reaches: 3)
            for task in [
                session.dataTask(with: url), session.downloadTask(with: url),
                session.uploadTask(with: upload, from: Data("x".utf8)),
            ] {
                task.resume()
                try await recorder.completion(of: task)
            }
            #expect(server.requests.map { $0.header("Cookie") } == [nil] + (0..<9).map { "n=\($0)" })
            #expect(session.configuration.httpCookieStorage?.cookies?.map(\.value) == ["9"])
        }
    }

    @Test func `a response that sets cookies posts a notification`() async throws {
        let storage = HTTPCookieStorage()
        let changes = Delivered<[String]?>()
        let token = NotificationCenter.default.addObserver(
            forName: .NSHTTPCookieManagerCookiesChanged, object: storage, queue: nil
        ) { _ in changes(storage.cookies?.map(\.name)) }
        defer { NotificationCenter.default.removeObserver(token) }
        try await withCookies(configure: { $0.httpCookieStorage = storage }) { (scene) async throws in
            try await scene.receive("a=1", "b=2")
            #expect(try await changes.value == ["a", "b"])
        }
    }
}
