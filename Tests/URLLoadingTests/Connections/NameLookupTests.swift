// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Which loads a slow name server delays, and which it does not delay.
///
/// Each suite runs in its own process, with names that resolve when the test allows it.
@Suite(.timeLimit(.minutes(3))) struct NameLookupTests {
    @Test(arguments: ["SlowNameTests", "SlowDomainTests", "ManySlowNamesTests", "WaitingNameTests", "RememberedNameTests"])
    func `slow lookups do not delay others`(suite: String) async throws {
        let library = try PreloadedLibrary(source: SlowNames.source)
        try await SeparateProcess.run(suite, environment: SlowNames.environment(library))
    }
}

/// Runs a test with a server that replies with the path of each request, and two sessions.
private func withSessions(_ test: (ScriptedServer, URLSession, URLSession) async throws -> Void) async throws {
    try await withScenario(reply: { request in .ok(request.path, [("Connection", "close")]) }) { (server, first) async throws in
        try await withSession { (second) async throws in try await test(server, first, second) }
    }
}

private func loads(_ session: URLSession, _ urls: [URL]) -> [Task<String, any Error>] {
    urls.map { url in Task { try await session.text(url) } }
}

@Suite(.enabled(if: SeparateProcess.isCurrentSuite("SlowNameTests")), .timeLimit(.minutes(1))) struct SlowNameTests {
    @Test func `a slow name is looked up once, and other names and sessions are not delayed`() async throws {
        try await withSessions { (server, first, second) async throws in
            let slow = loads(first, (0..<40).map { server.url("/\($0)", host: "slow.test") })
            #expect(SlowNames.wait(for: 1, "slow.test"))
            #expect(try await second.text(server.url("/other", host: "good.test")) == "/other")
            #expect(try await first.text(server.url("/same", host: "fine.test")) == "/same")
            let third = loads(second, [server.url("/third", host: "slow.test")])
            SlowNames.openGate()
            for (index, load) in slow.enumerated() { #expect(try await load.value == "/\(index)") }
            #expect(try await third[0].value == "/third")
            #expect(SlowNames.count("slow.test") == 1)
        }
    }
}

@Suite(.enabled(if: SeparateProcess.isCurrentSuite("SlowDomainTests")), .timeLimit(.minutes(1))) struct SlowDomainTests {
    @Test func `a thousand names of a slow domain leave threads to other names, and cancelled ones are not looked up`()
        async throws
    {
        try await withSessions { (server, first, second) async throws in
            let slow = loads(first, (0..<1_000).map { server.url("/\($0)", host: "n\($0).slow.test") })
            // The maximum number of concurrent lookups per domain.
            #expect(SlowNames.wait(for: 21, ".slow.test"))
            #expect(try await second.text(server.url("/other", host: "good.test")) == "/other")
            #expect(try await first.text(server.url("/same", host: "fine.test")) == "/same")
            #expect(SlowNames.count(".slow.test") < 64)
            for load in slow { load.cancel() }
            for load in slow { _ = try? await load.value }
            let begun = SlowNames.count(".slow.test")
            SlowNames.openGate()
            #expect(try await first.text(server.url("/after", host: "after.slow.test")) == "/after")
            #expect(SlowNames.count(".slow.test") == begun + 1)
        }
    }
}

@Suite(.enabled(if: SeparateProcess.isCurrentSuite("ManySlowNamesTests")), .timeLimit(.minutes(1))) struct ManySlowNamesTests {
    @Test func `hundreds of slow names delay neither other sessions nor a quick name, and finally resolve`() async throws {
        try await withSessions { (server, first, second) async throws in
            let slow = loads(first, (0..<300).map { server.url("/\($0)", host: "n\($0).slow\($0).test") })
            // The maximum number of concurrent lookups per session.
            #expect(SlowNames.wait(for: 32, ".test"))
            #expect(try await second.text(server.url("/other", host: "good.test")) == "/other")
            #expect(SlowNames.count(".test") < 64)
            // A slow lookup loses its turn to a lookup of the same session.
            #expect(try await first.text(server.url("/same", host: "fine.test")) == "/same")
            SlowNames.openGate()
            for (index, load) in slow.enumerated() { #expect(try await load.value == "/\(index)") }
            #expect(SlowNames.count(".test") == 302)
        }
    }
}

@Suite(.enabled(if: SeparateProcess.isCurrentSuite("WaitingNameTests")), .timeLimit(.minutes(1))) struct WaitingNameTests {
    @Test func `a queued lookup does not count toward the request timeout`() async throws {
        try await withSessions { (server, first, _) async throws in
            let late = Watched(0)
            let loads = (0..<100).map { number in
                Task {
                    var request = URLRequest(server.url("/\(number)", host: "n\(number).slow\(number).test"))
                    request.timeoutInterval = 1
                    do {
                        return try await first.text(request).text == "/\(number)"
                    } catch {
                        late.change { $0 += 1 }
                        return (error as? URLError)?.code != .timedOut
                    }
                }
            }
            // The loads whose lookups are in progress time out.
            try await late.value { $0 >= 32 ? () : nil }
            SlowNames.openGate()
            var answered = 0
            for load in loads where await load.value { answered += 1 }
            #expect(answered == 68 && late.read { $0 } == 32)
        }
    }
}

@Suite(.enabled(if: SeparateProcess.isCurrentSuite("RememberedNameTests")), .timeLimit(.minutes(1))) struct RememberedNameTests {
    private final class Metrics: NSObject, URLSessionTaskDelegate, @unchecked Sendable {
        // Sendable because `all` is set on the delegate queue before the load ends, and read afterwards.
        var all: [URLSessionTaskTransactionMetrics] = []

        func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
            all = metrics.transactionMetrics
        }
    }

    @Test func `the addresses of a name are cached until a session is reset or flushed`() async throws {
        try await withSessions { (server, first, second) async throws in
            let url = server.url("/known", host: "known.test")
            #expect(try await first.text(url) == "/known")
            let metrics = Metrics()
            #expect(try await second.data(from: url, delegate: metrics).0 == Data("/known".utf8))
            #expect(SlowNames.count("known.test") == 1)
            let transaction = try #require(metrics.all.first)
            let start = try #require(transaction.domainLookupStartDate)
            let end = try #require(transaction.domainLookupEndDate)
            let connectStart = try #require(transaction.connectStartDate)
            #expect(start <= end && end <= connectStart)
            await second.flush()
            #expect(try await first.text(url) == "/known")
            #expect(SlowNames.count("known.test") == 2)
            await first.reset()
            #expect(try await first.text(url) == "/known")
            #expect(SlowNames.count("known.test") == 3)
        }
    }
}
