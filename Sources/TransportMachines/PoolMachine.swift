// SPDX-License-Identifier: Apache-2.0

/// Decides which connection serves which request, when to dial another one, and when to close one.
///
/// For every origin, the number of dials, leased and idle connections never exceeds `maximumPerHost`, not counting draining shared
/// connections, whose last request may never end. A request takes the most recently used idle connection, which is the least likely
/// to be stale. If no connection is idle, the request waits, and a dial starts if more requests wait than dials run and the limit
/// allows it. The first connection that becomes available serves the first queued request (late binding), so no dial belongs to a
/// request. A request whose reused connection turned out to be closed asks for a new one: idle connections are closed, and so is a
/// connection that is released while that request is first in the queue.
///
/// As many queued requests as there are dials count as connecting: they wait for the server, and the time counts toward the
/// request timeout. The others are paused: they wait for other loads, and the time does not count as idle. While the app is asked
/// about a connection to the origin, all queued requests are paused.
///
/// A connection carries one lease at a time, or as many as its peer allows at the moment (`PoolMachine+Sharing.swift`).
///
/// If the process has a budget for connections, a dial waits for a place in it. Origins that need a place take turns
/// (`PoolMachine+Capacity.swift`).
///
/// Every `wanted` lease ends exactly once: it is granted, refused, or withdrawn by the shell. After `shutdown`, queued leases are
/// refused, dials are cancelled, idle connections are closed, and leased connections are closed as they are released. From then on
/// `wanted` is refused, and late events return `[]`.
package struct PoolMachine: Sendable {
    package enum Event: Hashable, Sendable {
        /// A request wants a connection. If the connection may be shared, a single dial runs until it is known whether the
        /// connection can carry many leases at once.
        case wanted(LeaseID, OriginID, priority: Float, onlyNew: Bool = false, mayBeShared: Bool = false)
        /// A queued lease is no longer wanted, because of a timeout or for another reason. (A granted one is `released`.)
        case withdrawn(LeaseID, isLate: Bool = false)
        case reprioritized(LeaseID, Float)
        /// A queued lease is suspended or resumed. While it is suspended, it keeps its position, and the leases behind it count as
        /// connecting instead.
        case suspended(LeaseID, Bool)
        /// A dial succeeded. `capacity` is nil for one lease at a time; the capacity of a shared connection applies until its peer
        /// changes it.
        case opened(ConnectionID, capacity: Int? = nil)
        /// The peer of a shared connection changed the number of leases it allows at a time; leases beyond it continue.
        case leaseLimitChanged(ConnectionID, Int)
        /// A shared connection takes no more leases; it is closed after its last one.
        case drains(ConnectionID)
        /// A dial failed because of `lease`, or, if that is nil or no longer queued, for a reason that concerns every lease.
        case dialFailed(ConnectionID, lease: LeaseID? = nil)
        /// Queued leases, and dials, belong to another origin from now on.
        case regrouped([LeaseID], [ConnectionID], OriginID, mayBeShared: Bool)
        /// The lease of a connection ended. `now` is in nanoseconds on any monotonic clock; `keepAlive` is how long the server
        /// promised to keep the idle connection (the `timeout` of its `Keep-Alive` field), in nanoseconds.
        case released(ConnectionID, reusable: Bool, now: Int64, keepAlive: Int64?)
        /// A connection, leased or idle, is gone. For a leased one, no `released` follows.
        case closed(ConnectionID)
        /// A connection, leased or idle, was bound to one holder and belongs to another origin from now on.
        case moved(ConnectionID, OriginID)
        /// A reused connection to the origin was closed: the origin's idle connections are presumed to be closed as well.
        case wentStale(OriginID)
        case timer(now: Int64)
        /// A dial to the origin starts (true) or stops (false) waiting for something other than its server: the app's answer about
        /// the origin, a host name lookup that is queued behind others, or the end of a pause between dials.
        case appIsAsked(OriginID, Bool)
        /// The time that `queueIsBlocked` asked for has passed.
        case queueCheckIsDue(OriginID)
        /// The peer of a shared connection may be gone: new requests may use another connection.
        case isDoubtful(ConnectionID)
        /// The process had no file descriptor for the dial: the dial ended, and its origin queues for a place again.
        case dialHadNoDescriptor(ConnectionID)
        /// A place for the requested dial is granted.
        case capacityGranted
        /// No place is free; `capacityGranted` follows later.
        case capacityPending
        /// Other dials need places: the connections that have been idle longest are closed.
        case capacityNeeded
        /// From now on requests start on new connections: idle connections are closed, and leased ones when they are released.
        case closeIdle
        case shutdown
    }

    package enum Action: Hashable, Sendable {
        /// Starts a dial; however many candidates race in it (``CandidateRace``), it has one outcome.
        case dial(ConnectionID, OriginID)
        /// `reused` means that the connection was idle or has served other requests, so it may turn out to be stale.
        case grant(LeaseID, ConnectionID, reused: Bool)
        /// `failedDial` is the dial whose error explains the refusal; nil if the pool is shut down.
        case refuse(LeaseID, failedDial: ConnectionID?)
        /// The dial's outcome no longer matters; no event about it should follow.
        case cancelDial(ConnectionID)
        /// Closes the connection; a subsequent `closed` is ignored.
        case close(ConnectionID)
        /// Starts or restarts the only timer; the delay is in nanoseconds.
        case startTimer(after: Int64)
        case stopTimer
        /// A running dial is expected to serve a queued lease: from now on, its waiting time counts toward the request timeout.
        case connecting(LeaseID)
        /// The lease waits for other loads again, so its waiting time does not count as idle. (All leases start in this state.)
        case paused(LeaseID)
        /// All queued leases of the origin wait for one shared connection without capacity; check after a while whether that lasts.
        case queueIsBlocked(OriginID)
        /// Asks for a place for one dial; the next event is `capacityGranted`, or `capacityPending` if the place is granted later.
        case requestCapacity
        /// The place is no longer needed.
        case returnCapacity
    }

    /// The maximum idle time of a connection: 60 seconds, in nanoseconds.
    ///
    /// CFNetwork closes idle HTTP/1 connections after about a minute, curl after 118 s, Chrome after 300 s. Servers close them sooner
    /// (nginx 75 s, Apache 5 s, most load balancers 60 s), and a connection that the server is about to close costs a retry.
    package static let idleLimit: Int64 = 60_000_000_000
    /// The minimum interval of the sweep, in nanoseconds.
    static let shortestSweep: Int64 = 1_000_000_000

    enum Stage {
        /// Being connected; not leased.
        case dialing
        case leased
        /// Not leased. `until` is when to close the connection; nil after it opened idle, until the next sweep sets the time.
        case idle(since: Int64, until: Int64?)
    }

    struct Connection {
        var origin: OriginID
        var stage: Stage
        /// The connection takes no more leases: it was leased when `closeIdle` arrived, or is draining.
        var isRetired = false
        /// The state of a shared connection.
        var sharing: Sharing?
    }

    struct Origin {
        var dials: [ConnectionID] = []
        /// The number of open questions to the app.
        var questionCount = 0
        /// The queued leases that are connecting, and those that are suspended.
        var connecting: Set<LeaseID> = []
        var suspended: Set<LeaseID> = []
        /// A lease joined ahead of others, so the connecting leases must be determined again.
        var isReordered = false
        /// The lease that joined last.
        var lastJoined: LeaseID?
        /// The origin waits for a place for a dial.
        var isStarved = false
        /// Idle connections for one lease at a time, the most recently used last.
        var idle: [ConnectionID] = []
        /// Shared connections that take leases.
        var shared: [ConnectionID] = []
        /// The number of leases granted on shared connections.
        var sharedGrants = 0
        /// The value of `sharedGrants` when the queue was found blocked; nil if no check is pending.
        var watchedGrants: Int?
        /// A second shared connection is allowed.
        var mayHaveSecond = false
        /// The next connection may turn out to be shared.
        var mayBeShared = false
        /// The number of dialing, leased and idle connections.
        var total = 0
        /// The number of draining shared connections among them.
        var drainingCount = 0
        var countTowardLimit: Int { total - drainingCount }
        var queue = LeaseQueue()

        /// Keeps a connection idle, unless a lease waits for one.
        mutating func keepIdle(_ connection: ConnectionID) -> Bool {
            guard queue.isEmpty else { return false }
            idle.append(connection)
            return true
        }
    }

    let maximumPerHost: Int
    /// Whether a dial needs a place in the budget.
    let requestsCapacity: Bool
    var connections: [ConnectionID: Connection] = [:]
    var origins: [OriginID: Origin] = [:]
    var waiters: [LeaseID: LeaseQueue.Waiter] = [:]
    private var nextConnection = 0
    var nextTicket = 0
    /// When the sweep is due: nil if its timer is not running, `Int64.max` if the timer was started when the time was unknown.
    var sweepDue: Int64?
    var isShutDown = false
    /// The origins that wait for a place, in order.
    var starved = OriginQueue()
    var isRequestingCapacity = false
    /// The origins whose connecting leases must be determined.
    var unsettled: [OriginID] = []
    var idleCount = 0
    /// A lower bound for the instant at which the longest idle connection became idle; nil if none is idle.
    package internal(set) var idleSince: Int64?

    package init(maximumPerHost: Int, requestsCapacity: Bool = false) {
        self.maximumPerHost = max(1, maximumPerHost)
        self.requestsCapacity = requestsCapacity
    }

    /// The running dials to the origin.
    package func dials(_ origin: OriginID) -> [ConnectionID] { origins[origin]?.dials ?? [] }

    /// The shared connections to the origin that take leases.
    package func shared(_ origin: OriginID) -> [ConnectionID] { origins[origin]?.shared ?? [] }

    /// The lease that the next connection to the origin will serve.
    package mutating func firstQueued(_ origin: OriginID) -> LeaseID? { origins[origin]?.queue.first(of: waiters) }

    package func hasIdle(_ origin: OriginID) -> Bool { !(origins[origin]?.idle.isEmpty ?? true) }

    /// The number of dialing, leased and idle connections of the origin.
    package func count(_ origin: OriginID) -> Int { origins[origin]?.total ?? 0 }

    /// Whether the origin has any connection, dial or queued lease.
    package func isKnown(_ origin: OriginID) -> Bool { origins[origin] != nil }

    /// Whether there is no connection, dial or queued lease.
    package var isEmpty: Bool { connections.isEmpty && waiters.isEmpty }

    /// Leases the most recently used idle connection, or returns nil if no connection is idle.
    ///
    /// This is `wanted` for the most common case, without an array of actions.
    package mutating func takeIdle(_ origin: OriginID) -> ConnectionID? {
        guard let place = origins.index(forKey: origin) else { return nil }
        guard let connection = origins.values[place].idle.popLast() else { return takeShared(place) }
        guard let slot = connections.index(forKey: connection) else { return nil }
        connections.values[slot].stage = .leased
        stoppedIdling()
        return connection
    }

    package mutating func handle(_ event: Event) -> [Action] {
        let actions = decide(event)
        // If the next event may start a dial, it also determines the connecting leases, so that this is done only once.
        return unsettled.isEmpty || actions.last == .requestCapacity ? actions : actions + settle()
    }

    private mutating func decide(_ event: Event) -> [Action] {
        switch event {
        case .wanted(let lease, let origin, let priority, let onlyNew, let mayBeShared):
            want(lease, origin, priority, onlyNew: onlyNew, mayBeShared: mayBeShared)
        case .withdrawn(let lease, let isLate): withdraw(lease, isLate: isLate)
        case .reprioritized(let lease, let priority): reprioritize(lease, priority)
        case .suspended(let lease, let isSuspended): suspend(lease, isSuspended)
        case .opened(let connection, nil): open(connection)
        case .opened(let connection, let capacity?): openShared(connection, capacity)
        case .leaseLimitChanged(let connection, let capacity): changeCapacity(connection, capacity)
        case .drains(let connection): drain(connection)
        case .dialFailed(let connection, let lease): fail(connection, because: lease)
        case .regrouped(let leases, let dials, let origin, let mayBeShared):
            regroup(leases, dials, origin, mayBeShared: mayBeShared)
        case .released(let connection, let reusable, let now, let keepAlive):
            release(connection, reusable: reusable, now: now, keepAlive: keepAlive)
        case .closed(let connection): close(connection)
        case .moved(let connection, let origin): move(connection, origin)
        case .wentStale(let origin): closeIdle(of: origin) + dialIfNeeded(origin)
        case .timer(let now): sweep(now)
        case .appIsAsked(let origin, let isAsked): ask(origin, isAsked)
        case .queueCheckIsDue(let origin): check(blockedQueueOf: origin)
        case .isDoubtful(let connection): doubt(connection)
        case .dialHadNoDescriptor(let connection): starve(connection)
        case .capacityGranted: useCapacity()
        case .capacityPending: []
        case .capacityNeeded: closeLongestIdle()
        case .closeIdle: closeIdle()
        case .shutdown: shutDown()
        }
    }
}

// MARK: - Connections

extension PoolMachine {
    private mutating func open(_ connection: ConnectionID) -> [Action] {
        guard let entry = connections[connection], case .dialing = entry.stage else { return [] }
        dialEnded(connection, entry)
        origins[entry.origin]?.mayBeShared = false
        if let lease = popFirst(entry.origin) {
            connections[connection]?.stage = .leased
            return [.grant(lease, connection, reused: false)] + dialIfNeeded(entry.origin)
        }
        connections[connection]?.stage = .idle(since: 0, until: nil)
        origins[entry.origin]?.idle.append(connection)
        startedIdling(since: 0)
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
            startedIdling(since: now)
            return startSweep(at: now + idleTime, now: now)
        }
        if isKept, !firstWantsNew(entry.origin), let lease = popFirst(entry.origin) {
            return [.grant(lease, connection, reused: true)]
        }
        remove(connection)
        return [.close(connection)] + dialIfNeeded(entry.origin)
    }

    private mutating func move(_ connection: ConnectionID, _ origin: OriginID) -> [Action] {
        // A shared connection cannot be bound to one holder.
        guard let entry = connections[connection], entry.origin != origin, entry.sharing == nil else { return [] }
        if case .dialing = entry.stage { return [] }
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
                stoppedIdling()
                actions.append(.grant(lease, connection, reused: true))
            } else {
                origins[origin]?.idle.append(connection)
            }
        }
        forgetIfEmpty(entry.origin)
        return actions
    }

    private mutating func firstWantsNew(_ origin: OriginID) -> Bool {
        firstQueued(origin).flatMap { waiters[$0] }?.onlyNew ?? false
    }

    mutating func dialIfNeeded(_ origin: OriginID) -> [Action] {
        guard needsDial(origin) else { return [] }
        if requestsCapacity { return waitForCapacity(origin) }
        var actions: [Action] = []
        while needsDial(origin) { actions.append(dial(origin)) }
        return actions
    }

    func needsDial(_ origin: OriginID) -> Bool {
        guard let entry = origins[origin], entry.countTowardLimit < maximumPerHost else { return false }
        guard entry.shared.isEmpty else { return needsSecond(entry) }
        // One dial serves all leases as long as its connection may be shared.
        return entry.queue.count > (entry.mayBeShared && !entry.dials.isEmpty ? .max : entry.dials.count)
    }

    mutating func dial(_ origin: OriginID) -> Action {
        let connection = ConnectionID(nextConnection)
        nextConnection += 1
        connections[connection] = Connection(origin: origin, stage: .dialing)
        origins[origin]?.dials.append(connection)
        origins[origin]?.total += 1
        unsettled.append(origin)
        return .dial(connection, origin)
    }

    mutating func dialEnded(_ connection: ConnectionID, _ entry: Connection) {
        origins[entry.origin]?.dials.removeAll { $0 == connection }
        unsettled.append(entry.origin)
    }

    /// Removes a connection in any stage.
    mutating func remove(_ connection: ConnectionID) {
        guard let entry = connections.removeValue(forKey: connection) else { return }
        switch entry.stage {
        case .dialing: dialEnded(connection, entry)
        case .idle:
            origins[entry.origin]?.idle.removeAll { $0 == connection }
            stoppedIdling()
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
        guard let entry = origins[origin], entry.total == 0, entry.queue.isEmpty else { return }
        if entry.isStarved { starved.remove(origin) }
        origins.removeValue(forKey: origin)
    }
}
