// SPDX-License-Identifier: Apache-2.0

/// When and how a load is retried, as configured by the app.
package struct LoadRetries: Sendable, Hashable {
    package var statuses: Set<Int>
    package var failures: Set<LoadError.Kind>
    /// The maximum number of retries, for all reasons together.
    package var limit: Int
    /// Seconds before the first retry; doubled for each further retry.
    package var firstPause: Double
    package var maximumPause: Double
    /// The longest `Retry-After`, in seconds, that the load waits for; a response that asks for a longer wait is delivered.
    package var maximumRetryAfter: Double
    /// Whether requests with a method that is not idempotent are retried.
    package var retriesAnyMethod: Bool

    package init(
        statuses: Set<Int>, failures: Set<LoadError.Kind>, limit: Int, firstPause: Double, maximumPause: Double,
        maximumRetryAfter: Double, retriesAnyMethod: Bool
    ) {
        self.statuses = statuses
        self.failures = failures
        self.limit = limit
        self.firstPause = firstPause
        self.maximumPause = maximumPause
        self.maximumRetryAfter = maximumRetryAfter
        self.retriesAnyMethod = retriesAnyMethod
    }
}
