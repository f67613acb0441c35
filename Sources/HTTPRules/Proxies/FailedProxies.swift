//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// Proxies that could not be reached: for five minutes they are tried after all others.
package struct FailedProxies: Sendable {
    package static let patience: Int64 = 300_000_000_000
    /// How long a proxy may be silent.
    package static let silence: Int64 = 10_000_000_000
    /// So many are remembered, and those that failed last.
    package static let maximumCount = 64

    private var failures: [ProxyServer: Int64] = [:]
    /// When a proxy answered last, and since when it has been silent for a load.
    private var answers: [ProxyServer: (at: Int64, silentAt: Int64?)] = [:]

    package init() {}

    /// Remembers a failure; `now` is in nanoseconds of any monotonic clock.
    package mutating func note(_ server: ProxyServer, now: Int64) {
        failures = failures.filter { now - $0.value < Self.patience }
        if failures.count >= Self.maximumCount, let oldest = failures.min(by: { $0.value < $1.value }) {
            failures[oldest.key] = nil
        }
        failures[server] = now
    }

    /// The proxy answered, or its server did through it.
    package mutating func noteAnswer(of server: ProxyServer, now: Int64) {
        if answers[server] == nil, answers.count >= Self.maximumCount, let oldest = answers.min(by: { $0.value.at < $1.value.at })
        {
            answers[oldest.key] = nil
        }
        answers[server] = (now, nil)
    }

    /// The proxy was silent for one load: it may be the load's server that is, and the proxy that waits for it.
    ///
    /// So a proxy that has answered before has failed when it was silent twice, one time after the other, and answered nothing in between.
    package mutating func noteSilence(of server: ProxyServer, now: Int64) {
        guard let answer = answers[server] else { return note(server, now: now) }
        guard let silentAt = answer.silentAt else {
            answers[server]?.silentAt = now
            return
        }
        if now - silentAt >= Self.silence { note(server, now: now) }
    }

    /// Whether the proxy has answered somebody since an instant.
    package func hasAnswered(_ server: ProxyServer, since instant: Int64) -> Bool {
        answers[server].map { $0.at >= instant } ?? false
    }

    /// The ways with those at the end that failed a while ago.
    ///
    /// Where the direct way is among them, it comes before those.
    package func last(_ ways: [ProxyWay], now: Int64) -> [ProxyWay] {
        guard !failures.isEmpty, ways.count > 1 else { return ways }
        func hasFailed(_ way: ProxyWay) -> Bool {
            guard let server = way.server, let failure = failures[server] else { return false }
            return now - failure < Self.patience
        }
        return ways.filter { !hasFailed($0) } + ways.filter(hasFailed)
    }
}
