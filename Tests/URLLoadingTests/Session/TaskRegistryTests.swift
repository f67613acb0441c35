// SPDX-License-Identifier: Apache-2.0

import Foundation
import SeededNumbers
import Testing
import URLLoading

/// The list of a session's live tasks.
@Suite(.timeLimit(.minutes(1)))
struct TaskRegistryTests {
    @Test(arguments: 0..<20)
    func `a session lists its live tasks in order of creation, however many come and go`(seed: UInt64) async {
        var numbers = SeededNumbers(seed: seed)
        let (session, _) = makeSession { _ in }
        var live: [URLSessionTask] = []
        // Few tasks are live at first, then many, then almost none.
        for (steps, ending) in [(60, 48), (1200, 10), (2000, 95)] {
            for _ in 0..<steps {
                if numbers.next(below: 100) >= ending {
                    live.append(session.dataTask(with: someURL))
                } else if !live.isEmpty {
                    live.remove(at: numbers.next(below: 4) == 0 ? 0 : live.count - 1 - numbers.next(below: live.count)).cancel()
                }
            }
            #expect(await session.allTasks.map(\.taskIdentifier) == live.map(\.taskIdentifier), "seed \(seed)")
        }
        session.invalidateAndCancel()
        #expect(await session.allTasks.isEmpty)
        #expect(live.allSatisfy { $0.state == .completed })
    }
}
