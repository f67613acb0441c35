// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Forwarding proxies that fall silent.
///
/// Runs in its own process, whose clock the tests advance.
@Suite(.timeLimit(.minutes(5))) struct SilentForwarderProcessTests {
    @Test func `a silent proxy is bypassed if there is another way`() async throws {
        let library = try PreloadedLibrary(source: TestClock.source)
        try await SeparateProcess.run(
            "SilentForwarderTests", environment: library.environment.merging(["NSAllowsArbitraryLoads": "YES"]) { $1 })
    }
}

/// Forwarding proxies, used for `localhost` only.
@Suite(.enabled(if: SeparateProcess.isCurrentSuite("SilentForwarderTests")), .timeLimit(.minutes(3))) struct SilentForwarderTests
{
    /// More than the socket buffers hold.
    private static let large = Data(repeating: 7, count: 48_000_000)

    private struct Setup {
        let session: URLSession
        let server, first, second: ScriptedServer

        func url(_ path: String = "/a") -> URL { server.url(path, host: "localhost") }

        /// Loads twice from the server, so that all due events have been processed.
        func settle() async throws {
            for _ in 0..<2 { #expect(try await session.text(server.url("/beside")) == "direct") }
        }
    }

    private func withProxies(
        hasSecond: Bool = true, delegate: (any URLSessionDelegate)? = nil,
        early: @escaping @Sendable (RecordedRequest) -> ScriptedReply? = { _ in nil },
        first: @escaping @Sendable (RecordedRequest) -> ScriptedReply, test: (Setup) async throws -> Void
    ) async throws {
        try await withScriptedServer(reply: { _ in .ok("direct") }) { (server) async throws in
            try await withScriptedServer(early: early, reply: first) { (one) async throws in
                try await withScriptedServer(reply: { .ok("second \($0.method) \($0.bodyText.count)") }) { (two) async throws in
                    let ways = "PROXY 127.0.0.1:\(one.port)" + (hasSecond ? "; PROXY 127.0.0.1:\(two.port)" : "")
                    try await withSession(delegate: delegate) {
                        $0.timeoutIntervalForRequest = 60
                        $0.connectionProxyDictionary = [
                            "ProxyAutoConfigEnable": 1,
                            "ProxyAutoConfigJavaScript":
                                "function FindProxyForURL(u, h) { return h === 'localhost' ? '\(ways)' : 'DIRECT' }",
                        ]
                    } test: { session in
                        try await test(Setup(session: session, server: server, first: one, second: two))
                    }
                }
            }
        }
    }

    @Test(arguments: ["GET", "HEAD", "PUT", "DELETE"])
    func `an idempotent request moves to the next proxy, and later ones go there at once`(method: String) async throws {
        try await withProxies(first: { _ in [.stall] }) { setup in
            let body = method == "PUT" ? Data("body".utf8) : nil
            let request = URLRequest(setup.url(), method: method, body: body)
            async let text = setup.session.text(request).text
            _ = try await setup.first.request(0)
            try await TestClock.leap(9)
            try await setup.settle()
            #expect(setup.second.connectionCount == 0)
            try await TestClock.leap(2)
            #expect(try await text == (method == "HEAD" ? "" : "second \(method) \(body?.count ?? 0)"))
            #expect(try await setup.session.text(setup.url("/b")) == "second GET 0")
            #expect(setup.first.requests.count == 1)
            try await setup.first.waitForAllClosed()
        }
    }

    enum Waiting: CaseIterable { case post, stream, informational, onlyWay, suspended }

    @Test(arguments: Waiting.allCases)
    func `a load that cannot move to another proxy waits for the silent one`(waiting: Waiting) async throws {
        let answer = ScriptedReply.ok("first").effects
        let early: [SocketEffect] = waiting == .informational ? [.write("HTTP/1.1 103 Early Hints\r\n\r\n")] : []
        try await withProxies(
            hasSecond: waiting != .onlyWay, first: { _ in ScriptedReply(early + [.gate("answer")] + answer) }
        ) { setup in
            var request = URLRequest(setup.url())
            switch waiting {
            case .post: request = URLRequest(setup.url(), method: "POST", body: Data("body".utf8))
            case .stream:
                request.httpMethod = "PUT"
                request.httpBodyStream = InputStream(data: Data("body".utf8))
            case .informational, .onlyWay, .suspended: break
            }
            let texts = Delivered<String>()
            let task = setup.session.dataTask(with: request) { data, _, error in
                texts(data.map { String(decoding: $0, as: UTF8.self) } ?? "\(String(describing: error))")
            }
            task.resume()
            try await setup.first.reached("answer")
            if waiting == .suspended { task.suspend() }
            try await setup.settle()
            try await TestClock.leap(30)
            try await setup.settle()
            task.resume()
            try await setup.settle()
            setup.first.open("answer")
            #expect(try await texts.value == "first")
            #expect(setup.second.connectionCount == 0)
        }
    }

    @Test func `a proxy that serves other requests gets more time, and stays first if only one request leaves it`() async throws {
        let slow = ScriptedReply([.gate("answer")])
        try await withProxies(first: { $0.target.hasSuffix("/slow") ? slow : .ok("other") }) { setup in
            async let text = setup.session.text(setup.url("/slow"))
            try await setup.first.reached("answer")
            for _ in 0..<3 {
                try await TestClock.leap(8)
                #expect(try await setup.session.text(setup.url("/b")) == "other")
            }
            #expect(setup.second.connectionCount == 0)
            try await TestClock.leap(11)
            #expect(try await text == "second GET 0")
            #expect(try await setup.session.text(setup.url("/c")) == "other")
        }
    }

    @Test func `a proxy is not silent while a body is being sent`() async throws {
        try await withProxies(
            early: {
                guard $0.method == "PUT" else { return nil }
                let answer = ScriptedReply.ok("first").effects
                return ScriptedReply([.stopReading, .gate("begin"), .startReading, .awaitRequestEnd, .gate("answer")] + answer)
            }, first: { _ in [.stall] }
        ) { setup in
            let request = URLRequest(setup.url(), method: "PUT")
            async let text = setup.session.upload(for: request, from: Self.large).0
            try await setup.first.reached("begin")
            try await TestClock.leap(6)
            try await setup.settle()
            setup.first.open("begin")
            try await setup.first.reached("answer")
            try await TestClock.leap(6)
            try await setup.settle()
            setup.first.open("answer")
            #expect(String(decoding: try await text, as: UTF8.self) == "first")
            #expect(setup.second.connectionCount == 0)
        }
    }

    @Test func `a body that the proxy does not read is sent to the next proxy`() async throws {
        try await withProxies(
            early: { $0.method == "PUT" ? [.stopReading, .reach("stopped"), .stall] : nil }, first: { _ in [.stall] }
        ) {
            setup in
            let request = URLRequest(setup.url(), method: "PUT")
            async let text = setup.session.upload(for: request, from: Self.large).0
            try await setup.first.reached("stopped")
            // The first step exceeds the limit for silence; in the others, the proxy still reads nothing.
            for seconds in [11, 3, 3] where setup.second.requests.isEmpty {
                try await setup.settle()
                try await TestClock.leap(seconds)
                try await setup.settle()
            }
            #expect(String(decoding: try await text, as: UTF8.self) == "second PUT \(Self.large.count)")
        }
    }
}
