//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// Decides which connection serves which request, when to dial another and when to let one go.
///
/// It holds for every origin: dials, leased and idle connections together are never more than `maximumPerHost`; a request takes the
/// most recently used idle connection, since that is the least likely to be stale; without one it waits, and a dial is begun if there
/// are more waiting than dialling and the limit allows; whatever connection comes free first serves whoever is first in line (late
/// binding), so a dial belongs to nobody. A request that found its connection gone wants a new one: those that idle are closed, and one
/// that comes free while it is first in line makes room for a dial.
///
/// Every `wanted` lease is answered exactly once: granted, refused, or withdrawn by the shell. It ends with `shutdown`: what waits is
/// refused, what idles or dials is closed, and connections still leased are closed as they are released. From then on `wanted` is
/// refused, and late events are answered with `[]`.
package struct PoolMachine: Sendable {
    package enum Event: Hashable, Sendable {
        case wanted(LeaseID, OriginID, priority: Float, onlyNew: Bool = false)
        /// A lease that still waits is not wanted any more. (A granted one is `released`.)
        case withdrawn(LeaseID)
        case reprioritised(LeaseID, Float)
        case opened(ConnectionID)
        case dialFailed(ConnectionID)
        /// The lease of a connection is over. `now` is in nanoseconds on any monotonic clock; `keepAlive` is how long the server
        /// promised to keep the idle connection (the `timeout` of its `Keep-Alive` field), in nanoseconds.
        case released(ConnectionID, reusable: Bool, now: Int64, keepAlive: Int64?)
        /// A connection, leased or idle, is gone. A leased one needs no `released` after it.
        case closed(ConnectionID)
        /// A connection, leased or idle, serves another origin from now on: it was made somebody's own.
        case moved(ConnectionID, OriginID)
        /// A kept connection to the origin turned out to be gone: those that idle are no better.
        case wentStale(OriginID)
        case timer(now: Int64)
        /// From now on requests start on new connections: idle ones are closed, and leased ones when they are released.
        case closeIdle
        case shutdown
    }

    package enum Action: Hashable, Sendable {
        case dial(ConnectionID, OriginID)
        /// `reused` says that the connection idled or served before, so it may turn out to be stale.
        case grant(LeaseID, ConnectionID, reused: Bool)
        /// `failedDial` is the dial whose error explains the refusal; nil if the pool is shut down.
        case refuse(LeaseID, failedDial: ConnectionID?)
        /// The dial's outcome is of no interest any more; no event about it should follow.
        case cancelDial(ConnectionID)
        /// Closes the connection; a `closed` that follows is ignored.
        case close(ConnectionID)
        /// Starts the one timer, or starts it anew if it is running; nanoseconds.
        case startTimer(after: Int64)
        case stopTimer
    }

    /// How long a connection may idle: 60 seconds, in nanoseconds.
    ///
    /// CFNetwork closes idle HTTP/1 connections after about a minute;
    /// curl keeps them 118 s and Chrome 300 s, but servers do not (nginx 75 s, Apache 5 s, most load balancers 60 s), and a connection
    /// that the server is about to close costs a retry.
    package static let idleLimit: Int64 = 60_000_000_000
    /// The sweep does not fire more often than once a second.
    private static let shortestSweep: Int64 = 1_000_000_000

    private enum Stage {
        /// Being connected; nobody has it.
        case dialling
        case leased
        /// `until` is when to close it; nil if it has idled since it opened, until the next sweep sets its time.
        case idle(until: Int64?)
    }

    private struct Connection {
        var origin: OriginID
        var stage: Stage
        /// Leased before `closeIdle` came.
        var isRetired = false
    }

    private struct Origin {
        var dials: [ConnectionID] = []
        /// The most recently used last.
        var idle: [ConnectionID] = []
        /// Dialling, leased and idle.
        var total = 0
        var line = WaitingLine()
    }

    private let maximumPerHost: Int
    private var connections: [ConnectionID: Connection] = [:]
    private var origins: [OriginID: Origin] = [:]
    private var waiters: [LeaseID: WaitingLine.Waiter] = [:]
    private var nextConnection = 0
    private var nextTicket = 0
    /// When the sweep is due; `Int64.max` if its timer was started without knowing the time, nil if it is not running.
    private var sweepDue: Int64?
    private var isShutDown = false

    package init(maximumPerHost: Int) {
        self.maximumPerHost = max(1, maximumPerHost)
    }

    /// Whether a connection to the origin is being made. Who waits while none is waits for others to be done.
    package func isDialling(_ origin: OriginID) -> Bool { !(origins[origin]?.dials.isEmpty ?? true) }

    /// Whom the next connection to the origin is for.
    package func firstInLine(_ origin: OriginID) -> LeaseID? { origins[origin]?.line.first(of: waiters) }

    package func hasIdle(_ origin: OriginID) -> Bool { !(origins[origin]?.idle.isEmpty ?? true) }

    /// How many connections of the origin dial, are leased or idle.
    package func count(_ origin: OriginID) -> Int { origins[origin]?.total ?? 0 }

    /// Whether anything of the origin dials, is leased, idles or waits.
    package func isKnown(_ origin: OriginID) -> Bool { origins[origin] != nil }

    /// True when nothing dials, is leased, idles or waits.
    package var isEmpty: Bool { connections.isEmpty && waiters.isEmpty }

    /// Leases the idle connection that was used last, or answers nil where there is none: `wanted` for the one case that most requests
    /// meet, without a list of actions.
    package mutating func takeIdle(_ origin: OriginID) -> ConnectionID? {
        guard let place = origins.index(forKey: origin), let connection = origins.values[place].idle.popLast(),
            let slot = connections.index(forKey: connection)
        else { return nil }
        connections.values[slot].stage = .leased
        return connection
    }

    package mutating func handle(_ event: Event) -> [Action] {
        switch event {
        case .wanted(let lease, let origin, let priority, let onlyNew): want(lease, origin, priority, onlyNew: onlyNew)
        case .withdrawn(let lease): withdraw(lease)
        case .reprioritised(let lease, let priority): reprioritise(lease, priority)
        case .opened(let connection): open(connection)
        case .dialFailed(let connection): fail(connection)
        case .released(let connection, let reusable, let now, let keepAlive):
            release(connection, reusable: reusable, now: now, keepAlive: keepAlive)
        case .closed(let connection): close(connection)
        case .moved(let connection, let origin): move(connection, origin)
        case .wentStale(let origin): closeIdle(of: origin)
        case .timer(let now): sweep(now)
        case .closeIdle: closeIdle()
        case .shutdown: shutDown()
        }
    }
}

// MARK: - Leases

extension PoolMachine {
    private mutating func want(_ lease: LeaseID, _ origin: OriginID, _ priority: Float, onlyNew: Bool) -> [Action] {
        guard !isShutDown else { return [.refuse(lease, failedDial: nil)] }
        if !onlyNew, let connection = takeIdle(origin) { return [.grant(lease, connection, reused: true)] }
        guard waiters[lease] == nil else { return [] }
        let actions = closeIdle(of: origin)
        join(lease, origin, Self.sortable(priority), onlyNew: onlyNew)
        return actions + dialIfNeeded(origin)
    }

    private mutating func withdraw(_ lease: LeaseID) -> [Action] {
        guard let waiter = waiters.removeValue(forKey: lease) else { return [] }
        let origin = waiter.origin
        origins[origin]?.line.didStrikeOut(waiters: waiters)
        guard let entry = origins[origin], entry.dials.count > entry.line.count, let dial = entry.dials.last else {
            forgetIfEmpty(origin)
            return []
        }
        remove(dial)
        return [.cancelDial(dial)]
    }

    private mutating func reprioritise(_ lease: LeaseID, _ priority: Float) -> [Action] {
        let priority = Self.sortable(priority)
        guard let waiter = waiters[lease], waiter.priority != priority else { return [] }
        waiters.removeValue(forKey: lease)
        origins[waiter.origin]?.line.didStrikeOut(waiters: waiters)
        join(lease, waiter.origin, priority, onlyNew: waiter.onlyNew)
        return []
    }

    private mutating func join(_ lease: LeaseID, _ origin: OriginID, _ priority: Float, onlyNew: Bool) {
        nextTicket += 1
        let waiter = WaitingLine.Waiter(origin: origin, priority: priority, onlyNew: onlyNew, ticket: nextTicket)
        waiters[lease] = waiter
        origins[origin, default: Origin()].line.append(lease, waiter)
    }

    /// A number that can be put in order; what is not one counts as Apple's default priority.
    private static func sortable(_ priority: Float) -> Float { priority.isNaN ? 0.5 : priority }
}

// MARK: - Connections

extension PoolMachine {
    private mutating func open(_ connection: ConnectionID) -> [Action] {
        guard let entry = connections[connection], case .dialling = entry.stage else { return [] }
        origins[entry.origin]?.dials.removeAll { $0 == connection }
        if let lease = origins[entry.origin]?.line.popFirst(from: &waiters) {
            connections[connection]?.stage = .leased
            return [.grant(lease, connection, reused: false)]
        }
        connections[connection]?.stage = .idle(until: nil)
        origins[entry.origin]?.idle.append(connection)
        guard sweepDue == nil else { return [] }
        sweepDue = .max
        return [.startTimer(after: Self.idleLimit)]
    }

    /// Refuses the first in line if the dials that remain are not enough for everybody; the next in line then gets a dial.
    private mutating func fail(_ connection: ConnectionID) -> [Action] {
        guard let entry = connections[connection], case .dialling = entry.stage else { return [] }
        let origin = entry.origin
        var actions: [Action] = []
        if let place = origins.index(forKey: origin),
            origins.values[place].line.count > origins.values[place].dials.count - 1,
            let lease = origins.values[place].line.popFirst(from: &waiters)
        {
            actions.append(.refuse(lease, failedDial: connection))
        }
        remove(connection)
        return actions + dialIfNeeded(origin)
    }

    private mutating func release(
        _ connection: ConnectionID, reusable: Bool, now: Int64, keepAlive: Int64?
    ) -> [Action] {
        guard let slot = connections.index(forKey: connection) else { return [] }
        let entry = connections.values[slot]
        guard case .leased = entry.stage, let place = origins.index(forKey: entry.origin) else { return [] }
        let idleTime = min(keepAlive ?? Self.idleLimit, Self.idleLimit)
        guard reusable, !entry.isRetired, !isShutDown, idleTime > 0,
            origins.values[place].line.isEmpty || !firstWantsNew(entry.origin)
        else {
            remove(connection)
            return [.close(connection)] + dialIfNeeded(entry.origin)
        }
        if let lease = origins.values[place].line.popFirst(from: &waiters) {
            return [.grant(lease, connection, reused: true)]
        }
        connections.values[slot].stage = .idle(until: now + idleTime)
        origins.values[place].idle.append(connection)
        return startSweep(at: now + idleTime, now: now)
    }

    private mutating func move(_ connection: ConnectionID, _ origin: OriginID) -> [Action] {
        guard let entry = connections[connection], entry.origin != origin else { return [] }
        if case .dialling = entry.stage { return [] }
        connections[connection]?.origin = origin
        origins[origin, default: Origin()].total += 1
        origins[entry.origin]?.total -= 1
        var actions = dialIfNeeded(entry.origin)
        if case .idle = entry.stage {
            origins[entry.origin]?.idle.removeAll { $0 == connection }
            if firstWantsNew(origin) {
                remove(connection)
                actions += [.close(connection)] + dialIfNeeded(origin)
            } else if let lease = origins[origin]?.line.popFirst(from: &waiters) {
                connections[connection]?.stage = .leased
                actions.append(.grant(lease, connection, reused: true))
            } else {
                origins[origin]?.idle.append(connection)
            }
        }
        forgetIfEmpty(entry.origin)
        return actions
    }

    private mutating func close(_ connection: ConnectionID) -> [Action] {
        guard let entry = connections[connection] else { return [] }
        if case .dialling = entry.stage { return fail(connection) }
        remove(connection)
        return dialIfNeeded(entry.origin)
    }

    private func firstWantsNew(_ origin: OriginID) -> Bool {
        firstInLine(origin).flatMap { waiters[$0] }?.onlyNew ?? false
    }

    private mutating func dialIfNeeded(_ origin: OriginID) -> [Action] {
        guard let entry = origins[origin], entry.total < maximumPerHost, entry.line.count > entry.dials.count else { return [] }
        let connection = ConnectionID(nextConnection)
        nextConnection += 1
        connections[connection] = Connection(origin: origin, stage: .dialling)
        origins[origin]?.dials.append(connection)
        origins[origin]?.total += 1
        return [.dial(connection, origin)]
    }

    /// Forgets a connection, whatever its stage.
    private mutating func remove(_ connection: ConnectionID) {
        guard let entry = connections.removeValue(forKey: connection) else { return }
        switch entry.stage {
        case .dialling: origins[entry.origin]?.dials.removeAll { $0 == connection }
        case .idle: origins[entry.origin]?.idle.removeAll { $0 == connection }
        case .leased: break
        }
        origins[entry.origin]?.total -= 1
        forgetIfEmpty(entry.origin)
    }

    private mutating func forgetIfEmpty(_ origin: OriginID) {
        guard let entry = origins[origin], entry.total == 0, entry.line.isEmpty else { return }
        origins.removeValue(forKey: origin)
    }
}

// MARK: - The sweep, and the end

extension PoolMachine {
    /// Every idle connection is looked at by one timer, which is only moved when one must close sooner than it is due.
    private mutating func startSweep(at instant: Int64, now: Int64) -> [Action] {
        let delay = max(instant - now, Self.shortestSweep)
        if let sweepDue, sweepDue <= now + delay { return [] }
        sweepDue = now + delay
        return [.startTimer(after: delay)]
    }

    private mutating func sweep(_ now: Int64) -> [Action] {
        guard sweepDue != nil else { return [] }
        sweepDue = nil
        var actions: [Action] = []
        var next: Int64?
        for connection in connections.keys.sorted(by: { $0.number < $1.number }) {
            guard case .idle(let until) = connections[connection]?.stage else { continue }
            let due = until ?? now + Self.idleLimit
            if due <= now {
                remove(connection)
                actions.append(.close(connection))
            } else {
                connections[connection]?.stage = .idle(until: due)
                next = min(next ?? due, due)
            }
        }
        if let next { actions += startSweep(at: next, now: now) }
        return actions
    }

    private mutating func closeIdle(of origin: OriginID) -> [Action] {
        let idle = origins[origin]?.idle ?? []
        for connection in idle { remove(connection) }
        return idle.map { .close($0) }
    }

    private mutating func closeIdle() -> [Action] {
        var actions: [Action] = []
        for connection in connections.keys.sorted(by: { $0.number < $1.number }) {
            switch connections[connection]?.stage {
            case .idle:
                remove(connection)
                actions.append(.close(connection))
            case .leased: connections[connection]?.isRetired = true
            case .dialling, nil: continue
            }
        }
        return actions + stopSweep()
    }

    private mutating func shutDown() -> [Action] {
        guard !isShutDown else { return [] }
        isShutDown = true
        var actions: [Action] = []
        for lease in waiters.keys.sorted(by: { $0.number < $1.number }) {
            actions.append(.refuse(lease, failedDial: nil))
        }
        waiters = [:]
        for origin in origins.keys { origins[origin]?.line = WaitingLine() }
        for connection in connections.keys.sorted(by: { $0.number < $1.number }) {
            guard case .dialling = connections[connection]?.stage else { continue }
            remove(connection)
            actions.append(.cancelDial(connection))
        }
        return actions + closeIdle()
    }

    private mutating func stopSweep() -> [Action] {
        guard sweepDue != nil else { return [] }
        sweepDue = nil
        return [.stopTimer]
    }
}
