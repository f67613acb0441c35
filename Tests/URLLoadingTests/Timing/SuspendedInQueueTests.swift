// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// A task that is suspended while it waits for a connection sends nothing, and blocks no other task.
@Suite(.timeLimit(.minutes(1)))
struct SuspendedInQueueTests {
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    enum Kind: CaseIterable { case data, download }

    /// Records how tasks end.
    private struct Ends {
        private let ends = Delivered<(path: String, code: URLError.Code?)>()

        func task(_ url: URL, _ kind: Kind = .data, timeout: Double = 20, in session: URLSession) -> URLSessionTask {
            let end: @Sendable ((any Error)?) -> Void = { [ends] in ends((url.path, ($0 as? URLError)?.code)) }
            var request = URLRequest(url: url)
            request.timeoutInterval = timeout
            return switch kind {
            case .data: session.dataTask(with: request) { end($2) }
            case .download: session.downloadTask(with: request) { end($2) }
            }
        }

        func count(reaches count: Int) async throws { try await ends.count(reaches: count) }

        var paths: [String] { ends.all.map(\.path) }
        var codes: [String: URLError.Code] {
            ends.all.reduce(into: [:]) { codes, end in codes[end.path] = end.code }
        }
    }

    /// The response for `/a` waits for its gate.
    private static func reply(_ request: RecordedRequest) -> ScriptedReply {
        request.path == "/a" ? .ok("a").after(.gate("a")) : .ok(request.path)
    }

    /// Waits until the session has performed all earlier calls, which it does in order.
    private func settle(_ session: URLSession) async throws {
        _ = try await session.data(from: #require(URL(string: "data:,settled")))
    }

    private static func oneConnection(_ configuration: URLSessionConfiguration) {
        configuration.httpMaximumConnectionsPerHost = 1
    }

    @Test(arguments: Kind.allCases)
    func `a suspended task in the queue is skipped, and served once it is resumed`(kind: Kind) async throws {
        try await withScenario(configure: Self.oneConnection, reply: Self.reply) { (server, session) async throws in
            let ends = Ends()
            ends.task(server.url("/a"), in: session).resume()
            try await server.reached("a")
            let suspended = ends.task(server.url("/b"), kind, in: session)
            suspended.resume()
            suspended.suspend()
            ends.task(server.url("/c"), kind, in: session).resume()
            try await settle(session)
            server.open("a")
            try await ends.count(reaches: 2)
            // If the suspended task had been sent, its request would precede the third one's.
            #expect(server.requests.map(\.path) == ["/a", "/c"])
            #expect(suspended.state == .suspended)
            suspended.resume()
            try await ends.count(reaches: 3)
            #expect(ends.paths == ["/a", "/c", "/b"] && ends.codes.isEmpty)
            #expect(server.requests.map(\.path) == ["/a", "/c", "/b"])
            #expect(server.connectionCount == 1)
        }
    }

    @Test func `a task that is suspended and resumed is queued again, behind tasks that came meanwhile`() async throws {
        try await withScenario(configure: Self.oneConnection, reply: Self.reply) { (server, session) async throws in
            let ends = Ends()
            ends.task(server.url("/a"), in: session).resume()
            try await server.reached("a")
            let suspended = ends.task(server.url("/b"), in: session)
            suspended.resume()
            for _ in 0..<3 {
                suspended.suspend()
                suspended.suspend()
                suspended.resume()
            }
            ends.task(server.url("/c"), in: session).resume()
            // Three of the six suspensions remain.
            for _ in 0..<3 { suspended.resume() }
            try await settle(session)
            server.open("a")
            try await ends.count(reaches: 3)
            #expect(server.requests.map(\.path) == ["/a", "/c", "/b"])
        }
    }

    /// There are so many tasks that the connection becomes free long before the last task is cancelled.
    @Test func `queued tasks send nothing when the session is invalidated`() async throws {
        let count = 5_000
        try await withScenario(configure: Self.oneConnection, reply: Self.reply) { (server, session) async throws in
            let ends = Ends()
            ends.task(server.url("/a"), in: session).resume()
            try await server.reached("a")
            for number in 0..<count { ends.task(server.url("/\(number)"), in: session).resume() }
            try await settle(session)
            session.invalidateAndCancel()
            try await ends.count(reaches: count + 1)
            #expect(Set(ends.codes.values) == [.cancelled] && ends.codes.count == count + 1)
            #expect(server.requests.map(\.path) == ["/a"])
        }
    }

    /// The suspension and the end of the previous response fall in one turn of the session's loop.
    @Test func `a task that is suspended just as it gets the connection yields it`() async throws {
        for _ in 0..<20 {
            try await withScenario(configure: Self.oneConnection, reply: Self.reply) { (server, session) async throws in
                let ends = Ends()
                ends.task(server.url("/a"), in: session).resume()
                try await server.reached("a")
                let suspended = ends.task(server.url("/b"), in: session)
                suspended.resume()
                ends.task(server.url("/c"), in: session).resume()
                try await settle(session)
                try await BlockedLoops.during {
                    server.open("a")
                    try await server.waitForBytesWritten(1, on: 0)
                    suspended.suspend()
                }
                try await ends.count(reaches: 2)
                #expect(server.requests.map(\.path) == ["/a", "/c"])
                suspended.resume()
                try await ends.count(reaches: 3)
                #expect(server.requests.count == 3 && ends.codes.isEmpty)
            }
        }
    }

    @Test func `cancelling a suspended task in the queue ends it, and others are served`() async throws {
        try await withScenario(configure: Self.oneConnection, reply: Self.reply) { (server, session) async throws in
            let ends = Ends()
            ends.task(server.url("/a"), in: session).resume()
            try await server.reached("a")
            let suspended = ends.task(server.url("/b"), in: session)
            suspended.resume()
            suspended.suspend()
            ends.task(server.url("/c"), in: session).resume()
            suspended.cancel()
            try await ends.count(reaches: 1)
            try await settle(session)
            server.open("a")
            try await ends.count(reaches: 3)
            #expect(ends.codes == ["/b": .cancelled])
            #expect(server.requests.map(\.path) == ["/a", "/c"])
        }
    }

    /// Uses real timers: only the outcome is checked.
    @Test func `the request timeout of a task suspended in the queue starts when it is sent`() async throws {
        try await withGrowingTimes { scale in
            var (early, codes): ([String], [String: URLError.Code]) = ([], [:])
            try await withScenario(
                configure: Self.oneConnection, reply: { $0.path == "/b" ? [.stall] : Self.reply($0) }
            ) { (server, session) async throws in
                let ends = Ends()
                ends.task(server.url("/a"), in: session).resume()
                try await server.reached("a")
                let suspended = ends.task(server.url("/b"), timeout: 0.3 * scale, in: session)
                suspended.resume()
                suspended.suspend()
                // This takes twice as long as the suspended task's timeout.
                try await withSession {
                    $0.timeoutIntervalForRequest = 0.6 * scale
                } test: { (other) async throws in
                    await expectFailure(.timedOut) { try await other.data(from: server.url("/b")) }
                }
                early = ends.paths
                try await settle(session)
                server.open("a")
                try await ends.count(reaches: 1)
                suspended.resume()
                try await ends.count(reaches: 2)
                codes = ends.codes
            }
            return early.isEmpty && codes == ["/b": .timedOut]
        }
    }

    // MARK: HTTP/2

    @Test(arguments: HTTP2Start.allCases)
    func `a stream that a suspended task waited for goes to another task`(way: HTTP2Start) async throws {
        try await withHTTP2Scenario(
            way, greeting: { _ in [.settings([.maxConcurrentStreams: 1])] },
            reply: { $0.path == "/a" ? [.gate("a")] + .ok("a") : .ok($0.path) }
        ) { (server, session) async throws in
            _ = try await session.text(server.url("/known"))
            let ends = Ends()
            ends.task(server.url("/a"), in: session).resume()
            _ = try await server.head(1)
            let suspended = ends.task(server.url("/b"), in: session)
            suspended.resume()
            suspended.suspend()
            ends.task(server.url("/c"), in: session).resume()
            try await settle(session)
            server.open("a")
            try await ends.count(reaches: 2)
            #expect(server.requests.map(\.path) == ["/known", "/a", "/c"])
            suspended.resume()
            try await ends.count(reaches: 3)
            #expect(server.requests.map(\.path) == ["/known", "/a", "/c", "/b"])
            #expect(server.connectionCount == 1 && ends.codes.isEmpty)
        }
    }

    // MARK: Connections that are being made

    /// Runs a test with a proxy that completes its tunnel when the test allows it.
    private func withSlowTunnel(
        test: (ScriptedServer, TunnelProxy, _ asked: Delivered<Void>, _ answer: DispatchSemaphore, URLSession) async throws ->
            Void
    ) async throws {
        let asked = Delivered<Void>()
        let mayAnswer = DispatchSemaphore(value: 0)
        try await withScriptedServer(identity: certificates.valid, reply: { .ok($0.path) }) { (server) async throws in
            try await withTunnelProxy({ [port = server.port] _ in
                asked(())
                mayAnswer.wait()
                return .tunnel(to: port)
            }) { (proxy) async throws in
                defer { for _ in 0..<9 { mayAnswer.signal() } }
                try await withSession {
                    $0.tlsTrustRoots = [certificates.root]
                    $0.connectionProxyDictionary = proxyDictionary(https: proxy.port)
                    $0.httpMaximumConnectionsPerHost = 1
                } test: { (session) async throws in
                    try await test(server, proxy, asked, mayAnswer, session)
                }
            }
        }
    }

    @Test func `a connection begun for a suspended task goes to another task`() async throws {
        try await withSlowTunnel { (server, proxy, asked, mayAnswer, session) async throws in
            let ends = Ends()
            let suspended = ends.task(server.url("/b"), in: session)
            suspended.resume()
            try await asked.count(reaches: 1)
            ends.task(server.url("/c"), in: session).resume()
            suspended.suspend()
            try await settle(session)
            mayAnswer.signal()
            try await ends.count(reaches: 1)
            #expect(server.requests.map(\.path) == ["/c"])
            suspended.resume()
            try await ends.count(reaches: 2)
            #expect(server.requests.map(\.path) == ["/c", "/b"] && ends.codes.isEmpty)
            #expect(proxy.demands.count == 1)
        }
    }

    @Test func `a connection begun for a suspended task is abandoned if no other task needs it`() async throws {
        try await withSlowTunnel { (server, proxy, asked, mayAnswer, session) async throws in
            let ends = Ends()
            let suspended = ends.task(server.url("/b"), in: session)
            suspended.resume()
            try await asked.count(reaches: 1)
            suspended.suspend()
            try await settle(session)
            mayAnswer.signal()
            try await proxy.waitForAllClosed()
            #expect(server.requests.isEmpty && ends.paths.isEmpty)
            mayAnswer.signal()
            suspended.resume()
            try await ends.count(reaches: 1)
            #expect(server.requests.map(\.path) == ["/b"] && ends.codes.isEmpty)
            #expect(proxy.demands.count == 2)
        }
    }

    // MARK: Questions to the delegate

    @Test func `a task suspended while its delegate checks the server is not asked again`() async throws {
        let judge = Judge.silent
        try await withScenario(
            identity: certificates.valid, delegate: SessionJudge(judge), configure: Self.oneConnection, reply: Self.reply
        ) { (server, session) async throws in
            let ends = Ends()
            let suspended = ends.task(server.url("/b"), in: session)
            suspended.resume()
            let question = try await judge.question(0)
            suspended.suspend()
            ends.task(server.url("/c"), in: session).resume()
            try await settle(session)
            question.trust()
            try await ends.count(reaches: 1)
            #expect(server.requests.map(\.path) == ["/c"])
            suspended.resume()
            try await ends.count(reaches: 2)
            #expect(server.requests.map(\.path) == ["/c", "/b"] && ends.codes.isEmpty)
            #expect(judge.all.count == 1 && server.connectionCount == 1)
        }
    }

    @Test func `a delegate that suspends the task, answers and resumes it is asked once`() async throws {
        let judge = Judge.silent
        try await withScenario(
            identity: certificates.valid, delegate: SessionJudge(judge), reply: Self.reply
        ) { (server, session) async throws in
            let ends = Ends()
            let task = ends.task(server.url("/b"), in: session)
            task.resume()
            let question = try await judge.question(0)
            task.suspend()
            try await settle(session)
            question.trust()
            // The connection may be ready by now, or not.
            try await server.waitForConnections(1)
            task.resume()
            try await ends.count(reaches: 1)
            #expect(server.requests.map(\.path) == ["/b"] && ends.codes.isEmpty)
            #expect(judge.all.count == 1 && server.connectionCount == 1)
        }
    }

    @Test func `a connection that becomes free for a task suspended in a challenge goes to the next task`() async throws {
        let asked = Watched(0)
        let judge = Judge { question in
            let number = asked.change { count in
                count += 1
                return count
            }
            if number != 2 { question.trust() }
        }
        try await withScenario(
            identity: certificates.valid, delegate: SessionJudge(judge),
            configure: { $0.httpMaximumConnectionsPerHost = 2 }, reply: Self.reply
        ) { (server, session) async throws in
            let ends = Ends()
            ends.task(server.url("/a"), in: session).resume()
            try await server.reached("a")
            let suspended = ends.task(server.url("/b"), in: session)
            suspended.resume()
            _ = try await judge.question(1)
            suspended.suspend()
            ends.task(server.url("/c"), in: session).resume()
            try await settle(session)
            server.open("a")
            try await ends.count(reaches: 2)
            #expect(server.requests.map(\.path) == ["/a", "/c"])
            suspended.resume()
            try await ends.count(reaches: 3)
            #expect(server.requests.map(\.path) == ["/a", "/c", "/b"] && ends.codes.isEmpty)
        }
    }

    @Test func `a suspended task leaves the queue, even if another task got the connection that it answered for`() async throws {
        let judge = Judge.silent
        try await withScenario(
            identity: certificates.valid, delegate: SessionJudge(judge), configure: Self.oneConnection, reply: Self.reply
        ) { (server, session) async throws in
            let ends = Ends()
            let suspended = ends.task(server.url("/b"), in: session)
            suspended.resume()
            let question = try await judge.question(0)
            let urgent = ends.task(server.url("/a"), in: session)
            urgent.priority = URLSessionTask.highPriority
            urgent.resume()
            try await settle(session)
            question.trust()
            try await server.reached("a")
            suspended.suspend()
            ends.task(server.url("/c"), in: session).resume()
            try await settle(session)
            suspended.resume()
            try await settle(session)
            server.open("a")
            try await ends.count(reaches: 3)
            #expect(server.requests.map(\.path) == ["/a", "/c", "/b"] && ends.codes.isEmpty)
            #expect(judge.all.count == 1)
        }
    }

    @Test func `a task suspended while the credential storage is searched keeps its connection`() async throws {
        let storage = SlowCredentials()
        let server = try await ScriptedServer.start(
            identity: certificates.valid, clientRoot: certificates.rootPEM, reply: { .ok($0.path) })
        defer { storage.mayAnswer.signal() }
        try await withSession {
            $0.tlsTrustRoots = [certificates.root]
            $0.urlCredentialStorage = storage
        } test: { (session) async throws in
            let ends = Ends()
            let task = ends.task(server.url("/b"), in: session)
            task.resume()
            try await storage.asked.count(reaches: 1)
            task.suspend()
            try await settle(session)
            storage.mayAnswer.signal()
            task.resume()
            try await ends.count(reaches: 1)
            #expect(ends.codes.isEmpty && server.requests.map(\.path) == ["/b"])
            #expect(storage.asked.all.count == 1 && server.connectionCount == 1)
        }
        try await server.close()
    }
}

/// Has no identity; completes its first lookup when the test allows that, and later lookups at once.
private final class SlowCredentials: URLCredentialStorage, @unchecked Sendable {
    // `asked` is locked; the rest is constant.
    let asked = Delivered<Void>()
    let mayAnswer = DispatchSemaphore(value: 0)

    override func getDefaultCredential(
        for space: URLProtectionSpace, task: URLSessionTask, completionHandler: @escaping @Sendable (URLCredential?) -> Void
    ) {
        guard space.authenticationMethod == NSURLAuthenticationMethodClientCertificate else { return completionHandler(nil) }
        asked(())
        DispatchQueue.global().async { [mayAnswer] in
            mayAnswer.wait()
            mayAnswer.signal()
            completionHandler(nil)
        }
    }
}
