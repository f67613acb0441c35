// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Redirects and errors served from the cache (RFC 9111, section 3: any final status).
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct CachedRedirectTests {
    @Test(arguments: [
        (301, []), (308, []), (301, Fields.fresh), (302, Fields.fresh), (303, Fields.fresh), (307, Fields.fresh),
    ])
    func `a stored redirect is followed with its delegate call, counted, and recorded as a transaction`(
        status: Int, fields: Fields.List
    ) async throws {
        let recorder = EventRecorder()
        try await withCachedScenario(
            delegate: recorder, reply: { $0.path == "/a" ? .redirect(status, to: "/b", fields) : .ok("end") }
        ) { (server, session, _) async throws in
            for round in 0..<2 {
                let task = session.dataTask(with: server.url("/a"))
                task.resume()
                let record = try await recorder.completion(of: task)
                #expect(record.letters == "crRDME" && record.body == Data("end".utf8))
                #expect(task.response?.url == server.url("/b") && task.currentRequest?.url == server.url("/b"))
                let metrics = try #require(record.metrics)
                #expect(metrics.redirectCount == 1)
                #expect(
                    metrics.transactionMetrics.map(\.resourceFetchType) == [
                        round == 0 ? .networkLoad : .localCache, .networkLoad,
                    ])
                #expect(metrics.transactionMetrics.map { ($0.response as? HTTPURLResponse)?.statusCode } == [status, 200])
            }
            #expect(server.requests.map(\.path) == ["/a", "/b", "/b"])
        }
    }

    @Test(arguments: LoadForm.allCases) func `every form of load follows a stored redirect`(form: LoadForm) async throws {
        let recorder = EventRecorder()
        try await withCachedScenario(
            delegate: recorder, reply: { $0.path == "/a" ? .redirect(301, to: "/b") : .ok("end", Fields.fresh) }
        ) { (server, session, _) async throws in
            for _ in 0..<2 {
                let (data, response) = try await form.load(URLRequest(server.url("/a")), in: session, recorder)
                #expect(data == Data("end".utf8) && response.url == server.url("/b"))
            }
            #expect(server.requests.map(\.path) == ["/a", "/b"])
        }
    }

    @Test func `a stored redirect is followed without requests, also in the next run of the program`() async throws {
        try await withCachedScenario(
            reply: { $0.path == "/a" ? .redirect(308, to: "/b", body: "moved") : .status(404, Fields.fresh, body: "none") }
        ) { (server, session, scene) async throws in
            for _ in 0..<2 {
                let (text, response) = try await session.text(URLRequest(server.url("/a")))
                #expect(text == "none" && response.statusCode == 404 && response.url == server.url("/b"))
            }
            await session.flush()
            try await withSession(on: scene.reopened()) { (later) async throws in
                #expect(try await later.text(URLRequest(server.url("/a"))).text == "none")
            }
            #expect(server.requests.map(\.path) == ["/a", "/b"])
        }
    }

    @Test func `a stored redirect that the delegate refuses is delivered with its body`() async throws {
        try await withCachedScenario(
            delegate: RefusingDelegate(), reply: { _ in .redirect(301, to: "/b", body: "moved") }
        ) { (server, session, _) async throws in
            for _ in 0..<2 {
                let (text, response) = try await session.text(URLRequest(server.url("/a")))
                #expect(text == "moved" && response.statusCode == 301)
            }
            #expect(server.requests.count == 1)
        }
    }

    @Test func `only redirects of GET are stored, and another method invalidates them`() async throws {
        try await withCachedScenario(
            reply: { $0.path == "/a" ? .redirect(308, to: "/b", Fields.fresh) : .ok($0.method) }
        ) { (server, session, _) async throws in
            let post = URLRequest(server.url("/a"), method: "POST", body: Data("x".utf8))
            for _ in 0..<2 { #expect(try await session.text(post).text == "POST") }
            for _ in 0..<2 { #expect(try await session.text(server.url("/a")) == "GET") }
            #expect(try await session.text(post).text == "POST")
            #expect(try await session.text(server.url("/a")) == "GET")
            #expect(server.requests.filter { $0.path == "/a" }.map(\.method) == ["POST", "POST", "GET", "POST", "GET"])
        }
    }

    @Test func `a loop of stored redirects is requested again from the server`() async throws {
        try await withCachedScenario(
            reply: { $0.order < 2 ? .redirect(301, to: $0.path == "/a" ? "/b" : "/a") : .ok("mended") }
        ) { (server, session, _) async throws in
            await expectFailure(.httpTooManyRedirects) { try await session.data(from: server.url("/a")) }
            #expect(server.requests.map(\.path) == ["/a", "/b"])
            #expect(try await session.text(server.url("/a")) == "mended")
        }
    }

    @Test func `a new redirect replaces the stored one`() async throws {
        try await withCachedScenario(
            reply: { request in
                switch (request.path, request.order) {
                case ("/a", 0): .redirect(301, to: "/old")
                case ("/a", _): .redirect(302, to: "/new")
                default: .ok(request.path)
                }
            }
        ) { (server, session, _) async throws in
            let plain = URLRequest(server.url("/a"))
            #expect(try await session.text(plain).text == "/old")
            #expect(try await session.text(plain).text == "/old")
            #expect(try await session.text(plain.with(.reloadIgnoringLocalCacheData)).text == "/new")
            #expect(try await session.text(plain).text == "/new")
            #expect(server.requests.filter { $0.path == "/a" }.count == 3)
        }
    }

    @Test func `credentials do not follow a stored redirect to another origin`() async throws {
        try await withScriptedServer(reply: { .ok($0.header("Authorization") ?? "none") }) { (other) async throws in
            let elsewhere = other.url().absoluteString
            try await withCachedScenario(reply: { _ in .redirect(301, to: elsewhere) }) { (server, session, _) async throws in
                for _ in 0..<2 {
                    let request = URLRequest(server.url(), headers: ["Authorization": "Basic eDp5"])
                    #expect(try await session.text(request).text == "none")
                }
                #expect(server.requests.count == 1 && other.requests.count == 2)
            }
        }
    }

    @Test func `a 401 is not served from the cache, even if it is fresh`() async throws {
        let challenge = [("WWW-Authenticate", "Basic realm=\"x\"")] + Fields.fresh
        try await withCachedScenario(
            reply: { $0.header("Authorization") == nil ? .status(401, challenge) : .ok("in") }
        ) { (server, session, _) async throws in
            #expect(try await session.text(URLRequest(server.url())).response.statusCode == 401)
            let request = URLRequest(server.url(), headers: ["Authorization": "Basic eDp5"])
            #expect(try await session.text(request).text == "in")
        }
    }

    @Test func `a stored error is served while it is fresh, and later requests have no condition`() async throws {
        let stale = Fields.stale + [("Last-Modified", httpDate(-9))]
        try await withCachedScenario(reply: { _ in .status(404, stale, body: "none") }) { (server, session, _) async throws in
            let request = URLRequest(server.url())
            #expect(try await session.text(request).text == "none")
            #expect(try await session.text(request).text == "none")
            #expect(try await session.text(request.with(.returnCacheDataElseLoad)).text == "none")
            #expect(server.requests.count == 3)
            #expect(server.requests.allSatisfy { $0.header("If-None-Match") == nil && $0.header("If-Modified-Since") == nil })
            #expect(try await session.text(request.with(.returnCacheDataDontLoad)).text == "none")
            #expect(server.requests.count == 3)
        }
    }

    @Test func `a range request for a stored error receives the whole error`() async throws {
        try await withCachedScenario(reply: { _ in .status(404, Fields.fresh, body: "nothing here") }) {
            (server, session, _) async throws in
            #expect(try await session.text(server.url()) == "nothing here")
            let (text, response) = try await session.text(URLRequest(server.url(), headers: ["Range": "bytes=0-2"]))
            #expect(text == "nothing here" && response.statusCode == 404)
            #expect(server.requests.count == 1)
        }
    }
}

private final class RefusingDelegate: NSObject, URLSessionTaskDelegate, Sendable {
    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping (URLRequest?) -> Void
    ) {
        completionHandler(nil)
    }
}
