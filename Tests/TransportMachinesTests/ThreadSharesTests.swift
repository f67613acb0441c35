// SPDX-License-Identifier: Apache-2.0

import SeededNumbers
import Testing
import TransportMachines

@Suite struct ThreadSharesTests {
    private typealias Shares = ThreadShares<String, String, Int>

    private func startedWork(_ shares: inout Shares) -> [(work: Int, place: Shares.Owner)] {
        var startedWork: [(Int, Shares.Owner)] = []
        while let next = shares.next() { startedWork.append(next) }
        return startedWork
    }

    @Test func `work of one member runs in order, and its thread is free afterwards`() {
        var shares = Shares(threadCount: 2)
        for work in 1...3 { shares.append(work, at: .init("a", "x")) }
        #expect(shares.next()?.work == 1)
        #expect(shares.next() == nil)
        shares.ended(at: .init("a", "x"))
        #expect(shares.next()?.work == 2)
        #expect(shares.waitingCount == 1 && shares.runningCount == 1)
    }

    @Test func `one member gets a third of the threads, one group half, and later groups half of the rest`() {
        var shares = Shares(threadCount: 64)
        for work in 0..<1_000 { shares.append(work, at: .init("a", "x")) }
        #expect(startedWork(&shares).count == 21)
        for work in 0..<1_000 { shares.append(work, at: .init("a", "y\(work)")) }
        #expect(startedWork(&shares).count == 11)
        for work in 0..<1_000 { shares.append(work, at: .init("b", "y\(work)")) }
        #expect(startedWork(&shares).count == 16)
        for work in 0..<1_000 { shares.append(work, at: .init("c", "y\(work)")) }
        #expect(startedWork(&shares).count == 8)
    }

    @Test func `a member with much work leaves a thread for the next member`() {
        for threads in 1...64 {
            var shares = Shares(threadCount: threads)
            for work in 0..<200 { shares.append(work, at: .init("a", "x\(work)")) }
            let first = startedWork(&shares).count
            #expect(first >= 1, "\(threads)")
            guard threads > 1 else { continue }
            shares.append(-1, at: .init("b", "x"))
            #expect(startedWork(&shares).map(\.work) == [-1], "\(threads)")
        }
    }

    @Test func `groups take turns, and so do the members of each group`() {
        var shares = Shares(threadCount: 2)
        shares.append(0, at: .init("z", "z"))
        #expect(shares.next()?.work == 0)
        for work in 1...3 { shares.append(work, at: .init("a", "x")) }
        for work in 11...12 { shares.append(work, at: .init("a", "y")) }
        for work in 21...22 { shares.append(work, at: .init("b", "x")) }
        var order: [Int] = []
        while let (work, place) = shares.next() {
            order.append(work)
            shares.ended(at: place)
        }
        #expect(order == [1, 21, 11, 22, 2, 12, 3])
    }

    @Test func `removed work does not begin, and leaves no trace`() {
        var shares = Shares(threadCount: 4)
        for work in 0..<10 { shares.append(work, at: .init("a", "x\(work % 2)")) }
        shares.append(7, at: .init("b", "x"))
        shares.removeWaiting { $0 % 2 == 1 || $0 == 0 }
        #expect(shares.waitingCount == 4)
        #expect(shares.waitingCount(of: "a") == 4 && shares.waitingCount(of: "b") == 0)
        var order: [Int] = []
        while let (work, place) = shares.next() {
            order.append(work)
            shares.ended(at: place)
        }
        #expect(order == [2, 4, 6, 8])
        shares.append(9, at: .init("b", "x"))
        #expect(shares.next()?.work == 9)
    }

    @Test func `a member that returns after its work was removed has one turn, behind the others`() {
        for (one, other) in [("a", "a"), ("a", "b")] {
            var shares = Shares(threadCount: 1)
            shares.append(1, at: .init(one, "x"))
            shares.append(2, at: .init(other, "y"))
            shares.removeWaiting { $0 == 1 }
            for work in 11...12 { shares.append(work, at: .init(one, "x")) }
            shares.append(3, at: .init(other, "y"))
            var order: [Int] = []
            while let (work, place) = shares.next() {
                order.append(work)
                shares.ended(at: place)
            }
            #expect(order == [2, 11, 3, 12])
        }
    }

    @Test func `no work is lost or begun twice`() {
        for seed in 0..<200 {
            var random = SeededNumbers(seed: UInt64(seed))
            let threads = Int.random(in: 1...9, using: &random)
            var shares = Shares(threadCount: threads)
            var waiting: Set<Int> = []
            var running: [(work: Int, place: Shares.Owner)] = []
            var made = 0
            for step in 0..<400 {
                switch Int.random(in: 0..<8, using: &random) {
                case 0...3:
                    made += 1
                    waiting.insert(made)
                    let group = "\(Int.random(in: 0..<3, using: &random))"
                    shares.append(made, at: .init(group, "\(Int.random(in: 0..<4, using: &random))"))
                case 4 where made % 5 == 0:
                    shares.removeWaiting { $0 % 3 == 0 }
                    waiting = waiting.filter { $0 % 3 != 0 }
                default:
                    guard !running.isEmpty else { break }
                    shares.ended(at: running.remove(at: Int.random(in: running.indices, using: &random)).place)
                }
                for next in startedWork(&shares) {
                    #expect(waiting.remove(next.work) != nil, "seed \(seed), step \(step)")
                    running.append(next)
                }
                #expect(shares.waitingCount == waiting.count, "seed \(seed), step \(step)")
                #expect(running.count <= threads && (waiting.isEmpty || !running.isEmpty), "seed \(seed), step \(step)")
            }
        }
    }
}
