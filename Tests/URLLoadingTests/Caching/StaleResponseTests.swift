// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Stale responses that are served nevertheless (RFC 5861): during a background revalidation, or because the server fails.
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct StaleResponseTests {
    // MARK: stale-while-revalidate (RFC 5861, section 3)

    private static let lenient = [("Cache-Control", "max-age=60, stale-while-revalidate=600"), ("Age", "100")]

    @Test func `a stale response within its window is served at once, and revalidated in the background`() async throws {
        try await withCachedScenario(
            reply: { request in
                guard request.order > 0 else { return .ok("old", Self.lenient + [("ETag", "\"v\"")]) }
                return .ok("new", Fields.fresh).after(.gate("later"))
            }
        ) { (server, session, scene) async throws in
            #expect(try await session.text(server.url()) == "old")
            #expect(try await session.text(server.url()) == "old")
            try await server.reached("later")
            #expect(try await server.request(1).header("If-None-Match") == "\"v\"")
            // Meanwhile other loads do not revalidate again.
            #expect(try await session.text(server.url()) == "old")
            server.open("later")
            while scene.cache.cachedResponse(for: URLRequest(server.url()))?.data != Data("new".utf8) {
                try Task.checkCancellation()
                await Task.yield()
            }
            #expect(try await session.text(server.url()) == "new")
            #expect(server.requests.count == 2)
        }
    }

    @Test func `many loads of a stale response revalidate once`() async throws {
        try await withCachedScenario(
            reply: { request in
                guard request.order > 0 else { return .ok("old", Self.lenient) }
                return .ok("new", Fields.fresh).after(.gate("later"))
            }
        ) { (server, session, _) async throws in
            #expect(try await session.text(server.url()) == "old")
            try await withThrowingTaskGroup(of: String.self) { group in
                for _ in 0..<50 { group.addTask { try await session.text(server.url()) } }
                for try await text in group { #expect(text == "old") }
            }
            try await server.reached("later")
            #expect(server.requests.count == 2)
            server.open("later")
            while try await session.text(server.url()) != "new" { await Task.yield() }
            #expect(server.requests.count == 2)
        }
    }

    @Test(arguments: [false, true])
    func `a background revalidation does not keep a session alive`(isCancelled: Bool) async throws {
        let recorder = EventRecorder()
        try await withCachedScenario(
            delegate: recorder,
            reply: { request in
                guard request.order > 0 else { return .ok("old", Self.lenient) }
                return [.gate("later"), .close]
            }
        ) { (server, session, _) async throws in
            #expect(try await session.text(server.url()) == "old")
            #expect(try await session.text(server.url()) == "old")
            try await server.reached("later")
            #expect(await session.allTasks.isEmpty)
            if isCancelled { session.invalidateAndCancel() } else { session.finishTasksAndInvalidate() }
            if !isCancelled { server.open("later") }
            #expect(try await recorder.invalidation() == 1)
            server.open("later")
        }
    }

    @Test(arguments: [false, true])
    func `invalidating the session ends a background revalidation and closes its connection`(isCancelled: Bool) async throws {
        try await withCachedScenario(
            configure: { $0.timeoutIntervalForRequest = 3600 },
            reply: { request in
                guard request.order > 0 else { return .ok("old", Self.lenient) }
                return .begun(200, [("Content-Length", "10")], "ne").then(.reach("later"), .stall)
            }
        ) { (server, session, _) async throws in
            #expect(try await session.text(server.url()) == "old")
            #expect(try await session.text(server.url()) == "old")
            try await server.reached("later")
            if isCancelled { session.invalidateAndCancel() } else { session.finishTasksAndInvalidate() }
            try await server.waitForAllClosed()
        }
    }

    @Test func `a background revalidation of a redirect's target does not send the session's Cookie`() async throws {
        try await withScriptedServer(reply: { .ok("\($0.order)", Self.lenient) }) { (other) async throws in
            let elsewhere = other.url("/b").absoluteString
            try await withCachedScenario(
                configure: { $0.httpAdditionalHeaders = ["Cookie": "mine=1"] },
                reply: { _ in .redirect(302, to: elsewhere) }
            ) { (server, session, _) async throws in
                for _ in 0..<2 { _ = try await session.text(server.url("/a")) }
                let asked = try await other.waitForRequests(2)
                #expect(asked.map { $0.header("Cookie") } == [nil, nil])
                #expect(server.requests.map { $0.header("Cookie") } == ["mine=1", "mine=1"])
            }
        }
    }

    @Test func `a failed background revalidation is not reported, and is attempted again`() async throws {
        try await withCachedScenario(
            reply: { request in
                guard request.order > 0 else { return .ok("old", Self.lenient) }
                return [.nonsense, .close]
            }
        ) { (server, session, _) async throws in
            for _ in 0..<3 { #expect(try await session.text(server.url()) == "old") }
            // A failed revalidation does not prevent the next one.
            while server.requests.count < 3 {
                #expect(try await session.text(server.url()) == "old")
                await Task.yield()
            }
        }
    }

    @Test func `a delegate that decides about trust is asked, and the task waits for the server`() async throws {
        let certificates = try TestCertificates.shared.get()
        let judge = Judge.trusting
        try await withCachedScenario(
            identity: certificates.valid, delegate: SessionJudge(judge), configure: { $0.tlsTrustRoots = [certificates.root] },
            reply: { $0.order == 0 ? ScriptedReply.ok("old", Self.lenient).then(.close) : .ok("new", Fields.fresh) }
        ) { (server, session, _) async throws in
            #expect(try await session.text(server.url()) == "old")
            try await server.waitForClose(0)
            #expect(try await session.text(server.url()) == "new")
            #expect(judge.all.count == 2)
        }
    }

    @Test(.over(.http1)) func `a background revalidation does not follow redirects to another server`() async throws {
        let certificates = try TestCertificates.shared.get()
        let judge = Judge.silent
        try await withScriptedServer(identity: certificates.valid, reply: { _ in .ok("elsewhere") }) { (other) async throws in
            let elsewhere = other.url().absoluteString
            try await withCachedScenario(
                delegate: SessionJudge(judge), configure: { $0.tlsTrustRoots = [certificates.root] },
                reply: { $0.order == 0 ? .ok("old", Self.lenient) : .redirect(302, to: elsewhere) }
            ) { (server, session, _) async throws in
                // The third request shows that the first background revalidation has ended.
                while server.requests.count < 3 {
                    #expect(try await session.text(server.url()) == "old")
                    await Task.yield()
                }
                #expect(other.connectionCount == 0)
                #expect(judge.all.isEmpty)
            }
        }
    }

    @Test(arguments: [
        "max-age=60, stale-while-revalidate=10", "max-age=60, stale-while-revalidate=600, must-revalidate",
        "no-cache, stale-while-revalidate=600",
    ])
    func `a load waits for the server if the stored response must not be served stale`(field: String) async throws {
        try await withCachedScenario(
            reply: { .ok("\($0.order)", [("Cache-Control", field), ("Age", "100"), ("ETag", "\"v\"")]) }
        ) { (server, session, _) async throws in
            #expect(try await session.text(server.url()) == "0")
            #expect(try await session.text(server.url()) == "1")
        }
    }

    // MARK: stale-if-error (RFC 5861, section 4)

    private static let staleIfError = [
        ("Cache-Control", "max-age=60, stale-if-error=600"), ("Age", "100"), ("ETag", "\"v\""),
    ]

    @Test(arguments: [500, 502, 503, 504])
    func `a response with stale-if-error replaces a server error`(status: Int) async throws {
        try await withCachedScenario(
            reply: { $0.order == 0 ? .ok("old", Self.staleIfError) : .status(status, body: "error") }
        ) { (server, session, _) async throws in
            #expect(try await session.text(server.url()) == "old")
            let (text, response) = try await session.text(URLRequest(server.url()))
            #expect(text == "old" && response.statusCode == 200)
            #expect(server.requests.count == 2)
        }
    }

    @Test(arguments: [false, true])
    func `a response with stale-if-error is served if the connection is refused`(isForgiving: Bool) async throws {
        let fields = isForgiving ? Self.staleIfError : Fields.stale
        try await withCachedScenario(reply: { _ in .ok("old", fields).then(.close) }) { (server, session, _) async throws in
            #expect(try await session.text(server.url()) == "old")
            await server.stopListening()
            try await server.waitForAllClosed()
            if isForgiving {
                #expect(try await session.text(server.url()) == "old")
            } else {
                await expectFailure(.cannotConnectToHost) { try await session.data(from: server.url()) }
            }
        }
    }

    @Test(arguments: [
        ("max-age=60", 503, false), ("max-age=60, stale-if-error=10", 503, false),
        ("max-age=60, stale-if-error=600, must-revalidate", 503, false), ("max-age=60, stale-if-error=600", 404, false),
        ("max-age=60, stale-if-error=600", 503, true),
    ])
    func `a server error is delivered if no stale response may replace it`(
        field: String, status: Int, isHidden: Bool
    ) async throws {
        try await withCachedScenario(
            reply: { request in
                request.order == 0
                    ? .ok("old", [("Cache-Control", field), ("Age", "100"), ("ETag", "\"v\"")])
                    : .status(status, body: "error")
            }
        ) { (server, session, _) async throws in
            #expect(try await session.text(server.url()) == "old")
            #expect(try await session.text(URLRequest(server.url())).response.statusCode == (isHidden ? 200 : status))
        }
    }
}
