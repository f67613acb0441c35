// SPDX-License-Identifier: Apache-2.0

package import DequeModule

/// Divides a limited number of threads, so that slow work of one group does not block the work of others.
///
/// Work belongs to a group (a session, a file system) and within it to a member (a domain, a file). A group may occupy as many
/// threads as it leaves free, and a member half as many ("Dynamic Queue Length Thresholds for Shared-Memory Packet Switches",
/// Choudhury and Hahne, 1998). A single group thus gets half of the threads, and however much work it has, other groups find a
/// free thread. Groups take turns, the members of a group take turns, and the work of a member starts in FIFO order. If many
/// members wait, every other turn goes to the newest member, so that its short work does not wait for a hundred members whose work
/// never ends; if work can lose its turn, the same applies to the work of one member.
///
/// Work that takes unusually long can lose its turn. It still counts toward the shares of its group and member, but both may then
/// occupy a few threads more, one after another as their work becomes late, so that endless work occupies ever more threads only slowly,
/// up to a limit, and short work still finds a turn.
///
/// The value only decides which work may start. The caller runs the work, and reports when it is late and when it ended.
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
        @usableFromInline var lateCount = 0
        @usableFromInline var isTurnOfNewest = false

        @inlinable
        init() {}

        @inlinable
        var isOver: Bool { work.isEmpty && runningCount == 0 && lateCount == 0 }

        /// Whether another item may start if the member's share is `limit` threads.
        @inlinable
        func mayStart(belowCount limit: Int, extra: Int) -> Bool {
            runningCount + lateCount < max(limit, lateCount > 0 ? lateCount + extra : 0)
        }

        /// Takes the oldest work, or, if the order does not matter, the newest in every other turn of a long queue.
        @inlinable
        mutating func take(inOrder: Bool) -> Work? {
            if inOrder || work.count < GroupState.longQueueCount { return work.popFirst() }
            defer { isTurnOfNewest.toggle() }
            return isTurnOfNewest ? work.popLast() : work.popFirst()
        }
    }

    @usableFromInline
    struct GroupState {
        @usableFromInline var memberStates: [Member: MemberState] = [:]
        /// The members with queued work, each once.
        @usableFromInline var turns = Deque<Member>()
        @usableFromInline var runningCount = 0
        @usableFromInline var waitingCount = 0
        /// The number of running items that lost their turn.
        @usableFromInline var lateCount = 0
        @usableFromInline var isTurnOfNewest = false
        /// If at least this many members wait, the newest one gets every other turn.
        @inlinable
        static var longQueueCount: Int { 16 }

        @inlinable
        init() {}

        @inlinable
        var isOver: Bool { waitingCount == 0 && runningCount == 0 && lateCount == 0 }

        /// Whether another item may start if `freeCount` threads are free.
        @inlinable
        func mayStart(_ freeCount: Int, extra: Int) -> Bool {
            runningCount + lateCount < max(freeCount - lateCount, lateCount > 0 ? lateCount + extra : 0)
        }

        /// Takes the work of the first member that may occupy one more thread.
        @inlinable
        mutating func take(_ freeCount: Int, extra: Int, inOrder: Bool) -> (Work, Member)? {
            defer { isTurnOfNewest.toggle() }
            if isTurnOfNewest, turns.count >= Self.longQueueCount { turns.prepend(turns.removeLast()) }
            let limit = max(1, (freeCount - lateCount) / 2)
            for _ in 0..<turns.count {
                guard let member = turns.popFirst() else { return nil }
                guard memberStates[member]?.mayStart(belowCount: limit, extra: extra) ?? false,
                    let work = memberStates[member]?.take(inOrder: inOrder)
                else {
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
    /// The maximum number of items that lose their turn, each of which occupies a thread beyond `threadCount`.
    package let lateLimit: Int
    @usableFromInline package internal(set) var lateCount = 0
    @usableFromInline package internal(set) var runningCount = 0
    @usableFromInline package internal(set) var waitingCount = 0
    @usableFromInline var groupStates: [Group: GroupState] = [:]
    /// The groups with queued work, each once.
    @usableFromInline var turns = Deque<Group>()

    package init(threadCount: Int, lateLimit: Int = 0) {
        self.threadCount = threadCount
        self.lateLimit = lateLimit
    }

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
        let extra = max(1, threadCount / 16)
        for _ in 0..<turns.count {
            guard let group = turns.popFirst() else { return nil }
            guard groupStates[group]?.mayStart(freeCount, extra: extra) ?? false,
                let (work, member) = groupStates[group]?.take(freeCount, extra: extra, inOrder: lateLimit == 0)
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

    /// Takes its turn away from running work that takes long; returns whether another item may start instead.
    @inlinable
    package mutating func loseTurn(at place: Owner) -> Bool {
        guard lateCount < lateLimit, (groupStates[place.group]?.memberStates[place.member]?.runningCount ?? 0) > 0 else {
            return false
        }
        groupStates[place.group]?.lateCount += 1
        groupStates[place.group]?.memberStates[place.member]?.lateCount += 1
        lateCount += 1
        ended(at: place)
        return true
    }

    /// Reports that work that lost its turn has ended.
    @inlinable
    package mutating func lateEnded(at place: Owner) {
        guard (groupStates[place.group]?.memberStates[place.member]?.lateCount ?? 0) > 0 else { return }
        lateCount -= 1
        groupStates[place.group]?.lateCount -= 1
        groupStates[place.group]?.memberStates[place.member]?.lateCount -= 1
        removeIfOver(place)
    }

    /// Reports that work of this place has ended and its thread is free.
    @inlinable
    package mutating func ended(at place: Owner) {
        guard (groupStates[place.group]?.memberStates[place.member]?.runningCount ?? 0) > 0 else { return }
        runningCount -= 1
        groupStates[place.group]?.runningCount -= 1
        groupStates[place.group]?.memberStates[place.member]?.runningCount -= 1
        removeIfOver(place)
    }

    @inlinable
    mutating func removeIfOver(_ place: Owner) {
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
