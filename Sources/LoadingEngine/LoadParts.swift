// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import HTTPTransport
import LoadingModel

// The parts of a load.

/// The redirects that a load followed, and its retries.
struct FollowUpHistory {
    /// The transactions whose redirects were followed since the load last started with its first request.
    var redirected: [Transaction] = []
    /// The number of redirects that were followed before the load last started with its first request.
    private var earlierRedirectCount = 0
    /// The number of retries under the app's rules.
    var retryCount = 0
    var redirectCount: Int { earlierRedirectCount + redirected.count }

    /// Starts over with the load's first request; returns whether that differs from the last request.
    mutating func restartFromFirstRequest() -> Bool {
        defer { redirected = [] }
        earlierRedirectCount += redirected.count
        return !redirected.isEmpty
    }
}

/// The traffic of the last attempt, which decides whether to retry.
struct AttemptTraffic {
    var connectionWasReused = false
    var receivedAnyBytes = false
    /// What is known about an attempt that failed without a response.
    var evidence = RetryEvidence.none
}

/// A load's place in the clock that ends loads.
struct DeadlinePlace {
    /// The load's slot in the clock.
    var slot = -1
    /// The step of the test clock that ends the load; it is kept until the end has been told.
    var step: SteppedClock.Step?

    mutating func takeStep() -> SteppedClock.Step? {
        defer { step = nil }
        return step
    }
}

#if Logging || Metrics || Tracing
/// What a load has reported about its requests.
struct Observation {
    /// The number of requests.
    var count = 0
    /// The hop of the last request.
    var hop = 0
    var last: Transaction?
}
#endif
