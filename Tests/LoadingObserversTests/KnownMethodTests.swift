// SPDX-License-Identifier: Apache-2.0

#if Metrics
import CoreMetrics
import Foundation
import LoadingTestKit
import MetricsTestKit
import Testing
import URLLoading

/// The methods that have labels of their own, as `OTEL_INSTRUMENTATION_HTTP_KNOWN_METHODS` says.
@Suite(.timeLimit(.minutes(1)))
struct KnownMethodTests {
    /// Returns the labels of requests with these methods.
    fileprivate static func labels(_ methods: [String]) async throws -> Set<String?> {
        let metrics = TestMetrics()
        try await withScenario(configure: { $0.metricsFactory = metrics }, reply: { _ in .ok() }) { server, session in
            for method in methods { _ = try await session.data(for: URLRequest(server.url(), method: method)) }
        }
        return Set(
            metrics.timers(label: "http.client.request.duration")
                .map { timer in timer.dimensions.first { $0.0 == "http.request.method" }?.1 })
    }

    @Test func `the methods of the conventions are known without the variable`() async throws {
        #expect(try await Self.labels(["GET", "QUERY", "PURGE", "get"]) == ["GET", "QUERY", "_OTHER"])
    }

    @Test func `the environment replaces the known methods`() async throws {
        try await SeparateProcess.run(
            "KnownMethodsOfEnvironment", environment: ["OTEL_INSTRUMENTATION_HTTP_KNOWN_METHODS": "GET, PURGE"])
    }
}

@Suite(.enabled(if: SeparateProcess.isCurrentSuite("KnownMethodsOfEnvironment")), .timeLimit(.minutes(1)))
struct KnownMethodsOfEnvironment {
    @Test func `only the listed methods have labels`() async throws {
        #expect(try await KnownMethodTests.labels(["GET", "PURGE", "POST"]) == ["GET", "PURGE", "_OTHER"])
    }
}
#endif
