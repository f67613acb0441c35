// SPDX-License-Identifier: Apache-2.0

import SeededNumbers
import Testing

/// Random histories of HTTP/3 connections.
@Suite struct HTTP3EventTests {
    @Test func `in any order of events each exchange ends once, and the library is used as it must be`() {
        var completeCount = 0
        var failedCount = 0
        for seed in 0..<200 as Range<UInt64> {
            var numbers = SeededNumbers(seed: seed)
            let history = HTTP3EventHistory((0..<400).map { _ in UInt8(numbers.next(below: 256)) })
            history.run()
            #expect(history.faults.isEmpty, "seed \(seed): \(history.steps.joined(separator: "\n"))")
            completeCount += history.completeCount
            failedCount += history.failedCount
        }
        // The histories get somewhere.
        #expect(completeCount > 150 && failedCount > 150, "\(completeCount) complete, \(failedCount) failed")
    }
}
