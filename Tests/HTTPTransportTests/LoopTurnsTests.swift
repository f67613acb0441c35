// SPDX-License-Identifier: Apache-2.0

import HTTPTransport
import LoadingTestKit
import NIOPosix
import Testing

@Suite(.timeLimit(.minutes(1))) struct LoopTurnsTests {
    @Test func `urgent work waits for at most one other item, and does not starve the others`() async throws {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        let order = Watched<[String]>([])
        try await loop.submit {
            let turns = LoopDirectory.executor(of: loop).turns
            for number in 1...4 { turns.runInLaterTurn { order.change { $0.append("\(number)") } } }
            for number in 1...3 { turns.runInLaterTurn(isUrgent: true) { order.change { $0.append("urgent \(number)") } } }
        }
        .get()
        let all = try await order.value { $0.count == 7 ? $0 : nil }
        // The order also depends on the loop's previous item, which may belong to a load of another test.
        let first = ["urgent 1", "1", "urgent 2", "2", "urgent 3", "3", "4"]
        #expect(all == first || all == ["1", "urgent 1", "2", "urgent 2", "3", "urgent 3", "4"])
    }
}
