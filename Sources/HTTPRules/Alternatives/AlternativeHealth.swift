// SPDX-License-Identifier: Apache-2.0

/// The endpoints over which origins could not be reached, so that they are not tried again for a while.
///
/// An endpoint that fails for one origin stays usable for others: an origin can announce any endpoint, and must not be able to keep
/// other origins from using theirs.
package struct AlternativeHealth: Sendable {
    /// The seconds for which an endpoint is not tried after its first failure, as in Chromium.
    package static let firstPause = 300.0
    /// The longest pause, in seconds: 2 days.
    ///
    /// Each failure doubles the pause.
    package static let longestPause = 172_800.0
    /// The maximum number of endpoints; when it is exceeded, the one whose pause ends first is forgotten.
    package static let maximumCount = 1_000

    private struct Endpoint: Hashable {
        let origin: Origin
        let host: String
        let port: Int
    }

    private struct Mark {
        var end: Double
        var pause: Double
    }

    private var marks: [Endpoint: Mark] = [:]

    package init() {}

    /// Marks an endpoint that failed although the origin can be reached in another way.
    ///
    /// A failure while the endpoint is marked does not count: its attempt began earlier.
    package mutating func failed(_ host: String, _ port: Int, of origin: Origin, now: Double) {
        let endpoint = Endpoint(origin: origin, host: host, port: port)
        if let mark = marks[endpoint] {
            guard mark.end <= now else { return }
            let pause = min(mark.pause * 2, Self.longestPause)
            marks[endpoint] = Mark(end: now + pause, pause: pause)
            return
        }
        if marks.count >= Self.maximumCount,
            let first = marks.min(by: { ($0.value.end, $0.key.host) < ($1.value.end, $1.key.host) })
        {
            marks[first.key] = nil
        }
        marks[endpoint] = Mark(end: now + Self.firstPause, pause: Self.firstPause)
    }

    /// Forgets the failures of an endpoint, which has carried a response.
    package mutating func succeeded(_ host: String, _ port: Int, of origin: Origin) {
        guard !marks.isEmpty else { return }
        marks[Endpoint(origin: origin, host: host, port: port)] = nil
    }

    /// Returns the instant until which an endpoint is not tried; nil if it may be tried.
    package func pauseEnd(_ host: String, _ port: Int, of origin: Origin, now: Double) -> Double? {
        guard !marks.isEmpty, let mark = marks[Endpoint(origin: origin, host: host, port: port)], mark.end > now else {
            return nil
        }
        return mark.end
    }

    /// Forgets all failures: another network may carry what the last one dropped.
    package mutating func removeAll() { marks = [:] }
}
