//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Synchronization

/// How many files of loads may be open together in the process, so that the app never runs out of descriptors on our account.
///
/// Their part of what ``DescriptorLimit`` divides, apart from that of connections. Downloads' files and files that are
/// uploaded wait in line where there is no room; what can do without goes without.
///
/// A load that has a connection may wait for a file, and a load that has a file may wait for a connection. So that they never wait for each
/// other, the second kind has ``Part/half`` of the files at most: the other half is for loads that wait for nothing but their server, the app
/// and the disk while they have their file (``Part/whole``).
package final class FileBudget: Sendable {
    /// What of the files a load may have.
    package enum Part: Sendable {
        /// For those who have their connection, and let it go no later than the file.
        case whole
        /// For those who may have to wait for a connection while they have the file, and for those who can do without.
        case half
    }

    package typealias Made = @Sendable (FileRoom) -> Void

    /// Those that wait for one part, the first first.
    fileprivate struct Line {
        var waiting: [Int: Made] = [:]
        private var head = 0
        private var tail = 0

        mutating func append(_ made: @escaping Made) -> Int {
            defer { tail += 1 }
            waiting[tail] = made
            return tail
        }

        mutating func popFirst() -> Made? {
            while head < tail {
                defer { head += 1 }
                if let made = waiting.removeValue(forKey: head) { return made }
            }
            return nil
        }
    }

    fileprivate struct State {
        var used = 0
        var usedOfHalf = 0
        var lines = (whole: Line(), half: Line())
        /// How many of the first line were served since one of the second.
        var wholesInRow = 0
    }

    /// A place in the line.
    package struct Place: Sendable {
        fileprivate let part: Part
        fileprivate let number: Int
    }

    package enum Answer: Sendable {
        case room(FileRoom)
        case inLine(Place)
    }

    package static let shared = FileBudget()

    private let state = Mutex(State())
    private let descriptorLimit: @Sendable () -> Int

    /// - Parameter descriptorLimit: How many descriptors are divided.
    package init(descriptorLimit: @escaping @Sendable () -> Int = DescriptorLimit.divisible) {
        self.descriptorLimit = descriptorLimit
    }

    /// How many descriptors files have, how many they may have, and how many wait.
    package var usage: (used: Int, limit: Int, waiting: Int) {
        let limit = limit
        return state.withLock { ($0.used, limit, $0.lines.whole.waiting.count + $0.lines.half.waiting.count) }
    }

    private var limit: Int { DescriptorLimit.files(of: descriptorLimit()) }

    /// Room for so many descriptors, if there is some that no load in line waits for.
    package func take(_ part: Part, count: Int = 1) -> FileRoom? {
        let limit = limit
        let isThere = state.withLock { $0.hasNoLine(before: part) && $0.take(part, count, of: limit) }
        return isThere ? FileRoom(self, part, count) : nil
    }

    /// Asks for room for a file: it is there at once, or `made` is called with it later, on any thread.
    package func ask(_ part: Part, _ made: @escaping Made) -> Answer {
        let limit = limit
        let place = state.withLock { state -> Place? in
            if state.hasNoLine(before: part), state.take(part, 1, of: limit) { return nil }
            return Place(part: part, number: state.append(made, part))
        }
        guard let place else { return .room(FileRoom(self, part, 1)) }
        // There may be room since the app raised the process's limit.
        serve(limit)
        return .inLine(place)
    }

    /// Leaves the line; room that is on its way still comes.
    package func leave(_ place: Place) {
        _ = state.withLock { $0.leave(place.part, place.number) }
    }

    fileprivate func giveBack(_ part: Part, _ count: Int) {
        state.withLock { $0.release(part, count) }
        serve(limit)
    }

    private func serve(_ limit: Int) {
        let served = state.withLock { $0.serve(limit) }
        for (made, part) in served { made(FileRoom(self, part, 1)) }
    }
}

extension FileBudget.State {
    /// Whether no load in line comes before one more of this kind.
    fileprivate func hasNoLine(before part: FileBudget.Part) -> Bool {
        lines.whole.waiting.isEmpty && (part == .whole || lines.half.waiting.isEmpty)
    }

    fileprivate mutating func take(_ part: FileBudget.Part, _ count: Int, of limit: Int) -> Bool {
        guard used + count <= limit else { return false }
        if part == .half {
            guard usedOfHalf + count <= limit / 2 else { return false }
            usedOfHalf += count
        }
        used += count
        return true
    }

    fileprivate mutating func release(_ part: FileBudget.Part, _ count: Int) {
        used -= count
        if part == .half { usedOfHalf -= count }
    }

    fileprivate mutating func append(_ made: @escaping FileBudget.Made, _ part: FileBudget.Part) -> Int {
        part == .whole ? lines.whole.append(made) : lines.half.append(made)
    }

    fileprivate mutating func leave(_ part: FileBudget.Part, _ number: Int) -> FileBudget.Made? {
        part == .whole ? lines.whole.waiting.removeValue(forKey: number) : lines.half.waiting.removeValue(forKey: number)
    }

    /// Gives what room there is to those that wait: to those that have a connection, and to one of the others after every seven.
    fileprivate mutating func serve(_ limit: Int) -> [(FileBudget.Made, FileBudget.Part)] {
        var served: [(FileBudget.Made, FileBudget.Part)] = []
        while true {
            let isHalfsTurn = lines.whole.waiting.isEmpty || wholesInRow >= Self.longestRun
            if isHalfsTurn, !lines.half.waiting.isEmpty, take(.half, 1, of: limit) {
                wholesInRow = 0
                if let made = lines.half.popFirst() { served.append((made, .half)) }
            } else if !lines.whole.waiting.isEmpty, take(.whole, 1, of: limit) {
                wholesInRow += 1
                if let made = lines.whole.popFirst() { served.append((made, .whole)) }
            } else {
                return served
            }
        }
    }

    private static let longestRun = 7
}

/// Room for an open file, or for several descriptors: given back when the last reference to it is gone.
package final class FileRoom: Sendable {
    private let budget: FileBudget
    private let part: FileBudget.Part
    private let count: Int

    fileprivate init(_ budget: FileBudget, _ part: FileBudget.Part, _ count: Int) {
        self.budget = budget
        self.part = part
        self.count = count
    }

    deinit { budget.giveBack(part, count) }
}
