// SPDX-License-Identifier: Apache-2.0

#if Metrics
import CoreMetrics
import Foundation
import LoadingTestKit
import MetricsTestKit
import Testing
import URLLoading

/// The metrics of OpenTelemetry's semantic conventions for HTTP clients.
@Suite(.timeLimit(.minutes(1)))
struct MetricsTests {
    private func labels(_ dimensions: [(String, String)]) -> [String: String] {
        Dictionary(dimensions) { first, _ in first }
    }

    @Test func `the duration of each request is recorded by method, server, status, version and error`() async throws {
        let metrics = TestMetrics()
        try await withScenario(
            configure: { $0.metricsFactory = metrics },
            reply: { $0.path == "/no" ? .status(404) : $0.order == 0 ? .redirect(302, to: "/end") : .ok() }
        ) { server, session in
            _ = try await session.data(from: server.url("/a"))
            _ = try await session.data(for: URLRequest(server.url("/b?secret=1"), method: "PROPFIND"))
            for _ in 0..<2 { _ = try await session.data(from: server.url("/no")) }
            let timers = metrics.timers(label: "http.client.request.duration")
            func common(_ method: String, _ status: String, _ error: String = "") -> [String: String] {
                [
                    "http.request.method": method, "server.address": "127.0.0.1", "server.port": "\(server.port)",
                    "http.response.status_code": status, "network.protocol.version": "1.1", "error.type": error,
                ]
            }
            #expect(
                Set(timers.map { labels($0.dimensions) })
                    == [common("GET", "302"), common("GET", "200"), common("_OTHER", "200"), common("GET", "404", "404")])
            #expect(timers.allSatisfy { $0.displayUnit == .seconds })
            #expect(timers.map(\.values.count).sorted() == [1, 1, 1, 2])
            #expect(timers.flatMap(\.values).allSatisfy { $0 > 0 && $0 < 60_000_000_000 })
        }
    }

    @Test func `a request in flight is active, and its connection is open`() async throws {
        let metrics = TestMetrics()
        try await withScenario(
            configure: { $0.metricsFactory = metrics },
            reply: { _ in ScriptedReply([.gate("answer")] + ScriptedReply.ok().effects) }
        ) {
            server, session in
            async let loaded = session.data(from: server.url("/a"))
            try await server.reached("answer")
            let active = try #require(metrics.meters(label: "http.client.active_requests").first)
            let open = try #require(metrics.meters(label: "http.client.open_connections").first)
            #expect(labels(active.dimensions)["http.request.method"] == "GET")
            #expect(labels(open.dimensions) == ["server.address": "127.0.0.1", "server.port": "\(server.port)"])
            #expect(active.lastValue == 1 && open.lastValue == 1)
            server.open("answer")
            _ = try await loaded
            #expect(active.lastValue == 0 && open.lastValue == 1)
        }
    }

    @Test func `a failed request is recorded with its error`() async throws {
        let metrics = TestMetrics()
        let port = try RefusingPort()
        try await withSession {
            $0.metricsFactory = metrics
        } test: { session in
            let url = try #require(URL(string: "http://127.0.0.1:\(port.number)/"))
            await #expect(throws: URLError.self) { try await session.data(from: url) }
            let timer = try #require(metrics.timers(label: "http.client.request.duration").first)
            #expect(labels(timer.dimensions)["error.type"] == "cannotConnectToHost")
            #expect(labels(timer.dimensions)["http.response.status_code"] == "")
        }
    }

    @Test func `servers after the hundredth are recorded as one`() async throws {
        let metrics = TestMetrics()
        try await withScriptedServer(reply: { _ in .ok() }) { server in
            try await withSession {
                $0.metricsFactory = metrics
                $0.connectionOptions.substitutions = [.init(of: .init(), with: .init(host: "127.0.0.1"))]
            } test: { session in
                for number in 1...110 {
                    _ = try await session.data(from: server.url("/", host: "h\(number)"))
                }
                let timers = metrics.timers(label: "http.client.request.duration")
                #expect(timers.count == 101)
                let rest = timers.filter { labels($0.dimensions)["server.address"] == "_OTHER" }
                #expect(rest.map(\.values.count) == [10])
                #expect(rest.map { labels($0.dimensions)["server.port"] } == ["_OTHER"])
                #expect(metrics.meters(label: "http.client.active_requests").allSatisfy { $0.lastValue == 0 })
            }
        }
    }
}
#endif
