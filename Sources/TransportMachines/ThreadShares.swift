//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
package import DequeModule

/// Deals a bounded number of threads out among those who have work for them, so that what is slow for some does not hold up the others.
///
/// Work belongs to a group (a session, a file system) and in it to a member (a domain, a file). A group may occupy as many threads as are
/// free beside it, and a member half as many ("Dynamic Queue Length Thresholds for Shared-Memory Packet Switches", Choudhury and Hahne,
/// 1998): whoever is alone has half of them, and however much one has to do, others find a free thread. Groups take turns, the members of a
/// group do, and the work of a member begins in its order. Where many members wait, every other turn is that of the one that came last: behind
/// a hundred whose work never ends, one whose work is short does not wait for them all.
///
/// It decides only which work may begin; whoever asks it runs the work, and says when it ended.
package struct ThreadShares<Group: Hashable & Sendable, Member: Hashable & Sendable, Work: Sendable>: Sendable {
    /// Whose share some work is.
    package struct Place: Hashable, Sendable {
        package var group: Group
        package var member: Member

        @inlinable
        package init(_ group: Group, _ member: Member) {
            self.group = group
            self.member = member
        }
    }

    @usableFromInline
    struct Line {
        @usableFromInline var work = Deque<Work>()
        @usableFromInline var runningCount = 0

        @inlinable
        init() {}

        @inlinable
        var isOver: Bool { work.isEmpty && runningCount == 0 }
    }

    @usableFromInline
    struct Crowd {
        @usableFromInline var lines: [Member: Line] = [:]
        /// The members with work that waits, each once.
        @usableFromInline var turns = Deque<Member>()
        @usableFromInline var runningCount = 0
        @usableFromInline var waitingCount = 0
        @usableFromInline var isNewestsTurn = false
        /// From how many members that wait on the newest has turns of its own.
        @inlinable
        static var longLine: Int { 16 }

        @inlinable
        init() {}

        @inlinable
        var isOver: Bool { waitingCount == 0 && runningCount == 0 }

        /// Takes the work of the first member who may have one more thread.
        @inlinable
        mutating func take(belowCount limit: Int) -> (Work, Member)? {
            defer { isNewestsTurn.toggle() }
            if isNewestsTurn, turns.count >= Self.longLine { turns.prepend(turns.removeLast()) }
            for _ in 0..<turns.count {
                guard let member = turns.popFirst() else { return nil }
                guard (lines[member]?.runningCount ?? 0) < limit, let work = lines[member]?.work.popFirst() else {
                    turns.append(member)
                    continue
                }
                lines[member]?.runningCount += 1
                if lines[member]?.work.isEmpty == false { turns.append(member) }
                runningCount += 1
                waitingCount -= 1
                return (work, member)
            }
            return nil
        }
    }

    package let threadCount: Int
    @usableFromInline package internal(set) var runningCount = 0
    @usableFromInline package internal(set) var waitingCount = 0
    @usableFromInline var crowds: [Group: Crowd] = [:]
    /// The groups with work that waits, each once.
    @usableFromInline var turns = Deque<Group>()

    package init(threadCount: Int) { self.threadCount = threadCount }

    /// How much of a group's work waits.
    package func waitingCount(of group: Group) -> Int { crowds[group]?.waitingCount ?? 0 }

    /// Puts work in line; ``next()`` says when it begins.
    @inlinable
    package mutating func append(_ work: Work, at place: Place) {
        var crowd = crowds.removeValue(forKey: place.group) ?? Crowd()
        var line = crowd.lines.removeValue(forKey: place.member) ?? Line()
        if crowd.waitingCount == 0 { turns.append(place.group) }
        if line.work.isEmpty { crowd.turns.append(place.member) }
        line.work.append(work)
        crowd.lines[place.member] = line
        crowd.waitingCount += 1
        crowds[place.group] = crowd
        waitingCount += 1
    }

    /// Takes work that may begin now, and counts it as running until ``ended(at:)``.
    @inlinable
    package mutating func next() -> (work: Work, place: Place)? {
        let freeCount = threadCount - runningCount
        guard freeCount > 0, waitingCount > 0 else { return nil }
        for _ in 0..<turns.count {
            guard let group = turns.popFirst() else { return nil }
            guard (crowds[group]?.runningCount ?? 0) < freeCount,
                let (work, member) = crowds[group]?.take(belowCount: max(1, freeCount / 2))
            else {
                turns.append(group)
                continue
            }
            if (crowds[group]?.waitingCount ?? 0) > 0 { turns.append(group) }
            runningCount += 1
            waitingCount -= 1
            return (work, Place(group, member))
        }
        return nil
    }

    /// Work of this place is over, and its thread free.
    @inlinable
    package mutating func ended(at place: Place) {
        guard (crowds[place.group]?.lines[place.member]?.runningCount ?? 0) > 0 else { return }
        runningCount -= 1
        crowds[place.group]?.runningCount -= 1
        crowds[place.group]?.lines[place.member]?.runningCount -= 1
        if crowds[place.group]?.lines[place.member]?.isOver == true { crowds[place.group]?.lines[place.member] = nil }
        if crowds[place.group]?.isOver == true { crowds[place.group] = nil }
    }

    /// Strikes work out that nobody wants any more.
    package mutating func removeWaiting(where isUnwanted: (Work) -> Bool) {
        for group in crowds.keys {
            guard var crowd = crowds.removeValue(forKey: group) else { continue }
            for member in crowd.lines.keys {
                let before = crowd.lines[member]?.work.count ?? 0
                crowd.lines[member]?.work.removeAll(where: isUnwanted)
                let struckOut = before - (crowd.lines[member]?.work.count ?? 0)
                crowd.waitingCount -= struckOut
                waitingCount -= struckOut
                if crowd.lines[member]?.isOver == true { crowd.lines[member] = nil }
            }
            crowd.turns.removeAll { [lines = crowd.lines] in lines[$0]?.work.isEmpty != false }
            if !crowd.isOver { crowds[group] = crowd }
        }
        turns.removeAll { [crowds] in (crowds[$0]?.waitingCount ?? 0) == 0 }
    }
}
