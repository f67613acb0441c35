// SPDX-License-Identifier: Apache-2.0

import SeededNumbers
import Testing

@testable import BackgroundDaemon

/// The first element of the queue is the least one, whatever was inserted and removed before.
struct PriorityQueueTests {
    @Test func `an empty queue has no first element`() {
        var line = PriorityQueue<Int, Double>()
        line.remove(1)
        #expect(line.isEmpty && line.first == nil && line.first { _ in true } == nil)
    }

    @Test func `an element that is inserted again moves to its new place`() {
        var line = PriorityQueue<Int, Double>()
        for id in 0..<5 { line.insert(id, at: Double(id)) }
        line.insert(4, at: -1)
        line.insert(0, at: 9)
        #expect(line.count == 5)
        #expect(Self.emptied(&line) == [4, 1, 2, 3, 0])
    }

    @Test func `the first matching element is found, and those before it are kept`() {
        var line = PriorityQueue<Int, Double>()
        for id in [5, 3, 8, 1, 9, 2] { line.insert(id, at: Double(id)) }
        var looks: [Int] = []
        #expect(
            line.first {
                looks.append($0)
                return $0 > 4
            } == 5)
        #expect(looks == [1, 2, 3, 5])
        #expect(line.first { _ in false } == nil)
        #expect(Self.emptied(&line) == [1, 2, 3, 5, 8, 9])
    }

    @Test(arguments: 0..<10) func `a queue has the order of a sorted list`(seed: UInt64) {
        var random = SeededNumbers(seed: seed)
        var line = PriorityQueue<Int, Int>()
        var places: [Int: Int] = [:]
        for turn in 0..<500 {
            let id = random.next(below: 60)
            if random.next(below: 3) == 0 {
                line.remove(id)
                places[id] = nil
            } else {
                // No two places are equal.
                let place = random.next(below: 50) * 1000 + turn
                line.insert(id, at: place)
                places[id] = place
            }
            let sorted = places.sorted { $0.value < $1.value }.map(\.key)
            #expect(line.first?.id == sorted.first && line.count == places.count)
            let isWanted = { (id: Int) in id % 7 == 0 }
            #expect(line.first(where: isWanted) == sorted.first(where: isWanted))
        }
        #expect(Self.emptied(&line) == places.sorted { $0.value < $1.value }.map(\.key))
    }

    private static func emptied<Place>(_ line: inout PriorityQueue<Int, Place>) -> [Int] {
        var order: [Int] = []
        while let (id, _) = line.first {
            order.append(id)
            line.remove(id)
        }
        return order
    }
}
