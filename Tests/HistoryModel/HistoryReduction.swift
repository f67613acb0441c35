//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// Leaves out steps of a history while what is left still fails.
package enum HistoryReduction {
    /// - Parameters:
    ///   - steps: What failed, up to the step at which it did.
    ///   - isInTime: Asked before each attempt.
    ///   - fails: Whether a shorter history fails by the same rule.
    /// - Returns: What is left.
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
