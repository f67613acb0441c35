// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading
import URLLoadingTestKit

/// Sessions whose time is advanced by the test.
@Suite(.timeLimit(.minutes(1)))
struct TestClockTests {
    private let clock = TestClock()

    private func withClock(
        _ configure: (URLSessionConfiguration) -> Void = { _ in }, _ test: (URLSession) async throws -> Void
    ) async throws {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.testClock = clock
        configure(configuration)
        let session = URLSession(configuration: configuration)
        defer { session.invalidateAndCancel() }
        try await test(session)
    }

    private func expectTimeout(of load: Task<String, any Error>) async {
        await #expect { try await load.value } throws: { ($0 as? URLError)?.code == .timedOut }
    }

    @Test func `a request times out by the clock, and no sooner`() async throws {
        try await withScriptedServer(reply: { $0.path == "/stall" ? [.stall] : .ok("body") }) { (server) async throws in
            try await withClock {
                $0.timeoutIntervalForRequest = 60
            } _: { (session) async throws in
                let load = Task { try await session.text(server.url("/stall")) }
                _ = try await server.waitForRequests(1)
                await clock.advance(by: .seconds(59))
                // If the load had timed out, it would have ended before this one.
                #expect(try await session.text(server.url("/other")) == "body")
                await clock.advance(by: .seconds(1))
                await expectTimeout(of: load)
            }
        }
    }

    /// Records how tasks end.
    private final class EndDelegate: NSObject, URLSessionDataDelegate {
        let ends = Watched<[URLError.Code?]>([])

        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            ends.change { $0.append((error as? URLError)?.code) }
        }
    }

    /// With a cache on disk, the load waits for the disk before it sends its request.
    @Test(arguments: [false, true])
    func `a task that was just resumed times out, and is told so before the clock returns`(hasCache: Bool) async throws {
        try await withScriptedServer(reply: { _ in [.stall] }) { (server) async throws in
            for _ in 0..<(hasCache ? 30 : 300) {
                let folder = try TemporaryDirectory()
                try await withClock {
                    if hasCache { $0.urlCache = URLCache(memoryCapacity: 0, diskCapacity: 1 << 20, directory: folder.url) }
                } _: { (session) async throws in
                    let ends = Watched<[URLError.Code?]>([])
                    session.dataTask(with: server.url()) { _, _, error in
                        ends.change { $0.append((error as? URLError)?.code) }
                    }.resume()
                    await clock.advance(by: .seconds(60))
                    #expect(ends.read { $0 } == [.timedOut])
                }
            }
        }
    }

    /// Most of these tasks wait for a connection, so only the resource timeout ends them.
    @Test func `hundreds of tasks that were just resumed end before the clock returns`() async throws {
        try await withScriptedServer(reply: { _ in [.stall] }) { (server) async throws in
            let configuration = URLSessionConfiguration.ephemeral
            configuration.testClock = clock
            let delegate = EndDelegate()
            let session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
            defer { session.invalidateAndCancel() }
            for _ in 0..<300 { session.dataTask(with: server.url()).resume() }
            await clock.advance(by: .seconds(604_800))
            #expect(delegate.ends.read { $0 } == Array(repeating: .timedOut, count: 300))
        }
    }

    @Test func `a load is limited by the resource timeout`() async throws {
        try await withScriptedServer(reply: { _ in [.stall] }) { (server) async throws in
            try await withClock {
                $0.timeoutIntervalForRequest = 1_000_000
                $0.timeoutIntervalForResource = 604_800
            } _: { (session) async throws in
                let load = Task { try await session.text(server.url()) }
                _ = try await server.waitForRequests(1)
                await clock.advance(by: .seconds(604_800))
                await expectTimeout(of: load)
            }
        }
    }

    /// A delegate that answers a redirect when the test tells it to.
    private final class SlowDelegate: NSObject, URLSessionTaskDelegate {
        let asked = Watched<(@Sendable () -> Void)?>(nil)

        func urlSession(
            _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
            newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
        ) {
            asked.change { $0 = { completionHandler(request) } }
        }
    }

    @Test func `the app's time for an answer does not count toward the request timeout`() async throws {
        try await withScriptedServer(reply: { request in
            request.path == "/old" ? .redirect(302, to: "/new") : .ok("body")
        }) { (server) async throws in
            try await withClock { (session) async throws in
                let delegate = SlowDelegate()
                let load = Task { try await session.data(from: server.url("/old"), delegate: delegate).0 }
                let answer = try await delegate.asked.value(where: { $0 })
                await clock.advance(by: .seconds(3_600))
                answer()
                #expect(try await load.value == Data("body".utf8))
            }
        }
    }

    @Test func `the pause before a retry ends with the clock`() async throws {
        try await withScriptedServer(reply: { request in
            request.order == 0 ? .status(503, [("Retry-After", "45")]) : .ok("body")
        }) { (server) async throws in
            try await withClock {
                $0.retryPolicy = .init()
            } _: { (session) async throws in
                let load = Task { try await session.text(server.url()) }
                try await clock.waitForSleepers()
                await clock.advance(by: .seconds(44))
                try await clock.waitForSleepers()
                #expect(server.requests.count == 1)
                await clock.advance(by: .seconds(1))
                #expect(try await load.value == "body")
            }
        }
    }

    @Test func `a task begins at its date`() async throws {
        try await withScriptedServer(reply: { _ in .ok("body") }) { (server) async throws in
            try await withClock { (session) async throws in
                let done = Watched<Bool>(false)
                let task = session.dataTask(with: server.url()) { _, _, _ in done.change { $0 = true } }
                task.earliestBeginDate = clock.date.addingTimeInterval(86_400)
                task.resume()
                try await clock.waitForSleepers()
                await clock.advance(by: .seconds(86_399))
                try await clock.waitForSleepers()
                #expect(server.requests.isEmpty)
                await clock.advance(by: .seconds(1))
                _ = try await done.value(where: { $0 ? true : nil })
                #expect(server.requests.count == 1)
            }
        }
    }

    @Test func `the clock determines the freshness of responses and the age of cookies`() async throws {
        try await withScriptedServer(reply: { request in
            .ok(
                request.header("Cookie") ?? "none",
                request.path == "/" ? [("Cache-Control", "max-age=60"), ("Set-Cookie", "a=b; Max-Age=90")] : [])
        }) { (server) async throws in
            try await withClock { (session) async throws in
                #expect(try await session.text(server.url()) == "none")
                #expect(try await session.text(server.url("/cookie")) == "a=b")
                await clock.advance(by: .seconds(59))
                #expect(try await session.text(server.url()) == "none")
                #expect(server.requests.count == 2)
                await clock.advance(by: .seconds(1))
                #expect(try await session.text(server.url()) == "a=b")
                await clock.advance(by: .seconds(90))
                #expect(try await session.text(server.url("/cookie")) == "none")
            }
        }
    }

    @Test func `server-sent events are requested again after a pause by the clock`() async throws {
        try await withScriptedServer(reply: { request in
            request.order < 2
                ? .ok("retry: 30000\nid: \(request.order)\ndata: \(request.order)\n\n", [("Content-Type", "text/event-stream")])
                : .status(204)
        }) { (server) async throws in
            try await withClock { (session) async throws in
                let reading = Task {
                    var events: [String] = []
                    for try await event in session.serverSentEvents(for: URLRequest(url: server.url())) {
                        events.append(event.data)
                    }
                    return events
                }
                for count in 1...2 {
                    try await clock.waitForSleepers()
                    #expect(server.requests.count == count)
                    await clock.advance(by: .seconds(60))
                }
                #expect(try await reading.value == ["0", "1"])
                #expect(server.requests.map { $0.header("Last-Event-ID") } == [nil, "0", "1"])
            }
        }
    }

    @Test(arguments: [false, true])
    func `invalidating the session ends the pause between two requests for server-sent events`(finishes: Bool) async throws {
        try await withScriptedServer(reply: { _ in
            .ok("retry: 80000000\ndata: a\n\n", [("Content-Type", "text/event-stream")])
        }) { (server) async throws in
            try await withClock { (session) async throws in
                let reading = Task {
                    for try await event in session.serverSentEvents(for: URLRequest(url: server.url())) {
                        #expect(event.data == "a")
                    }
                }
                try await clock.waitForSleepers()
                if finishes { session.finishTasksAndInvalidate() } else { session.invalidateAndCancel() }
                let error = await #expect(throws: URLError.self) { try await reading.value }
                #expect(error?.code == .cancelled)
                #expect(server.requests.count == 1)
            }
        }
    }

    @Test func `code of the app sleeps by the clock until it is canceled`() async throws {
        let (first, second) = (
            Task { try await clock.sleep(for: .seconds(10)) }, Task { try await clock.sleep(for: .seconds(20)) }
        )
        try await clock.waitForSleepers(2)
        await clock.advance(by: .seconds(10))
        try await first.value
        #expect(clock.now == TestClock.Instant(elapsed: .seconds(10)))
        second.cancel()
        await #expect(throws: CancellationError.self) { try await second.value }
        let watcher = Task { try await clock.waitForSleepers() }
        watcher.cancel()
        await #expect(throws: CancellationError.self) { try await watcher.value }
        try await clock.sleep(until: clock.now)
    }

    @Test func `a clock can be advanced after its session has ended`() async throws {
        try await withScriptedServer(reply: { _ in .ok("body") }) { (server) async throws in
            try await withClock { (session) async throws in
                #expect(try await session.text(server.url()) == "body")
            }
            await clock.advance(by: .seconds(1_000))
        }
    }
}

extension URLSession {
    fileprivate func text(_ url: URL) async throws -> String { String(decoding: try await data(from: url).0, as: UTF8.self) }
}
