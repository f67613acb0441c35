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
/// It holds for every origin: dials, leased and idle connections together are never more than `maximumPerHost`, not counting shared
/// ones that take no more requests and may have one that never ends; a request takes the most recently used idle connection, since
/// that is the least likely to be stale; without one it waits, and a dial is begun if more wait than dial and the limit allows; the
/// first connection that becomes free serves the first in line (late binding), so no dial belongs to a request. A request that found
/// its connection gone wants a new one: those that idle are closed, and one that becomes free while it is first in line makes room.
///
/// Of those that wait, as many as there are dials are connecting: their time is the server's. The others are held up, and all of them
/// while the app is asked about a connection to the origin.
///
/// A connection carries one lease at a time, or as many as its peer allows, which may change (`PoolMachine+Sharing.swift`).
///
/// Where the process has a budget for connections, a dial begins when there is room for it; origins that want one take turns
/// (`PoolMachine+Room.swift`).
///
/// Every `wanted` lease is answered exactly once: granted, refused, or withdrawn by the shell. It ends with `shutdown`: what waits is
/// refused, what idles or dials is closed, and connections still leased are closed as they are released. From then on `wanted` is
/// refused, and late events are answered with `[]`.
package struct PoolMachine: Sendable {
    package enum Event: Hashable, Sendable {
        /// Where it may be shared, a connection to the origin may turn out to carry many leases at once: one is dialled alone until
        /// that is known.
        case wanted(LeaseID, OriginID, priority: Float, onlyNew: Bool = false, mayBeShared: Bool = false)
        /// A lease that still waits is not wanted any more, because its time is up or for another reason. (A granted one is `released`.)
        case withdrawn(LeaseID, isLate: Bool = false)
        case reprioritised(LeaseID, Float)
        /// A lease that waits is suspended and keeps its place, or is resumed. Meanwhile those behind it are connecting in its stead.
        case suspended(LeaseID, Bool)
        /// A dial came to a connection: of one lease at a time, or shared, and then of so many until the peer says how many.
        case opened(ConnectionID, capacity: Int? = nil)
        /// The peer of a shared connection allows another number of leases at a time; what is beyond it goes on.
        case capacityChanged(ConnectionID, Int)
        /// A shared connection takes no more leases; it is closed when those that it has are over.
        case drains(ConnectionID)
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
        /// A connection to the origin that is being made waits for others than its server, or does so no more: the app is asked about it, or
        /// its name waits for other look-ups.
        case appIsAsked(OriginID, Bool)
        /// The time is up that began with `lineStands`.
        case lineWasWatched(OriginID)
        /// The peer of a shared connection may be gone: those who come now may have another one.
        case isDoubtful(ConnectionID)
        /// The process had no descriptor for the dial: it is over, and its origin asks for room again.
        case dialHadNoRoom(ConnectionID)
        /// There is room for the dial that was asked for.
        case roomMade
        /// There is none yet; `roomMade` follows some time.
        case roomAwaited
        /// Others need the room of the connections that idled longest.
        case roomNeeded
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
        /// A waiting lease is served by a dial that runs, as things stand: the time it waits is its server's from here on.
        case connecting(LeaseID)
        /// It waits for others again. (So does each lease at first.)
        case heldUp(LeaseID)
        /// All that wait for the origin wait for one shared connection that has no place: whether that lasts is to be looked at after a while.
        case lineStands(OriginID)
        /// Asks for room for one dial; the next event is `roomMade`, or `roomAwaited` where that comes later.
        case askForRoom
        /// The room that was made is not needed any more.
        case giveRoomBack
    }

    /// How long a connection may idle: 60 seconds, in nanoseconds.
    ///
    /// CFNetwork closes idle HTTP/1 connections after about a minute;
    /// curl keeps them 118 s and Chrome 300 s, but servers do not (nginx 75 s, Apache 5 s, most load balancers 60 s), and a connection
    /// that the server is about to close costs a retry.
    package static let idleLimit: Int64 = 60_000_000_000
    /// The sweep does not fire more often than once a second.
    static let shortestSweep: Int64 = 1_000_000_000

    enum Stage {
        /// Being connected; nobody has it.
        case dialling
        case leased
        /// It has no lease. `until` is when to close it; nil if it has idled since it opened, until the next sweep sets its time.
        case idle(since: Int64, until: Int64?)
    }

    struct Connection {
        var origin: OriginID
        var stage: Stage
        /// It takes no more leases: leased before `closeIdle` came, or draining.
        var isRetired = false
        /// What is known of a connection that is shared.
        var sharing: Sharing?
    }

    struct Origin {
        var dials: [ConnectionID] = []
        /// How many questions the app thinks about.
        var questionCount = 0
        /// Leases in the line that are connecting, and that are suspended.
        var connecting: Set<LeaseID> = []
        var suspended: Set<LeaseID> = []
        /// Somebody joined the line before others, so that who is connecting must be found out anew.
        var isReordered = false
        /// Who joined last.
        var lastJoined: LeaseID?
        /// It waits for room for a dial.
        var isStarved = false
        /// Those of one lease at a time; the most recently used last.
        var idle: [ConnectionID] = []
        /// Those that are shared, and take leases.
        var shared: [ConnectionID] = []
        /// How many leases shared connections have got.
        var sharedGrants = 0
        /// That number when the line was seen to stand; nil where nothing is looked at.
        var watchedGrants: Int?
        /// The shared connection may have a second one beside it.
        var mayHaveSecond = false
        /// The next connection may turn out to be a shared one.
        var mayBeShared = false
        /// Dialling, leased and idle.
        var total = 0
        /// Of these, shared ones that take no more leases.
        var drainingCount = 0
        var takersCount: Int { total - drainingCount }
        var line = WaitingLine()

        /// Lets a connection idle, unless somebody waits for one.
        mutating func keepIdle(_ connection: ConnectionID) -> Bool {
            guard line.isEmpty else { return false }
            idle.append(connection)
            return true
        }
    }

    private let maximumPerHost: Int
    /// Whether a dial needs room.
    let asksForRoom: Bool
    var connections: [ConnectionID: Connection] = [:]
    var origins: [OriginID: Origin] = [:]
    var waiters: [LeaseID: WaitingLine.Waiter] = [:]
    private var nextConnection = 0
    var nextTicket = 0
    /// When the sweep is due; `Int64.max` if its timer was started without knowing the time, nil if it is not running.
    var sweepDue: Int64?
    var isShutDown = false
    /// Those that wait for room, in their turn.
    var starved = OriginQueue()
    var isAskingForRoom = false
    /// Of which it is to be found out who is connecting.
    var unsettled: [OriginID] = []
    private var idleCount = 0
    /// Since when connections have idled without a break, or longer ago than the one that idles longest; nil where none idles.
    package internal(set) var idleSince: Int64?

    package init(maximumPerHost: Int, asksForRoom: Bool = false) {
        self.maximumPerHost = max(1, maximumPerHost)
        self.asksForRoom = asksForRoom
    }

    /// The dials to the origin that run.
    package func dials(_ origin: OriginID) -> [ConnectionID] { origins[origin]?.dials ?? [] }

    /// The connections to the origin that are shared and take more.
    package func shared(_ origin: OriginID) -> [ConnectionID] { origins[origin]?.shared ?? [] }

    /// Whom the next connection to the origin is for.
    package mutating func firstInLine(_ origin: OriginID) -> LeaseID? { origins[origin]?.line.first(of: waiters) }

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
        guard let place = origins.index(forKey: origin) else { return nil }
        guard let connection = origins.values[place].idle.popLast() else { return takeShared(place) }
        guard let slot = connections.index(forKey: connection) else { return nil }
        connections.values[slot].stage = .leased
        idledNoMore()
        return connection
    }

    package mutating func handle(_ event: Event) -> [Action] {
        let actions = decide(event)
        // Where a dial may begin with the next event, who is connecting is found out then, and not twice.
        return unsettled.isEmpty || actions.last == .askForRoom ? actions : actions + settle()
    }

    private mutating func decide(_ event: Event) -> [Action] {
        switch event {
        case .wanted(let lease, let origin, let priority, let onlyNew, let mayBeShared):
            want(lease, origin, priority, onlyNew: onlyNew, mayBeShared: mayBeShared)
        case .withdrawn(let lease, let isLate): withdraw(lease, isLate: isLate)
        case .reprioritised(let lease, let priority): reprioritise(lease, priority)
        case .suspended(let lease, let isSuspended): suspend(lease, isSuspended)
        case .opened(let connection, nil): open(connection)
        case .opened(let connection, let capacity?): openShared(connection, capacity)
        case .capacityChanged(let connection, let capacity): changeCapacity(connection, capacity)
        case .drains(let connection): drain(connection)
        case .dialFailed(let connection): fail(connection)
        case .released(let connection, let reusable, let now, let keepAlive):
            release(connection, reusable: reusable, now: now, keepAlive: keepAlive)
        case .closed(let connection): close(connection)
        case .moved(let connection, let origin): move(connection, origin)
        case .wentStale(let origin): closeIdle(of: origin) + dialIfNeeded(origin)
        case .timer(let now): sweep(now)
        case .appIsAsked(let origin, let isAsked): ask(origin, isAsked)
        case .lineWasWatched(let origin): look(atLineOf: origin)
        case .isDoubtful(let connection): doubt(connection)
        case .dialHadNoRoom(let connection): starve(connection)
        case .roomMade: useRoom()
        case .roomAwaited: []
        case .roomNeeded: makeRoom()
        case .closeIdle: closeIdle()
        case .shutdown: shutDown()
        }
    }
}

// MARK: - Connections

extension PoolMachine {
    private mutating func open(_ connection: ConnectionID) -> [Action] {
        guard let entry = connections[connection], case .dialling = entry.stage else { return [] }
        dialEnded(connection, entry)
        origins[entry.origin]?.mayBeShared = false
        if let lease = popFirst(entry.origin) {
            connections[connection]?.stage = .leased
            return [.grant(lease, connection, reused: false)] + dialIfNeeded(entry.origin)
        }
        connections[connection]?.stage = .idle(since: 0, until: nil)
        origins[entry.origin]?.idle.append(connection)
        idles(since: 0)
        return startFirstSweep()
    }

    mutating func startFirstSweep() -> [Action] {
        guard sweepDue == nil else { return [] }
        sweepDue = .max
        return [.startTimer(after: Self.idleLimit)]
    }

    private mutating func release(
        _ connection: ConnectionID, reusable: Bool, now: Int64, keepAlive: Int64?
    ) -> [Action] {
        guard let slot = connections.index(forKey: connection) else { return [] }
        let entry = connections.values[slot]
        guard entry.sharing == nil else { return releaseShared(connection, reusable: reusable, now: now) }
        guard case .leased = entry.stage, let place = origins.index(forKey: entry.origin) else { return [] }
        let idleTime = min(keepAlive ?? Self.idleLimit, Self.idleLimit)
        let isKept = reusable && !entry.isRetired && !isShutDown && idleTime > 0
        if isKept, origins.values[place].keepIdle(connection) {
            connections.values[slot].stage = .idle(since: now, until: now + idleTime)
            idles(since: now)
            return startSweep(at: now + idleTime, now: now)
        }
        if isKept, !firstWantsNew(entry.origin), let lease = popFirst(entry.origin) {
            return [.grant(lease, connection, reused: true)]
        }
        remove(connection)
        return [.close(connection)] + dialIfNeeded(entry.origin)
    }

    private mutating func move(_ connection: ConnectionID, _ origin: OriginID) -> [Action] {
        // A shared connection is nobody's own.
        guard let entry = connections[connection], entry.origin != origin, entry.sharing == nil else { return [] }
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
            } else if let lease = popFirst(origin) {
                connections[connection]?.stage = .leased
                idledNoMore()
                actions.append(.grant(lease, connection, reused: true))
            } else {
                origins[origin]?.idle.append(connection)
            }
        }
        forgetIfEmpty(entry.origin)
        return actions
    }

    private mutating func firstWantsNew(_ origin: OriginID) -> Bool {
        firstInLine(origin).flatMap { waiters[$0] }?.onlyNew ?? false
    }

    mutating func dialIfNeeded(_ origin: OriginID) -> [Action] {
        guard needsDial(origin) else { return [] }
        if asksForRoom { return waitForRoom(origin) }
        var actions: [Action] = []
        while needsDial(origin) { actions.append(dial(origin)) }
        return actions
    }

    func needsDial(_ origin: OriginID) -> Bool {
        guard let entry = origins[origin], entry.takersCount < maximumPerHost else { return false }
        guard entry.shared.isEmpty else { return needsSecond(entry) }
        // One dial is for all, as long as it may come to a connection for all.
        return entry.line.count > (entry.mayBeShared && !entry.dials.isEmpty ? .max : entry.dials.count)
    }

    mutating func dial(_ origin: OriginID) -> Action {
        let connection = ConnectionID(nextConnection)
        nextConnection += 1
        connections[connection] = Connection(origin: origin, stage: .dialling)
        origins[origin]?.dials.append(connection)
        origins[origin]?.total += 1
        unsettled.append(origin)
        return .dial(connection, origin)
    }

    mutating func dialEnded(_ connection: ConnectionID, _ entry: Connection) {
        origins[entry.origin]?.dials.removeAll { $0 == connection }
        unsettled.append(entry.origin)
    }

    /// Forgets a connection, whatever its stage.
    mutating func remove(_ connection: ConnectionID) {
        guard let entry = connections.removeValue(forKey: connection) else { return }
        switch entry.stage {
        case .dialling: dialEnded(connection, entry)
        case .idle:
            origins[entry.origin]?.idle.removeAll { $0 == connection }
            idledNoMore()
        case .leased: break
        }
        if entry.sharing != nil {
            origins[entry.origin]?.shared.removeAll { $0 == connection }
            if entry.isRetired { origins[entry.origin]?.drainingCount -= 1 }
        }
        origins[entry.origin]?.total -= 1
        forgetIfEmpty(entry.origin)
    }

    mutating func forgetIfEmpty(_ origin: OriginID) {
        guard let entry = origins[origin], entry.total == 0, entry.line.isEmpty else { return }
        if entry.isStarved { starved.remove(origin) }
        origins.removeValue(forKey: origin)
    }

    mutating func idles(since instant: Int64) {
        idleCount += 1
        if idleCount == 1 { idleSince = instant }
    }

    mutating func idledNoMore() {
        idleCount -= 1
        if idleCount == 0 { idleSince = nil }
    }
}
