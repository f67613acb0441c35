// SPDX-License-Identifier: Apache-2.0

/// Proxies that could not be reached.
///
/// For five minutes, such proxies are tried after all others.
package struct FailedProxies: Sendable {
    /// How long a proxy counts as failed, in nanoseconds.
    package static let failureLifetime: Int64 = 300_000_000_000
    /// How long a proxy may take to respond, in nanoseconds.
    package static let responseTimeout: Int64 = 10_000_000_000
    /// The maximum number of remembered proxies; the most recent failures are kept.
    package static let maximumCount = 64

    private var failures: [ProxyServer: Int64] = [:]
    /// The time of each proxy's last response, and the time of its first timeout since then.
    private var responses: [ProxyServer: (at: Int64, timedOutAt: Int64?)] = [:]

    package init() {}

    /// Records a failure; `now` is in nanoseconds of any monotonic clock.
    package mutating func note(_ server: ProxyServer, now: Int64) {
        failures = failures.filter { now - $0.value < Self.failureLifetime }
        if failures.count >= Self.maximumCount, let oldest = failures.min(by: { $0.value < $1.value }) {
            failures[oldest.key] = nil
        }
        failures[server] = now
    }

    /// Records a response of the proxy, or of a server through the proxy.
    package mutating func noteResponse(of server: ProxyServer, now: Int64) {
        if responses[server] == nil, responses.count >= Self.maximumCount,
            let oldest = responses.min(by: { $0.value.at < $1.value.at })
        {
            responses[oldest.key] = nil
        }
        responses[server] = (now, nil)
    }

    /// Records that the proxy did not respond during one load.
    ///
    /// The cause may be the load's server, if the proxy is waiting for that server. A proxy that has responded before therefore
    /// only counts as failed after two such records at least ``responseTimeout`` apart, without a response in between.
    package mutating func noteTimeout(of server: ProxyServer, now: Int64) {
        guard let response = responses[server] else { return note(server, now: now) }
        guard let timedOutAt = response.timedOutAt else {
            responses[server]?.timedOutAt = now
            return
        }
        if now - timedOutAt >= Self.responseTimeout { note(server, now: now) }
    }

    /// Whether the proxy has responded to any load since an instant.
    package func hasResponded(_ server: ProxyServer, since instant: Int64) -> Bool {
        responses[server].map { $0.at >= instant } ?? false
    }

    /// Moves the proxies that failed recently to the end.
    ///
    /// A direct connection comes before these proxies.
    package func last(_ ways: [ProxyWay], now: Int64) -> [ProxyWay] {
        guard !failures.isEmpty, ways.count > 1 else { return ways }
        func hasFailed(_ way: ProxyWay) -> Bool {
            guard let server = way.server, let failure = failures[server] else { return false }
            return now - failure < Self.failureLifetime
        }
        return ways.filter { !hasFailed($0) } + ways.filter(hasFailed)
    }
}
