// SPDX-License-Identifier: Apache-2.0

import SeededNumbers
import Testing

@testable import BackgroundDaemon

/// The choice of the waiting downloads that continue when the disk has space again.
struct SpaceQueueTests {
    private typealias Download = SpaceQueue.Download
    private static let waiting = Download(isHeld: false, present: 0, isUnderWay: false)

    private static func line(_ needs: [Int64]) -> SpaceQueue {
        var line = SpaceQueue()
        for (index, needed) in needs.enumerated() { _ = line.noteShortage(Int64(index), needed) }
        _ = line.found(nil, isFull: false) { _ in waiting }
        return line
    }

    /// The needs of the downloads, the free space, and the downloads that continue.
    @Test(
        arguments: [
            ([10], 9, []), ([10], 10, [0]), ([30, 20, 10], 30, [2, 1]), ([30, 20, 10], 59, [2, 1]),
            ([30, 20, 10], 60, [2, 1, 0]),
            ([10, 10], 15, [0]), ([.max, 5], .max, [1]), ([.max], .max, [0]),
        ] as [([Int64], Int64, [Int64])])
    func `the smallest needs are met first, as far as the free space suffices`(needs: [Int64], free: Int64, expected: [Int64]) {
        var line = Self.line(needs)
        _ = line.beginCheck()
        let actions = line.found(free, isFull: false) { _ in Self.waiting }
        var going: [Int64] = []
        for case .admit(let id, let endsPause) in actions {
            going.append(id)
            #expect(endsPause)
        }
        #expect(going == expected)
        #expect(line.hasWaiters == (expected.count < needs.count))
        #expect(Set(line.waiting) == Set(needs.indices.map(Int64.init)).subtracting(expected))
    }

    @Test func `space promised to a running download is reserved until it is used`() {
        var line = Self.line([100, 200])
        #expect(line.found(100, isFull: false) { _ in Self.waiting } == [.admit(0, endsPause: true), .pause(1)])
        for (first, isLetIn) in [
            (Download(isHeld: false, present: 0, isUnderWay: true), false),
            (Download(isHeld: false, present: 60, isUnderWay: true), false),
            (Download(isHeld: false, present: 99, isUnderWay: true), false),
            (Download(isHeld: false, present: 100, isUnderWay: true), true),
            (Download(isHeld: false, present: 500, isUnderWay: true), true),
            (Download(isHeld: false, present: 0, isUnderWay: false), true), (nil, true),
        ] {
            var line = line
            let actions = line.found(200, isFull: false) { $0 == 0 ? first : Self.waiting }
            #expect(actions.contains(.admit(1, endsPause: true)) == isLetIn, "\(String(describing: first))")
        }
    }

    @Test func `a pause is kept if space was never missing`() {
        var line = SpaceQueue()
        #expect(line.noteShortage(1, 10) == [.check])
        #expect(line.found(10, isFull: false) { _ in Self.waiting } == [.admit(1, endsPause: false)])
    }

    @Test func `held and finished downloads leave the queue`() {
        var line = Self.line([10, 10, 10])
        let held = Download(isHeld: true, present: 0, isUnderWay: false)
        let actions = line.found(0, isFull: false) { $0 == 0 ? held : $0 == 1 ? nil : Self.waiting }
        #expect(actions.prefix(2) == [.admit(0, endsPause: false), .admit(1, endsPause: false)])
        #expect(line.waiting == [2])
    }

    @Test func `the disk is checked less and less often, and at once after a removal`() {
        var line = SpaceQueue()
        #expect(line.noteShortage(1, 10) == [.check])
        for factor in [1, 2, 4, 8, 8, 8] {
            #expect(line.found(0, isFull: true) { _ in Self.waiting } == [.pause(factor)])
            #expect(line.beginCheck() == [.check])
        }
        // A check that began before the removal is not enough.
        #expect(line.noteRemoval() == [])
        #expect(line.found(0, isFull: true) { _ in Self.waiting } == [.check])
        #expect(line.found(0, isFull: true) { _ in Self.waiting } == [.pause(1)])
        #expect(line.noteRemoval() == [.check])
    }

    @Test func `nothing is checked while no download waits`() {
        var line = SpaceQueue()
        #expect(line.noteRemoval() == [])
        #expect(line.beginCheck() == [.check])
        #expect(line.found(nil, isFull: false) { _ in nil } == [] && !line.hasWaiters)
        #expect(line.beginCheck() == [.check])
        // A full disk is checked because it keeps all downloads from running.
        #expect(line.found(nil, isFull: true) { _ in nil } == [.pause(1)] && line.hasWaiters)
    }

    @Test func `missing space is reported with the need and the free space`() {
        var line = Self.line([10])
        #expect(line.missing(for: 0)?.needed == 10 && line.missing(for: 0)?.free == 0 && line.missing(for: 1) == nil)
        _ = line.found(9, isFull: false) { _ in Self.waiting }
        #expect(line.missing(for: 0)?.free == 9 && line.free == 9)
    }

    @Test(arguments: 0..<20) func `in a random history no space is promised twice and all downloads continue`(seed: UInt64) {
        var random = SeededNumbers(seed: seed)
        var line = SpaceQueue()
        var waiting: Set<Int64> = []
        var needs: [Int64: Int64] = [:]
        for step in 0..<400 {
            let id = Int64(random.next(below: 12))
            if random.next(below: 2) == 0, !waiting.contains(id) {
                needs[id] = Int64(random.next(below: 50)) + 1
                _ = line.noteShortage(id, needs[id] ?? 0)
                waiting.insert(id)
            }
            let free = Int64(random.next(below: 100))
            var rest = free
            for case .admit(let id, _) in line.found(free, isFull: false, { _ in Self.waiting }) {
                rest -= needs[id] ?? 0
                #expect(waiting.remove(id) != nil)
            }
            #expect(rest >= 0, "\(step)")
            #expect(waiting.allSatisfy { needs[$0] ?? 0 > rest })
            #expect(Set(line.waiting) == waiting)
        }
        _ = line.found(.max, isFull: false) { _ in Self.waiting }
        #expect(line.waiting == [])
    }
}
