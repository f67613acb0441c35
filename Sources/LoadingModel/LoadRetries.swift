//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// Which answers and failures have a load tried again, where the app asked for it, and how.
package struct LoadRetries: Sendable, Hashable {
    package var statuses: Set<Int>
    package var failures: Set<LoadError.Kind>
    /// How often a load is tried again, whatever for.
    package var limit: Int
    /// Seconds before the first of these attempts, doubled before each that follows.
    package var firstPause: Double
    package var longestPause: Double
    /// The longest Retry-After, in seconds, that is waited for; an answer that asks for more is the result.
    package var longestRetryAfter: Double
    /// Whether requests are repeated whose method is not idempotent.
    package var repeatsAnyMethod: Bool

    package init(
        statuses: Set<Int>, failures: Set<LoadError.Kind>, limit: Int, firstPause: Double, longestPause: Double,
        longestRetryAfter: Double, repeatsAnyMethod: Bool
    ) {
        self.statuses = statuses
        self.failures = failures
        self.limit = limit
        self.firstPause = firstPause
        self.longestPause = longestPause
        self.longestRetryAfter = longestRetryAfter
        self.repeatsAnyMethod = repeatsAnyMethod
    }
}
