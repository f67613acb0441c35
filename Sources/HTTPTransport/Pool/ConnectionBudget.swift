// SPDX-License-Identifier: Apache-2.0

package import NIOCore
import Synchronization
import SystemThreads

/// Limits the number of connections of all sessions of the process, so that the library never causes the app to run out of
/// descriptors.
///
/// The budget is the connections' share of ``DescriptorLimit``, separate from the shares of files (`FileBudget`) and of the app.
/// One session leaves a quarter of the budget, up to 512 connections, for other sessions. Sessions that find the budget used up are
/// queued, each for one connection at a time. To free reservations, idle connections are closed, beginning with those that have
/// been idle longest in the process. If the system nevertheless has no descriptor (because of the app, or of other processes), the
/// budget is temporarily reduced to the number that is in use at that time.
package final class ConnectionBudget: Sendable {
    /// One pool's share of the budget.
    package final class Share: Sendable {
        fileprivate let budget: ConnectionBudget
        fileprivate let loop: any EventLoop
        /// Called on the loop when the requested reservation is available; returns false if the pool no longer needs the
        /// reservation.
        fileprivate let made: NIOLoopBound<() -> Bool>
        /// Called on the loop when other pools need the reservations of idle connections.
        fileprivate let needed: NIOLoopBound<() -> Void>
        /// The instant since which the pool has had idle connections; `Int64.max` if no connection is idle.
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

        /// Requests a reservation for a connection: returns true if a reservation is available, and otherwise calls `made` as soon
        /// as one is available.
        package func ask() -> Bool { budget.ask(self) }

        /// Takes a reservation for another attempt of a dial, if a reservation is available or `isNeeded` is true.
        package func takeMore(isNeeded: Bool) -> Bool { budget.takeMore(self, isNeeded: isNeeded) }

        /// Releases a reservation.
        package func giveBack() { budget.giveBack(self) }

        /// Records that a socket was opened, or closed.
        func socket(isOpen: Bool) { budget.socket(isOpen: isOpen) }

        /// Records that the pool had no idle connection left to close for other pools.
        package func hadNothingToRelease() { budget.hadNothingToRelease() }

        /// Withdraws the pool's request.
        package func withdraw() { budget.withdraw(self) }

        /// Records that the system has no descriptor for a connection, whose reservation is released next.
        ///
        /// Until ``moment`` has passed, only released reservations are granted.
        package func descriptorsRanOut() { budget.descriptorsRanOut(self) }

        /// Whether this process has open connections, whose descriptors will be released.
        var mayGetDescriptor: Bool { budget.hasSockets }

        /// Reports since when connections have been idle, on NIO's clock; nil if no connection is idle.
        package func idle(since instant: Int64?) {
            idleSince.store(instant ?? .max, ordering: .sequentiallyConsistent)
            if instant != nil, budget.hasWaiters.load(ordering: .sequentiallyConsistent) { budget.makeRoom() }
        }
    }

    private struct State {
        var used = 0
        var socketCount = 0
        var usedBy: [ObjectIdentifier: Int] = [:]
        var waiting: [Share] = []
        /// The number of shares that were asked to close a connection and have not released a reservation yet.
        var pendingReleases = 0
        var shares: [ObjectIdentifier: Share] = [:]
        /// The temporary limit after the system had no descriptor.
        var ceiling: Int?
    }

    package static let shared = ConnectionBudget()

    /// Whether any share is queued.
    fileprivate let hasWaiters = Atomic(false)
    private let state = Mutex(State())
    private let descriptorLimit: @Sendable () -> Int

    /// How long the temporary limit applies, and how long an attempt waits before it checks again for a reservation.
    let moment: TimeAmount

    /// - Parameters:
    ///   - descriptorLimit: Returns the number of descriptors to divide among connections, files and the app; called for each
    ///     connection, because the app may change the process's limit.
    ///   - moment: How long the temporary limit applies.
    package init(
        descriptorLimit: @escaping @Sendable () -> Int = DescriptorLimit.divisible, moment: TimeAmount = .milliseconds(250)
    ) {
        self.descriptorLimit = descriptorLimit
        self.moment = moment
    }

    /// Creates a pool's share; both functions are called on the loop.
    package func join(_ loop: any EventLoop, made: @escaping () -> Bool, needed: @escaping () -> Void) -> Share {
        Share(self, loop, made: made, needed: needed)
    }

    /// The number of connections, and the limit.
    package var usage: (used: Int, limit: Int) {
        state.withLock { state in (state.used, limit(state)) }
    }

    // MARK: Reservations

    /// A session must leave a quarter of the limit to the others, but not more connections than this.
    private static let maximumLeftForOthers = 512

    private func limit(_ state: State) -> Int {
        min(DescriptorLimit.connections(of: descriptorLimit()), state.ceiling ?? .max)
    }

    private func hasRoom(_ share: Share, _ state: State) -> Bool {
        let limit = limit(state)
        return state.used < limit && mayHaveMore(share, state, of: limit)
    }

    /// Whether a share is below the maximum of a single session.
    private func mayHaveMore(_ share: Share, _ state: State, of limit: Int) -> Bool {
        state.usedBy[ObjectIdentifier(share), default: 0] < max(1, limit - min(limit / 4, Self.maximumLeftForOthers))
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
            hasWaiters.store(true, ordering: .sequentiallyConsistent)
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
        state.pendingReleases = max(0, state.pendingReleases - 1)
        let left = state.usedBy[id, default: 1] - 1
        state.usedBy[id] = left > 0 ? left : nil
        if left == 0 { state.shares[id] = nil }
    }

    fileprivate func withdraw(_ share: Share) {
        state.withLock { state in
            state.waiting.removeAll { $0 === share }
            hasWaiters.store(!state.waiting.isEmpty, ordering: .sequentiallyConsistent)
        }
    }

    /// Grants free reservations to the queued shares, in order.
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
            hasWaiters.store(!state.waiting.isEmpty, ordering: .sequentiallyConsistent)
            return served
        }
        // If the pool no longer exists, `made` returns false.
        for share in served { share.loop.execute { if !share.made.value() { share.giveBack() } } }
        if hasWaiters.load(ordering: .sequentiallyConsistent) { makeRoom() }
    }

    /// Requests that idle connections be closed: for each queued share, the connection that has been idle longest.
    fileprivate func makeRoom() {
        let donors = state.withLock { state -> [Share] in
            var donors: [Share] = []
            // The share that has been idle longest comes last. Usually the array is empty, however many shares are waiting.
            var idle = state.shares.values.map { (share: $0, since: $0.idleSince.load(ordering: .sequentiallyConsistent)) }
                .filter { $0.since < .max }
                .sorted { $0.since > $1.since }
            guard !idle.isEmpty else { return [] }
            let limit = limit(state)
            for share in state.waiting.dropFirst(state.pendingReleases) {
                // A share that has reached its maximum closes one of its own connections.
                let place = mayHaveMore(share, state, of: limit) ? idle.indices.last : idle.firstIndex { $0.share === share }
                guard let place else { continue }
                let donor = idle.remove(at: place).share
                // The pool reports again when it has closed connections.
                donor.idleSince.store(.max, ordering: .sequentiallyConsistent)
                donors.append(donor)
                if idle.isEmpty { break }
            }
            state.pendingReleases += donors.count
            return donors
        }
        for share in donors { share.loop.execute { share.needed.value() } }
    }

    fileprivate func hadNothingToRelease() {
        state.withLock { $0.pendingReleases = max(0, $0.pendingReleases - 1) }
        makeRoom()
    }

    // MARK: The system's own limit

    fileprivate func descriptorsRanOut(_ share: Share) {
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
