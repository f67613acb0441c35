//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// Proxies that could not be reached: for five minutes they are tried after all others.
package struct FailedProxies: Sendable, Hashable {
    package static let patience: Int64 = 300_000_000_000
    /// So many are remembered, and those that failed last.
    package static let maximumCount = 64

    private var failures: [ProxyServer: Int64] = [:]

    package init() {}

    /// Remembers a failure; `now` is in nanoseconds of any monotonic clock.
    package mutating func note(_ server: ProxyServer, now: Int64) {
        failures = failures.filter { now - $0.value < Self.patience }
        if failures.count >= Self.maximumCount, let oldest = failures.min(by: { $0.value < $1.value }) {
            failures[oldest.key] = nil
        }
        failures[server] = now
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
