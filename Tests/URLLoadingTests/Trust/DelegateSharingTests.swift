// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Tasks with different delegates share a connection for which the roots vouch; each delegate decides for its own task.
@Suite(.timeLimit(.minutes(1)))
struct DelegateSharingTests {
    private let certificates: TestCertificates

    init() throws { certificates = try TestCertificates.shared.get() }

    private func withServer(
        delegate: (any URLSessionDelegate)? = nil, limit: Int = 6, test: (ScriptedServer, URLSession) async throws -> Void
    ) async throws {
        try await withScenario(
            identity: certificates.valid, delegate: delegate,
            configure: {
                $0.tlsTrustRoots = [certificates.root]
                $0.httpMaximumConnectionsPerHost = limit
            }, reply: { .ok($0.path) }, test: test
        )
    }

    /// A delegate that leaves trust to the roots, or trusts everybody, and keeps the metrics.
    private final class Listener: NSObject, URLSessionTaskDelegate, Sendable {
        let judge: Judge
        let isReused = Delivered<Bool>()

        init(_ judge: Judge) { self.judge = judge }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
            completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) {
            judge.ask(.task, task, challenge, completionHandler)
        }

        func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
            isReused(metrics.transactionMetrics.last?.isReusedConnection ?? false)
        }
    }

    @Test func `tasks with delegates of their own share a connection, and each delegate is asked once`() async throws {
        try await withServer { (server, session) async throws in
            let judges: [Judge] = [.saying(.performDefaultHandling), .trusting, .saying(.performDefaultHandling)]
            for (number, judge) in judges.enumerated() {
                let listener = Listener(judge)
                for path in ["/a", "/b"] {
                    let (data, _) = try await session.data(from: server.url(path), delegate: listener)
                    #expect(String(decoding: data, as: UTF8.self) == path)
                }
                try await listener.isReused.count(reaches: 2)
                #expect(listener.isReused.all == [number > 0, true])
                #expect(judge.kinds == [NSURLAuthenticationMethodServerTrust])
                #expect(judge.all.first?.chain.starts(with: certificates.valid.chain) == true)
            }
            #expect(try await session.text(server.url("/nobody")) == "/nobody")
            #expect(server.connectionCount == 1)
        }
    }

    @Test func `the delegate of the session is asked about a connection that a task's own delegate accepted`() async throws {
        let judge = Judge.saying(.rejectProtectionSpace)
        try await withServer(delegate: TaskJudge(judge)) { (server, session) async throws in
            // After this, the session knows that its delegate has no session-level challenge method.
            await expectFailure(.serverCertificateUntrusted) { try await session.data(from: server.url("/first")) }
            _ = try await session.data(from: server.url("/own"), delegate: TaskJudge(.trusting))
            await expectFailure(.serverCertificateUntrusted) { try await session.data(from: server.url("/shared")) }
            _ = try await session.data(from: server.url("/other"), delegate: TaskJudge(.trusting))
            #expect(judge.all.count == 2)
            #expect(server.requests.map(\.path) == ["/own", "/other"])
            #expect(Set(server.requests.map(\.connection)).count == 1)
        }
    }

    @Test func `a refused connection fails only the task of the delegate that refuses it`() async throws {
        try await withServer(limit: 1) { (server, session) async throws in
            _ = try await session.data(from: server.url("/1"), delegate: TaskJudge(.trusting))
            let error = await expectFailure(.serverCertificateUntrusted) {
                try await session.data(from: server.url("/2"), delegate: TaskJudge(.saying(.rejectProtectionSpace)))
            }
            #expect((error?.failureURLPeerTrust.map(SecTrustGetCertificateCount) ?? 0) > 0)
            await expectFailure(.cancelled) {
                try await session.data(from: server.url("/3"), delegate: TaskJudge(.saying(.cancelAuthenticationChallenge)))
            }
            _ = try await session.data(from: server.url("/4"), delegate: TaskJudge(.trusting))
            #expect(server.requests.map(\.path) == ["/1", "/4"])
            #expect(server.connectionCount == 1)
        }
    }

    @Test func `a delegate that does not answer, or whose task is cancelled, holds up no other task`() async throws {
        let silent = Judge.silent
        try await withServer(limit: 1) { (server, session) async throws in
            let outcome = Delivered<Int?>()
            let tasks = ["/silent", "/cancelled"].map { path in
                let task = session.dataTask(with: server.url(path)) { outcome(($2 as? URLError)?.code.rawValue) }
                task.delegate = TaskJudge(silent)
                return task
            }
            for task in tasks { task.resume() }
            _ = try await silent.question(1)
            // The only connection is free.
            for _ in 0..<2 { _ = try await session.data(from: server.url("/other"), delegate: TaskJudge(.trusting)) }
            tasks[1].cancel()
            try await outcome.count(reaches: 1)
            for question in silent.all { question.trust() }
            try await outcome.count(reaches: 2)
            #expect(outcome.all == [URLError.cancelled.rawValue, nil])
            #expect(server.requests.map(\.path) == ["/other", "/other", "/silent"])
            #expect(server.connectionCount == 1)
        }
    }

    @Test func `the limit of connections counts the tasks of all delegates`() async throws {
        try await withServer(limit: 2) { (server, session) async throws in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<24 {
                    group.addTask {
                        let judge: Judge = number % 2 == 0 ? .trusting : .saying(.performDefaultHandling)
                        _ = try await session.data(from: server.url("/\(number)"), delegate: TaskJudge(judge))
                    }
                }
                try await group.waitForAll()
            }
            #expect(server.requests.count == 24)
            // A connection that no task waits for when it is judged is closed without a request.
            #expect(Set(server.requests.map(\.connection)).count <= 2)
        }
    }

    @Test func `tasks of one delegate that wait for the same connection ask it once`() async throws {
        let judge = Judge.silent
        try await withHTTP2Scenario(reply: { _ in [.head(ends: true)] }) { (server, session) async throws in
            let own = TaskJudge(judge)
            let url = server.url("/")
            async let first = session.data(from: url, delegate: own)
            async let second = session.data(from: url, delegate: own)
            async let other = session.data(from: url, delegate: TaskJudge(.trusting))
            _ = try await (judge.question(0), other)
            for question in judge.all { question.trust() }
            _ = try await (first, second)
            _ = try await session.data(from: url, delegate: own)
            #expect(judge.all.count == 1)
            #expect(server.connectionCount == 1)
        }
    }

    @Test func `a delegate is asked about the server before it presents a client certificate`() async throws {
        let identity = try SecIdentity(pem: Data((certificates.client.chainPEM + certificates.client.keyPEM).utf8))
        let refusing = Judge.saying(.rejectProtectionSpace)
        let presenting = Judge.showing(identity)
        try await withOpenSSL(certificates.valid, root: certificates.rootPEM, ["-verify", "3"]) { (server) async throws in
            try await withSession {
                $0.tlsTrustRoots = [certificates.root]
            } test: { (session) async throws in
                let url = try server.url()
                await expectFailure(.serverCertificateUntrusted) {
                    try await session.data(from: url, delegate: TaskJudge(refusing))
                }
                let text = { String(decoding: try await session.data(from: url, delegate: $0).0, as: UTF8.self) }
                #expect(try await text(TaskJudge(presenting)).contains("Test Client"))
                #expect(try await text(TaskJudge(.trusting)).contains("no client certificate available"))
                #expect(refusing.kinds == [NSURLAuthenticationMethodServerTrust])
                #expect(presenting.kinds == [NSURLAuthenticationMethodServerTrust, NSURLAuthenticationMethodClientCertificate])
            }
        }
    }

    /// Leaves the first question to the test, and refuses the server from then on.
    private func laterRefusing() -> Judge {
        let asked = Watched(0)
        return Judge { question in
            let isFirst = asked.change { count in
                count += 1
                return count == 1
            }
            if !isFirst { question.answer(.rejectProtectionSpace, nil) }
        }
    }

    @Test func `a delegate that refuses while its task is cancelled has not accepted the server`() async throws {
        let (judge, other) = (laterRefusing(), laterRefusing())
        try await withServer { (server, session) async throws in
            _ = try await session.data(from: server.url("/first"), delegate: TaskJudge(.trusting))
            let outcome = Delivered<Bool>()
            let own = TaskJudge(judge)
            let tasks = [TaskJudge(other), own].map { delegate in
                let task = session.dataTask(with: server.url("/refused")) { outcome($2 == nil) }
                task.delegate = delegate
                task.resume()
                return task
            }
            let (otherQuestion, question) = (try await other.question(0), try await judge.question(0))
            try await BlockedLoops.during {
                // The loop then has work to do before it cancels the task, and learns of both before the task continues.
                otherQuestion.answer(.rejectProtectionSpace, nil)
                tasks[1].cancel()
                question.answer(.rejectProtectionSpace, nil)
            }
            try await outcome.count(reaches: 2)
            await expectFailure(.serverCertificateUntrusted) {
                try await session.data(from: server.url("/refused"), delegate: own)
            }
            #expect(outcome.all == [false, false])
            #expect(judge.all.count == 2)
            #expect(server.requests.map(\.path) == ["/first"])
        }
    }

    /// Starts tasks of one delegate, all of which wait for its first answer.
    private func start(
        _ count: Int, _ judge: Judge, _ outcome: Delivered<Int?>, _ server: ScriptedServer, _ session: URLSession
    ) async throws -> [URLSessionTask] {
        let own = TaskJudge(judge)
        // There is a connection that the delegate has not accepted.
        _ = try await session.data(from: server.url("/first"), delegate: TaskJudge(.trusting))
        let tasks = (0..<count).map { number in
            let task = session.dataTask(with: server.url("/\(number)")) { outcome(($2 as? URLError)?.code.rawValue) }
            task.delegate = own
            return task
        }
        for task in tasks { task.resume() }
        // Tasks begin in the order in which they are resumed.
        _ = try await session.data(from: server.url("/last"), delegate: TaskJudge(.trusting))
        return tasks
    }

    @Test func `a refusal is the answer for all tasks of the delegate that wait for it`() async throws {
        let judge = laterRefusing()
        try await withServer(limit: 1) { (server, session) async throws in
            let outcome = Delivered<Int?>()
            _ = try await start(2_000, judge, outcome, server, session)
            try await judge.question(0).answer(.rejectProtectionSpace, nil)
            try await outcome.count(reaches: 2_000)
            #expect(outcome.all.allSatisfy { $0 == URLError.serverCertificateUntrusted.rawValue })
            #expect(judge.all.count == 1)
            #expect(server.requests.map(\.path) == ["/first", "/last"])
            #expect(server.connectionCount == 1)
        }
    }

    @Test func `if the task that asked is cancelled, the next one that still waits asks`() async throws {
        let judge = Judge.silent
        try await withServer(limit: 1) { (server, session) async throws in
            let outcome = Delivered<Int?>()
            let tasks = try await start(8, judge, outcome, server, session)
            _ = try await judge.question(0)
            for number in [2, 1, 0] { tasks[number].cancel() }
            try await outcome.count(reaches: 3)
            let question = try await judge.question(1)
            #expect(question.task == tasks[3].taskIdentifier)
            question.trust()
            try await outcome.count(reaches: 8)
            #expect(outcome.all.filter { $0 == URLError.cancelled.rawValue }.count == 3)
            #expect(outcome.all.filter { $0 == nil }.count == 5)
            #expect(judge.all.count == 2)
        }
    }

    @Test func `a task that waits for an answer continues if its delegate accepts the same server elsewhere`() async throws {
        let judge = Judge.silent
        try await withScenario(
            identity: certificates.valid, configure: { $0.tlsTrustRoots = [certificates.root] },
            reply: { request in
                let wait: [SocketEffect] = request.path.hasPrefix("/busy") ? [.gate(request.path)] : []
                return ScriptedReply(wait + ScriptedReply.ok(request.path).effects)
            }
        ) { (server, session) async throws in
            let (own, other) = (TaskJudge(judge), TaskJudge(.trusting))
            let texts = Delivered<String>()
            func start(_ path: String, _ delegate: TaskJudge) {
                let task = session.dataTask(with: server.url(path)) { data, _, _ in
                    texts(String(decoding: data ?? Data(), as: UTF8.self))
                }
                task.delegate = delegate
                task.resume()
            }
            // Two connections.
            for path in ["/busy1", "/busy2"] { start(path, other) }
            for path in ["/busy1", "/busy2"] { try await server.reached(path) }
            for path in ["/busy1", "/busy2"] { server.open(path) }
            try await texts.count(reaches: 2)
            start("/asks", own)
            let first = try await judge.question(0)
            start("/waits", own)
            // Occupies the connection that the question is about, so that the next question is about the other one.
            start("/busy3", other)
            try await server.reached("/busy3")
            start("/asks-too", own)
            let second = try await judge.question(1)
            server.open("/busy3")
            try await texts.count(reaches: 3)
            second.trust()
            try await texts.count(reaches: 5)
            #expect(Set(texts.all.suffix(2)) == ["/waits", "/asks-too"])
            first.trust()
            try await texts.count(reaches: 6)
            #expect(judge.all.count == 2)
            #expect(server.connectionCount == 2)
        }
    }

    @Test func `a new connection that the delegate is asked about is used after the answer`() async throws {
        try await withScenario(
            identity: certificates.valid, configure: { $0.tlsTrustRoots = [certificates.root] },
            // The second request finds that the connection has ended.
            reply: { $0.order == 1 ? ScriptedReply([.close]) : .ok($0.path) }
        ) { (server, session) async throws in
            let own = TaskJudge(.trusting)
            for path in ["/1", "/2"] { _ = try await session.data(from: server.url(path), delegate: own) }
            #expect(server.requests.map(\.path) == ["/1", "/2", "/2"])
            #expect(server.connectionCount == 2)
        }
    }

    @Test func `a connection that a request's own field may authenticate serves only such requests of the same delegate`()
        async throws
    {
        for scheme in ["Negotiate", "ntlm"] {
            try await withServer { (server, session) async throws in
                func load(_ delegate: TaskJudge?, isBound: Bool) async throws -> Int {
                    var request = URLRequest(url: server.url("/"))
                    if isBound { request.setValue("\(scheme) dG9rZW4=", forHTTPHeaderField: "Authorization") }
                    _ = try await session.data(for: request, delegate: delegate)
                    return try #require(server.requests.last).connection
                }
                let (ada, bob) = (TaskJudge(.trusting), TaskJudge(.saying(.performDefaultHandling)))
                #expect(try await load(ada, isBound: true) == 0)
                #expect(try await load(bob, isBound: false) == 1)
                #expect(try await load(bob, isBound: true) == 2)
                #expect(try await load(nil, isBound: true) == 3)
                #expect(try await load(nil, isBound: false) == 1)
                #expect(try await load(ada, isBound: false) == 1)
                #expect(try await load(ada, isBound: true) == 0)
                #expect(try await load(nil, isBound: true) == 3)
            }
        }
        // The session's own field counts, too.
        try await withScenario(
            identity: certificates.valid,
            configure: {
                $0.tlsTrustRoots = [certificates.root]
                $0.httpAdditionalHeaders = ["Authorization": "NTLM dG9rZW4="]
            }, reply: { .ok($0.path) }
        ) { (server, session) async throws in
            for _ in 0..<2 { _ = try await session.data(from: server.url("/"), delegate: TaskJudge(.trusting)) }
            #expect(server.requests.map(\.connection) == [0, 1])
        }
    }
}
