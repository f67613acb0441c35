// SPDX-License-Identifier: Apache-2.0

#if Metrics
import LoadingModel
import Metrics
import Synchronization

/// The source of a session's meters: its own factory, or the process's.
struct MeterSource: Sendable {
    /// The meters of the process's factory, created on first use.
    private static let shared = Mutex<RequestMeters?>(nil)

    private let own: RequestMeters?

    init(_ factory: (any MetricsFactory)?) { own = factory.map { RequestMeters($0) } }

    /// Whether metrics are recorded.
    var isUsed: Bool { own != nil || !(MetricsSystem.factory is NOOPMetricsHandler) }

    /// The current meters; nil disables metrics.
    ///
    /// Called on an event loop, where there is no task-local factory, so the meters of the process's factory can be cached.
    var current: RequestMeters? {
        if let own { return own }
        return Self.shared.withLock { shared in
            if let shared { return shared }
            let factory = MetricsSystem.factory
            guard !(factory is NOOPMetricsHandler) else { return nil }
            let created = RequestMeters(factory)
            shared = created
            return created
        }
    }
}

/// The metrics of HTTP clients, following OpenTelemetry's semantic conventions.
///
/// All series of a metric have the same labels, as some backends require; a label without a value is empty. The number of series
/// is limited, because a program may contact ten thousand hosts, and a server may respond with any status.
final class RequestMeters: Sendable {
    /// The maximum number of hosts that are distinguished.
    static let maximumHosts = 100
    /// The maximum number of series of a metric.
    static let maximumSeries = 2_000

    fileprivate struct Server: Hashable {
        static let other = Server(host: RequestLabels.other, port: 0)

        let host: String
        let port: Int

        var labels: [(String, String)] {
            [("server.address", host), ("server.port", self == .other ? RequestLabels.other : String(port))]
        }
    }

    fileprivate struct Active: Hashable {
        let method: String
        let server: Server
    }

    private struct Outcome: Hashable {
        let request: Active
        /// The status code; empty if unknown, like the other labels.
        let status: String
        let version: String
        let error: String
    }

    private struct State {
        var servers: Set<Server> = []
        var durations: [Outcome: Timer] = [:]
        var active: [Active: Meter] = [:]
        var connections: [Server: Meter] = [:]
    }

    /// A request in flight.
    struct Measurement {
        fileprivate let meters: RequestMeters
        fileprivate let request: Active
        fileprivate let active: Meter

        func end(_ end: ObservedEnd) {
            active.decrement()
            meters.duration(of: request, end).recordNanoseconds(end.duration)
        }
    }

    private let factory: any MetricsFactory
    private let state = Mutex(State())

    init(_ factory: any MetricsFactory) { self.factory = factory }

    func begin(_ request: ObservedRequest) -> Measurement {
        let method = RequestLabels.method(request.method)
        let (series, active) = state.withLock { state in
            let series = Active(method: method, server: Self.server(request.host, request.port, &state))
            if let known = state.active[series] { return (series, known) }
            let created = Meter(
                label: "http.client.active_requests", dimensions: [("http.request.method", method)] + series.server.labels,
                factory: factory)
            state.active[series] = created
            return (series, created)
        }
        active.increment()
        return Measurement(meters: self, request: series, active: active)
    }

    /// Returns the meter for the number of open connections to a server.
    func openConnections(to connection: ObservedConnection) -> Meter {
        state.withLock { state in
            let server = Self.server(connection.host, connection.port, &state)
            if let known = state.connections[server] { return known }
            let created = Meter(label: "http.client.open_connections", dimensions: server.labels, factory: factory)
            state.connections[server] = created
            return created
        }
    }

    private func duration(of request: Active, _ end: ObservedEnd) -> Timer {
        let outcome = Outcome(
            request: request, status: end.response.status.map { String($0) } ?? "", version: end.response.version ?? "",
            error: RequestLabels.errorType(end) ?? "")
        return state.withLock { state in
            if let known = state.durations[outcome] { return known }
            guard state.durations.count < Self.maximumSeries else {
                let other = RequestLabels.other
                let rest = Outcome(
                    request: Active(method: request.method, server: .other), status: other, version: other, error: other)
                if let known = state.durations[rest] { return known }
                return timer(rest, &state)
            }
            return timer(outcome, &state)
        }
    }

    private func timer(_ outcome: Outcome, _ state: inout State) -> Timer {
        let created = Timer(
            label: "http.client.request.duration",
            dimensions: [("http.request.method", outcome.request.method)] + outcome.request.server.labels + [
                ("http.response.status_code", outcome.status), ("network.protocol.version", outcome.version),
                ("error.type", outcome.error),
            ],
            preferredDisplayUnit: .seconds, factory: factory)
        state.durations[outcome] = created
        return created
    }

    /// Returns the label of a server: its own label or, beyond the limit, the label shared by all other servers.
    private static func server(_ host: String, _ port: Int, _ state: inout State) -> Server {
        let server = Server(host: host, port: port)
        if state.servers.contains(server) { return server }
        guard state.servers.count < maximumHosts else { return .other }
        state.servers.insert(server)
        return server
    }
}
#endif
