//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
package import NIOCore
import Synchronization
import SystemThreads

/// How many connections all sessions of the process may have together, so that the app never runs out of descriptors on our account.
///
/// Their part of what there is to divide (``DescriptorLimit``), apart from that of files (`FileBudget`) and the app's. One session leaves a
/// quarter of it, up to 512, so that a second one finds room.
/// Sessions that find none wait in line, each for one connection at a time, and connections that idle are closed to make room, the
/// process's longest first. Where the system has no descriptor all the same (the app has them, or other processes), the budget is what
/// there is at that time, for a moment.
package final class ConnectionBudget: Sendable {
    /// One pool's part of the budget.
    package final class Share: Sendable {
        fileprivate let budget: ConnectionBudget
        fileprivate let loop: any EventLoop
        /// Called on the loop: the room that was asked for is there.
        ///
        /// False where nobody takes it any more.
        fileprivate let made: NIOLoopBound<() -> Bool>
        /// Called on the loop: others need the room of connections that idle.
        fileprivate let needed: NIOLoopBound<() -> Void>
        /// Since when the pool has had idle connections; `Int64.max` where it has none.
        fileprivate let idleSince = Atomic(Int64.max)

        fileprivate init(
            _ budget: ConnectionBudget, _ loop: any EventLoop, made: @escaping () -> Bool, needed: @escaping () -> Void
        ) {
            self.budget = budget
            self.loop = loop
            self.made = NIOLoopBound(made, eventLoop: loop)
            self.needed = NIOLoopBound(needed, eventLoop: loop)
        }

        var moment: TimeAmount { budget.moment }

        /// Asks for room for a connection: true if there is, and otherwise `made` is called when there is.
        package func ask() -> Bool { budget.ask(self) }

        /// Takes room for another attempt of a dial that has some, if there is; or in any case.
        package func takeMore(isNeeded: Bool) -> Bool { budget.takeMore(self, isNeeded: isNeeded) }

        /// Gives room back that was asked for or taken.
        package func giveBack() { budget.giveBack(self) }

        /// A socket was made, or closed.
        func socket(isOpen: Bool) { budget.socket(isOpen: isOpen) }

        /// Nothing idles any more of what was to be closed for others.
        package func gaveNothing() { budget.gaveNothing() }

        /// Asked for nothing any more.
        package func withdraw() { budget.withdraw(self) }

        /// The system has no descriptor for a connection, whose room is given back next.
        ///
        /// For a moment nobody gets any but what others give back.
        package func systemHasNone() { budget.systemHasNone(self) }

        /// Whether connections of ours are open, which will give their descriptors back.
        var mayGetDescriptor: Bool { budget.hasSockets }

        /// Says since when connections have idled, on NIO's clock; nil where none does.
        package func idle(since instant: Int64?) {
            idleSince.store(instant ?? .max, ordering: .sequentiallyConsistent)
            if instant != nil, budget.isPressed.load(ordering: .sequentiallyConsistent) { budget.makeRoom() }
        }
    }

    private struct State {
        var used = 0
        var socketCount = 0
        var usedBy: [ObjectIdentifier: Int] = [:]
        var waiting: [Share] = []
        /// Shares that were told to close something, and of which nothing came back yet.
        var givingCount = 0
        var shares: [ObjectIdentifier: Share] = [:]
        /// What it could have when the system had no more; for a moment.
        var ceiling: Int?
    }

    package static let shared = ConnectionBudget()

    /// Somebody waits for room.
    fileprivate let isPressed = Atomic(false)
    private let state = Mutex(State())
    private let descriptorLimit: @Sendable () -> Int

    /// How long the ceiling holds that the system has shown, and an attempt waits for room before it looks again.
    let moment: TimeAmount

    /// - Parameters:
    ///   - descriptorLimit: How many descriptors are divided. The app may change the process's limit, so it is asked for each connection.
    ///   - moment: How long the ceiling holds that the system has shown.
    package init(
        descriptorLimit: @escaping @Sendable () -> Int = DescriptorLimit.divisible, moment: TimeAmount = .milliseconds(250)
    ) {
        self.descriptorLimit = descriptorLimit
        self.moment = moment
    }

    /// A pool's part; both functions are called on the loop.
    package func join(_ loop: any EventLoop, made: @escaping () -> Bool, needed: @escaping () -> Void) -> Share {
        Share(self, loop, made: made, needed: needed)
    }

    /// How many connections there are, and how many there may be.
    package var usage: (used: Int, limit: Int) {
        state.withLock { state in (state.used, limit(state)) }
    }

    // MARK: Room

    /// What one session leaves to the others, at most.
    private static let mostLeft = 512

    private func limit(_ state: State) -> Int {
        min(DescriptorLimit.connections(of: descriptorLimit()), state.ceiling ?? .max)
    }

    private func hasRoom(_ share: Share, _ state: State) -> Bool {
        let limit = limit(state)
        return state.used < limit && mayHaveMore(share, state, of: limit)
    }

    /// Whether a share is below what one may have of the whole.
    private func mayHaveMore(_ share: Share, _ state: State, of limit: Int) -> Bool {
        state.usedBy[ObjectIdentifier(share), default: 0] < max(1, limit - min(limit / 4, Self.mostLeft))
    }

    private func take(_ share: Share, _ state: inout State) {
        state.used += 1
        state.usedBy[ObjectIdentifier(share), default: 0] += 1
        state.shares[ObjectIdentifier(share)] = share
    }

    fileprivate func ask(_ share: Share) -> Bool {
        let isThere = state.withLock { state in
            if hasRoom(share, state) {
                take(share, &state)
                return true
            }
            state.waiting.append(share)
            isPressed.store(true, ordering: .sequentiallyConsistent)
            return false
        }
        if !isThere { makeRoom() }
        return isThere
    }

    fileprivate func takeMore(_ share: Share, isNeeded: Bool) -> Bool {
        state.withLock { state in
            guard isNeeded || hasRoom(share, state) else { return false }
            take(share, &state)
            return true
        }
    }

    fileprivate func socket(isOpen: Bool) {
        state.withLock { $0.socketCount += isOpen ? 1 : -1 }
    }

    fileprivate func giveBack(_ share: Share) {
        state.withLock { state in release(share, &state) }
        serve()
    }

    private func release(_ share: Share, _ state: inout State) {
        let id = ObjectIdentifier(share)
        state.used -= 1
        state.givingCount = max(0, state.givingCount - 1)
        let left = state.usedBy[id, default: 1] - 1
        state.usedBy[id] = left > 0 ? left : nil
        if left == 0 { state.shares[id] = nil }
    }

    fileprivate func withdraw(_ share: Share) {
        state.withLock { state in
            state.waiting.removeAll { $0 === share }
            isPressed.store(!state.waiting.isEmpty, ordering: .sequentiallyConsistent)
        }
    }

    /// Gives what room there is to those that wait, in their turn.
    private func serve() {
        let served = state.withLock { state -> [Share] in
            var served: [Share] = []
            var index = 0
            let limit = limit(state)
            while index < state.waiting.count, state.used < limit {
                let share = state.waiting[index]
                guard mayHaveMore(share, state, of: limit) else {
                    index += 1
                    continue
                }
                state.waiting.remove(at: index)
                take(share, &state)
                served.append(share)
            }
            isPressed.store(!state.waiting.isEmpty, ordering: .sequentiallyConsistent)
            return served
        }
        // A pool may be gone.
        for share in served { share.loop.execute { if !share.made.value() { share.giveBack() } } }
        if isPressed.load(ordering: .sequentiallyConsistent) { makeRoom() }
    }

    /// Has connections closed that idle, for each that waits the one that idles longest.
    fileprivate func makeRoom() {
        let givers = state.withLock { state -> [Share] in
            var givers: [Share] = []
            // Most often nothing idles, however many wait. The last of these idles longest.
            var idle = state.shares.values.map { (share: $0, since: $0.idleSince.load(ordering: .sequentiallyConsistent)) }
                .filter { $0.since < .max }
                .sorted { $0.since > $1.since }
            guard !idle.isEmpty else { return [] }
            let limit = limit(state)
            for share in state.waiting.dropFirst(state.givingCount) {
                // A share that holds as much as it may gives of its own.
                let place = mayHaveMore(share, state, of: limit) ? idle.indices.last : idle.firstIndex { $0.share === share }
                guard let place else { continue }
                let giver = idle.remove(at: place).share
                // It says anew what idles when it has closed some.
                giver.idleSince.store(.max, ordering: .sequentiallyConsistent)
                givers.append(giver)
                if idle.isEmpty { break }
            }
            state.givingCount += givers.count
            return givers
        }
        for share in givers { share.loop.execute { share.needed.value() } }
    }

    fileprivate func gaveNothing() {
        state.withLock { $0.givingCount = max(0, $0.givingCount - 1) }
        makeRoom()
    }

    // MARK: The system's own limit

    fileprivate func systemHasNone(_ share: Share) {
        let isFirst = state.withLock { state in
            defer { state.ceiling = max(1, state.used - 1) }
            return state.ceiling == nil
        }
        if isFirst { share.loop.scheduleTask(in: moment) { self.liftCeiling() } }
    }

    fileprivate var hasSockets: Bool { state.withLock { $0.socketCount > 0 } }

    private func liftCeiling() {
        state.withLock { $0.ceiling = nil }
        serve()
    }
}
