// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Which responses are stored, and when a stored response is served without asking the server (RFC 9111, sections 3 and 4).
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct CacheLoadTests {
    // MARK: A fresh response is served

    @Test(arguments: LoadForm.allCases, LoadForm.allCases)
    func `a fresh response is served without the server to every kind of load, whichever kind stored it`(
        first: LoadForm, second: LoadForm
    ) async throws {
        let recorder = EventRecorder()
        let fields = Fields.fresh + [("Content-Type", "text/plain; charset=utf-8"), ("X-Order", "a"), ("X-Order", "b")]
        try await withCachedScenario(
            delegate: recorder, reply: { .ok("body \($0.order)", fields) }
        ) { (server, session, _) async throws in
            let request = URLRequest(server.url("/a"))
            let stored = try await first.load(request, in: session, recorder)
            let hit = try await second.load(request, in: session, recorder)
            #expect(server.requests.count == 1)
            #expect(hit.data == Data("body 0".utf8) && stored.data == hit.data)
            #expect(hit.response.statusCode == 200 && hit.response.url == server.url("/a"))
            #expect(hit.response.mimeType == "text/plain" && hit.response.textEncodingName == "utf-8")
            #expect(hit.response.value(forHTTPHeaderField: "X-Order") == "a, b")
            #expect(hit.response.expectedContentLength == 6)
            #expect(recorder.faults.isEmpty)
        }
    }

    @Test func `a response over TLS is stored`() async throws {
        let certificates = try TestCertificates.shared.get()
        try await withCachedScenario(
            identity: certificates.valid, configure: { $0.tlsTrustRoots = [certificates.root] },
            reply: { .ok("\($0.order)", Fields.fresh) }
        ) { (server, session, _) async throws in
            #expect(try await session.text(server.url()) == "0")
            #expect(try await session.text(server.url()) == "0")
            #expect(server.requests.count == 1)
        }
    }

    @Test func `an empty body is stored and served`() async throws {
        try await withCachedScenario(reply: { _ in .ok("", Fields.fresh) }) { (server, session, _) async throws in
            for _ in 0..<2 {
                let (text, response) = try await session.text(URLRequest(server.url()))
                #expect(text.isEmpty && response.statusCode == 200)
            }
            #expect(server.requests.count == 1)
        }
    }

    @Test(arguments: [(200, true), (203, true), (204, true), (404, true), (410, true), (500, true), (401, false), (429, false)])
    func `responses of any status are stored, except those specific to one request`(status: Int, isKept: Bool) async throws {
        try await withCachedScenario(
            reply: { request in
                status == 204
                    ? .bare(204, Fields.fresh) : .status(status, Fields.fresh, body: "\(request.order)")
            }
        ) { (server, session, _) async throws in
            let first = try await session.text(URLRequest(server.url()))
            let second = try await session.text(URLRequest(server.url()))
            #expect(first.response.statusCode == status && second.response.statusCode == status)
            #expect(server.requests.count == (isKept ? 1 : 2))
            #expect((first.text == second.text) == isKept || status == 204)
        }
    }

    @Test func `a response to a request with credentials is stored in the private cache`() async throws {
        try await withCachedScenario(reply: { .ok("\($0.order)", Fields.fresh) }) { (server, session, _) async throws in
            let request = URLRequest(server.url(), headers: ["Authorization": "Basic eDp5"])
            #expect(try await session.text(request).text == "0")
            #expect(try await session.text(request).text == "0")
        }
    }

    // MARK: The key

    @Test func `path and query are part of the key, but the fragment is not`() async throws {
        try await withCachedScenario(
            reply: { .ok($0.target, Fields.fresh) }
        ) { (server, session, _) async throws in
            for path in ["/a?x=1", "/a?x=2", "/a", "/b", "/a?x=1", "/a?x=2", "/a#f", "/b#g", "/A"] {
                let text = try await session.text(server.url(path))
                #expect(text == path.split(separator: "#").first.map(String.init))
            }
            #expect(server.requests.map(\.target) == ["/a?x=1", "/a?x=2", "/a", "/b", "/A"])
        }
    }

    @Test func `hosts and ports have separate entries`() async throws {
        try await withCachedScenario(reply: { _ in .ok("one", Fields.fresh) }) { (server, session, _) async throws in
            try await withScriptedServer(reply: { _ in .ok("two", Fields.fresh) }) { (other) async throws in
                for _ in 0..<2 {
                    #expect(try await session.text(server.url()) == "one")
                    #expect(try await session.text(other.url()) == "two")
                    #expect(try await session.text(server.url(host: "localhost")) == "one")
                }
                #expect(server.requests.count == 2 && other.requests.count == 1)
            }
        }
    }

    @Test func `header fields named by Vary must match`() async throws {
        try await withCachedScenario(
            reply: { .ok($0.header("Accept-Language") ?? "", Fields.fresh + [("Vary", "accept-language")]) }
        ) { (server, session, _) async throws in
            func text(_ language: String, _ other: String) async throws -> String {
                try await session.text(
                    URLRequest(server.url(), headers: ["Accept-Language": language, "X-Other": other])
                ).text
            }
            #expect(try await text("de", "1") == "de")
            #expect(try await text("en", "1") == "en")
            #expect(try await text("en", "2") == "en")
            // Section 4.1: several responses of one URL may be stored.
            #expect(try await text("de", "2") == "de")
            #expect(server.requests.count == 2)
        }
    }

    @Test(arguments: ["Accept-Encoding", "User-Agent", "Accept, Accept-Encoding", "X-Absent"])
    func `header fields that the session adds match in later requests if Vary names them`(vary: String) async throws {
        try await withCachedScenario(
            reply: { .ok("\($0.order)", Fields.fresh + [("Vary", vary)]) }
        ) { (server, session, _) async throws in
            #expect(try await session.text(server.url()) == "0")
            #expect(try await session.text(server.url()) == "0")
        }
    }

    @Test func `a response obtained through a redirect without the session's Cookie is not served to loads that send it`()
        async throws
    {
        try await withScriptedServer(
            reply: { .ok($0.header("Cookie") == nil ? "anonymous" : "ada", Fields.fresh + [("Vary", "Cookie")]) }
        ) { (other) async throws in
            let elsewhere = other.url("/b").absoluteString
            try await withCachedScenario(
                configure: { $0.httpAdditionalHeaders = ["Cookie": "who=ada"] },
                reply: { _ in .redirect(302, to: elsewhere) }
            ) { (server, session, _) async throws in
                #expect(try await session.text(server.url("/a")) == "anonymous")
                #expect(try await session.text(other.url("/b")) == "ada")
                #expect(try await session.text(server.url("/a")) == "anonymous")
                #expect(other.requests.count == 2)
            }
        }
    }

    // MARK: Bodies

    @Test func `a coded body is stored and delivered decoded`() async throws {
        let content = ScriptedFile.pattern(50_000)
        try await withCachedScenario(reply: { _ in .gzip(content, Fields.fresh) }) { (server, session, scene) async throws in
            let first = try await session.data(for: URLRequest(server.url()))
            let second = try await session.data(for: URLRequest(server.url()))
            #expect(first.0 == Data(content) && second.0 == Data(content))
            #expect(
                (first.1 as? HTTPURLResponse)?.value(forHTTPHeaderField: "Content-Encoding")
                    == (second.1 as? HTTPURLResponse)?.value(forHTTPHeaderField: "Content-Encoding"))
            #expect(first.1.expectedContentLength == second.1.expectedContentLength)
            #expect(scene.cache.cachedResponse(for: URLRequest(server.url()))?.data == Data(content))
            await session.flush()
            try await withSession(on: scene.reopened()) { (session) async throws in
                #expect(try await session.data(from: server.url()).0 == Data(content))
            }
            #expect(server.requests.count == 1)
        }
    }

    @Test func `a chunked body is stored`() async throws {
        try await withCachedScenario(
            reply: { _ in .chunked(["one", "two", "three"], trailers: [("X-Trailer", "t")], Fields.fresh) }
        ) { (server, session, _) async throws in
            #expect(try await session.text(server.url()) == "onetwothree")
            let hit = try await session.text(URLRequest(server.url()))
            #expect(hit.text == "onetwothree" && server.requests.count == 1)
        }
    }

    @Test func `a body that ends with the connection is stored`() async throws {
        try await withCachedScenario(
            reply: { _ in [.head(200, Fields.fresh, "all of it", ends: true), .close] }
        ) { (server, session, _) async throws in
            #expect(try await session.text(server.url()) == "all of it")
            #expect(try await session.text(server.url()) == "all of it")
            #expect(server.requests.count == 1)
        }
    }

    @Test(arguments: [("Content-Length", "10"), ("Transfer-Encoding", "chunked")])
    func `an incomplete body is not stored`(name: String, value: String) async throws {
        try await withCachedScenario(
            reply: { request in
                guard request.order == 0 else { return .ok("whole", Fields.fresh) }
                return .begun(200, Fields.fresh + [(name, value)], "abc").then(.close)
            }
        ) { (server, session, scene) async throws in
            await expectFailure(.networkConnectionLost, .cannotParseResponse, .badServerResponse) {
                try await session.data(from: server.url())
            }
            #expect(scene.cache.cachedResponse(for: URLRequest(server.url())) == nil)
            #expect(try await session.text(server.url()) == "whole")
            #expect(server.requests.count == 2)
        }
    }

    @Test func `a cancelled load stores nothing`() async throws {
        let recorder = EventRecorder()
        try await withCachedScenario(
            delegate: recorder,
            reply: { request in
                guard request.order == 0 else { return .ok("whole", Fields.fresh) }
                return [.head(200, Fields.fresh + [("Content-Length", "10")], "abc"), .stall]
            }
        ) { (server, session, _) async throws in
            let task = session.dataTask(with: server.url())
            task.resume()
            try await recorder.wait(for: task) { $0.body.count == 3 }
            task.cancel()
            #expect(try await recorder.completion(of: task).error != nil)
            #expect(try await session.text(server.url()) == "whole")
        }
    }

    // MARK: Size

    @Test(arguments: [(20_000, true), (100_000, false)])
    func `a response larger than a twentieth of the capacity is not stored`(size: Int, isKept: Bool) async throws {
        for isSized in [true, false] {
            let text = String(repeating: "x", count: size)
            try await withCachedScenario(
                memory: 1 << 20, disk: 1 << 20,
                reply: { _ in isSized ? .ok(text, Fields.fresh) : .chunked([text], Fields.fresh) }
            ) { (server, session, _) async throws in
                for _ in 0..<2 { #expect(try await session.text(server.url()).utf8.count == size) }
                #expect(server.requests.count == (isKept ? 1 : 2))
            }
        }
    }

    @Test(arguments: [LoadForm.async, .delegate])
    func `a body too large for memory is served from disk`(form: LoadForm) async throws {
        let recorder = EventRecorder()
        let content = ScriptedFile.pattern(4 << 20)
        try await withCachedScenario(
            memory: 1 << 20, disk: 200 << 20, delegate: recorder, reply: { _ in .ok(content, Fields.fresh) }
        ) { (server, session, scene) async throws in
            let request = URLRequest(server.url())
            #expect(try await form.load(request, in: session, recorder).data == Data(content))
            await session.flush()
            #expect(scene.cache.currentMemoryUsage < 1 << 20)
            #expect(scene.cache.currentDiskUsage >= 4 << 20)
            #expect(try await form.load(request, in: session, recorder).data == Data(content))
            #expect(server.requests.count == 1)
        }
    }

    @Test func `a cache without capacity stores nothing`() async throws {
        try await withCachedScenario(
            memory: 0, disk: 0, reply: { .ok("\($0.order)", Fields.fresh) }
        ) { (server, session, _) async throws in
            #expect(try await session.text(server.url()) == "0")
            #expect(try await session.text(server.url()) == "1")
        }
    }

    // MARK: Redirects

    @Test func `a redirect without freshness is requested again, but its fresh target is not`() async throws {
        let recorder = EventRecorder()
        try await withCachedScenario(
            delegate: recorder,
            reply: { $0.path == "/a" ? .redirect(302, to: "/b") : .ok("end", Fields.fresh) }
        ) { (server, session, _) async throws in
            for _ in 0..<2 {
                let task = session.dataTask(with: server.url("/a"))
                task.resume()
                let record = try await recorder.completion(of: task)
                #expect(record.letters == "crRDME" && record.body == Data("end".utf8))
                #expect(task.response?.url == server.url("/b"))
            }
            #expect(server.requests.map(\.path) == ["/a", "/b", "/a"])
        }
    }

    // MARK: Other tasks

    @Test func `download tasks neither use nor fill the cache`() async throws {
        try await withCachedScenario(reply: { .ok("\($0.order)", Fields.fresh) }) { (server, session, scene) async throws in
            func download(_ path: String) async throws -> String {
                let (file, _) = try await session.download(from: server.url(path))
                defer { try? FileManager.default.removeItem(at: file) }
                return try String(contentsOf: file, encoding: .utf8)
            }
            #expect(try await download("/a") == "0")
            #expect(scene.cache.cachedResponse(for: URLRequest(server.url("/a"))) == nil)
            #expect(try await session.text(server.url("/a")) == "1")
            #expect(try await download("/a") == "2")
            #expect(try await session.text(server.url("/a")) == "1")
        }
    }

    @Test(arguments: ["POST", "PUT", "PATCH", "DELETE"])
    func `responses to unsafe methods are not stored`(method: String) async throws {
        try await withCachedScenario(reply: { .ok("\($0.order)", Fields.fresh) }) { (server, session, scene) async throws in
            let request = URLRequest(server.url(), method: method)
            for order in 0..<2 {
                let (data, _) = try await session.upload(for: request, from: Data("x".utf8))
                #expect(data == Data("\(order)".utf8))
            }
            #expect(try await session.text(URLRequest(server.url(), method: method)).text == "2")
            #expect(scene.cache.entries().isEmpty)
            #expect(try await session.text(server.url()) == "3")
        }
    }
}
