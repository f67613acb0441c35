//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
package import DequeModule

/// Divides a limited number of threads, so that slow work of one user does not block the work of others.
///
/// Work belongs to a group (a session, a file system) and within it to a member (a domain, a file). A group may occupy as many
/// threads as it leaves free, and a member half as many ("Dynamic Queue Length Thresholds for Shared-Memory Packet Switches",
/// Choudhury and Hahne, 1998). A single group thus gets half of the threads, and however much work it has, other groups find a
/// free thread. Groups take turns, the members of a group take turns, and the work of a member starts in FIFO order. If many
/// members wait, every other turn goes to the newest member, so that its short work does not wait for a hundred members whose work
/// never ends.
///
/// The value only decides which work may start. The caller runs the work, and reports when it ended.
package struct ThreadShares<Group: Hashable & Sendable, Member: Hashable & Sendable, Work: Sendable>: Sendable {
    /// The group and member that work belongs to.
    package struct Owner: Hashable, Sendable {
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
        /// The members with queued work, each once.
        @usableFromInline var turns = Deque<Member>()
        @usableFromInline var runningCount = 0
        @usableFromInline var waitingCount = 0
        @usableFromInline var isNewestsTurn = false
        /// If at least this many members wait, the newest one gets every other turn.
        @inlinable
        static var longLine: Int { 16 }

        @inlinable
        init() {}

        @inlinable
        var isOver: Bool { waitingCount == 0 && runningCount == 0 }

        /// Takes the work of the first member that may occupy one more thread.
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
    /// The groups with queued work, each once.
    @usableFromInline var turns = Deque<Group>()

    package init(threadCount: Int) { self.threadCount = threadCount }

    /// The number of queued items of a group.
    package func waitingCount(of group: Group) -> Int { crowds[group]?.waitingCount ?? 0 }

    /// Queues work; ``next()`` returns it when it may start.
    @inlinable
    package mutating func append(_ work: Work, at place: Owner) {
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

    /// Takes work that may start now, and counts it as running until ``ended(at:)``.
    @inlinable
    package mutating func next() -> (work: Work, place: Owner)? {
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
            return (work, Owner(group, member))
        }
        return nil
    }

    /// Reports that work of this place has ended and its thread is free.
    @inlinable
    package mutating func ended(at place: Owner) {
        guard (crowds[place.group]?.lines[place.member]?.runningCount ?? 0) > 0 else { return }
        runningCount -= 1
        crowds[place.group]?.runningCount -= 1
        crowds[place.group]?.lines[place.member]?.runningCount -= 1
        if crowds[place.group]?.lines[place.member]?.isOver == true { crowds[place.group]?.lines[place.member] = nil }
        if crowds[place.group]?.isOver == true { crowds[place.group] = nil }
    }

    /// Removes queued work that is no longer wanted.
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
