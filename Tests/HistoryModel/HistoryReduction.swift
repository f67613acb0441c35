// SPDX-License-Identifier: Apache-2.0

/// Removes steps from a history as long as the rest still fails.
package enum HistoryReduction {
    /// - Parameters:
    ///   - steps: The failing history, up to the failing step.
    ///   - isInTime: Whether there is time for another attempt.
    ///   - fails: Whether a shorter history breaks the same rule.
    /// - Returns: The remaining steps.
    package static func reduce(
        _ steps: [HistoryStep], while isInTime: () -> Bool, fails: ([HistoryStep]) async -> Bool
    ) async -> [HistoryStep] {
        var steps = steps
        var size = max(1, steps.count / 2)
        while isInTime() {
            var start = 0
            var isShorter = false
            while start < steps.count, isInTime() {
                var fewer = steps
                fewer.removeSubrange(start..<min(start + size, steps.count))
                if await fails(fewer) {
                    steps = fewer
                    isShorter = true
                } else {
                    start += size
                }
            }
            if size == 1, !isShorter { break }
            size = max(1, size / 2)
        }
        return steps
    }
}
