//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
package import DequeModule

/// Divides a limited number of threads, so that slow work of one group does not block the work of others.
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
    struct MemberState {
        @usableFromInline var work = Deque<Work>()
        @usableFromInline var runningCount = 0

        @inlinable
        init() {}

        @inlinable
        var isOver: Bool { work.isEmpty && runningCount == 0 }
    }

    @usableFromInline
    struct GroupState {
        @usableFromInline var memberStates: [Member: MemberState] = [:]
        /// The members with queued work, each once.
        @usableFromInline var turns = Deque<Member>()
        @usableFromInline var runningCount = 0
        @usableFromInline var waitingCount = 0
        @usableFromInline var isTurnOfNewest = false
        /// If at least this many members wait, the newest one gets every other turn.
        @inlinable
        static var longQueueCount: Int { 16 }

        @inlinable
        init() {}

        @inlinable
        var isOver: Bool { waitingCount == 0 && runningCount == 0 }

        /// Takes the work of the first member that may occupy one more thread.
        @inlinable
        mutating func take(belowCount limit: Int) -> (Work, Member)? {
            defer { isTurnOfNewest.toggle() }
            if isTurnOfNewest, turns.count >= Self.longQueueCount { turns.prepend(turns.removeLast()) }
            for _ in 0..<turns.count {
                guard let member = turns.popFirst() else { return nil }
                guard (memberStates[member]?.runningCount ?? 0) < limit, let work = memberStates[member]?.work.popFirst() else {
                    turns.append(member)
                    continue
                }
                memberStates[member]?.runningCount += 1
                if memberStates[member]?.work.isEmpty == false { turns.append(member) }
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
    @usableFromInline var groupStates: [Group: GroupState] = [:]
    /// The groups with queued work, each once.
    @usableFromInline var turns = Deque<Group>()

    package init(threadCount: Int) { self.threadCount = threadCount }

    /// The number of queued items of a group.
    package func waitingCount(of group: Group) -> Int { groupStates[group]?.waitingCount ?? 0 }

    /// Queues work; ``next()`` returns it when it may start.
    @inlinable
    package mutating func append(_ work: Work, at place: Owner) {
        var groupState = groupStates.removeValue(forKey: place.group) ?? GroupState()
        var memberState = groupState.memberStates.removeValue(forKey: place.member) ?? MemberState()
        if groupState.waitingCount == 0 { turns.append(place.group) }
        if memberState.work.isEmpty { groupState.turns.append(place.member) }
        memberState.work.append(work)
        groupState.memberStates[place.member] = memberState
        groupState.waitingCount += 1
        groupStates[place.group] = groupState
        waitingCount += 1
    }

    /// Takes work that may start now, and counts it as running until ``ended(at:)``.
    @inlinable
    package mutating func next() -> (work: Work, place: Owner)? {
        let freeCount = threadCount - runningCount
        guard freeCount > 0, waitingCount > 0 else { return nil }
        for _ in 0..<turns.count {
            guard let group = turns.popFirst() else { return nil }
            guard (groupStates[group]?.runningCount ?? 0) < freeCount,
                let (work, member) = groupStates[group]?.take(belowCount: max(1, freeCount / 2))
            else {
                turns.append(group)
                continue
            }
            if (groupStates[group]?.waitingCount ?? 0) > 0 { turns.append(group) }
            runningCount += 1
            waitingCount -= 1
            return (work, Owner(group, member))
        }
        return nil
    }

    /// Reports that work of this place has ended and its thread is free.
    @inlinable
    package mutating func ended(at place: Owner) {
        guard (groupStates[place.group]?.memberStates[place.member]?.runningCount ?? 0) > 0 else { return }
        runningCount -= 1
        groupStates[place.group]?.runningCount -= 1
        groupStates[place.group]?.memberStates[place.member]?.runningCount -= 1
        if groupStates[place.group]?.memberStates[place.member]?.isOver == true {
            groupStates[place.group]?.memberStates[place.member] = nil
        }
        if groupStates[place.group]?.isOver == true { groupStates[place.group] = nil }
    }

    /// Removes queued work that is no longer wanted.
    package mutating func removeWaiting(where isUnwanted: (Work) -> Bool) {
        for group in groupStates.keys {
            guard var groupState = groupStates.removeValue(forKey: group) else { continue }
            for member in groupState.memberStates.keys {
                let before = groupState.memberStates[member]?.work.count ?? 0
                groupState.memberStates[member]?.work.removeAll(where: isUnwanted)
                let struckOut = before - (groupState.memberStates[member]?.work.count ?? 0)
                groupState.waitingCount -= struckOut
                waitingCount -= struckOut
                if groupState.memberStates[member]?.isOver == true { groupState.memberStates[member] = nil }
            }
            groupState.turns.removeAll { [memberStates = groupState.memberStates] in memberStates[$0]?.work.isEmpty != false }
            if !groupState.isOver { groupStates[group] = groupState }
        }
        turns.removeAll { [groupStates] in (groupStates[$0]?.waitingCount ?? 0) == 0 }
    }
}
