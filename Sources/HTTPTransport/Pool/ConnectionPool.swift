// SPDX-License-Identifier: Apache-2.0

package import LoadingModel
package import NIOCore
import TransportMachines

/// Provides connections to loads, and keeps those that can be reused, as ``PoolMachine`` decides.
///
/// One pool belongs to one session. Confined to the session's event loop.
package final class ConnectionPool {
    /// A load's request for a connection; the load checks the request after each wakeup.
    package final class Lease: QueuePosition {
        let id: LeaseID
        var origin: OriginID
        let route: Route
        fileprivate var priority: Float
        fileprivate let onlyNew: Bool
        let control: LoadControl
        /// The adviser for connections that are dialed meanwhile; nil once the request is fulfilled or refused.
        fileprivate(set) var adviser: (any HandshakeAdviser)?
        var connection: (any HTTPConnection)?
        fileprivate(set) var failure: LoadError?
        /// Whether the load's request timeout is paused, because no running dial serves the lease.
        fileprivate var isOnHold = true
        /// The number of this load's questions to the app that are not answered yet.
        fileprivate(set) var questionCount = 0

        private unowned let pool: ConnectionPool

        fileprivate init(
            _ id: LeaseID, _ origin: OriginID, _ route: Route, priority: Float, onlyNew: Bool, _ control: LoadControl,
            _ adviser: (any HandshakeAdviser)?, in pool: ConnectionPool
        ) {
            self.route = route
            self.priority = priority
            self.onlyNew = onlyNew
            self.adviser = adviser
            self.id = id
            self.origin = origin
            self.control = control
            self.pool = pool
        }

        package func appIsAsked(_ isAsked: Bool) { pool.appIsAsked(isAsked, for: self) }

        package func priorityChanged(_ priority: Float) { pool.reprioritize(self, priority) }
        package func suspended() { pool.leaveQueue(self) }
        package func resumed() { pool.resumed(self) }

        /// Whether ``ConnectionPool/take(_:)`` will return a connection or throw.
        package var isAnswered: Bool { connection != nil || failure != nil || control.failure != nil }
    }

    struct Entry {
        var origin: OriginID
        var dial: ConnectionDial?
        /// Whether the dial has started; until then the dial is queued, with its reservation.
        var hasBegun = false
        var connection: (any HTTPConnection)?
        /// The number of times that the system had no descriptor while the process had no other connection to wait for.
        var triesWithoutDescriptor = 0
        /// The timer of the next attempt, or, during a pause, of the first attempt.
        var retryTimer: Scheduled<Void>?
        var isPaused = false
    }

    let loop: any EventLoop
    let dialer: Dialer
    let pace: DialPace
    // Exclusivity is unchecked for the machine and the most used tables: their methods do not call back into the pool.
    @exclusivity(unchecked) var machine: PoolMachine
    @exclusivity(unchecked) var origins: [Route: OriginID] = [:]
    private(set) var routes: [OriginID: Route] = [:]
    /// Whether any task had a delegate of its own that judges servers.
    var hasOwnDelegates = false
    /// The origins that are closed to such tasks, and the connections and dials that are the reason.
    var closedOrigins: [OriginID: Set<ConnectionID>] = [:]
    var servers: [OriginID: KnownServer] = [:]
    /// The routes that share another route's origin, keyed by that origin.
    var aliases: [OriginID: Set<Route>] = [:]
    /// The routes that must not share an origin.
    var separated: Set<Route> = []
    /// The origin that was looked up last, because the next request usually has the same origin.
    var lastOrigin: (route: Route, id: OriginID)?
    @exclusivity(unchecked) var leases: [LeaseID: Lease] = [:]
    @exclusivity(unchecked) var entries: [ConnectionID: Entry] = [:]
    /// The errors of failed dials, until the machine has named the leases to refuse.
    var dialFailures: [ConnectionID: LoadError] = [:]
    private var nextLease = 0
    private var nextOrigin = 0
    /// The number of origins at which unused origins are removed.
    private var originLimit = 256
    private var sweep: Scheduled<Void>?
    /// The timers of blocked queues.
    var queueWatches: [OriginID: Scheduled<Void>] = [:]
    /// Origins whose dial is paused, until their queued loads are notified.
    @exclusivity(unchecked) var pausing: [OriginID] = []
    var isReportingPauses = false
    /// A reusable buffer in which connections serialize a message's head.
    @exclusivity(unchecked) private var scratch: ByteBuffer?
    /// The session's share of the process's budget; created by the first dial.
    var share: ConnectionBudget.Share?
    let budget: ConnectionBudget
    /// The instant that was last reported to the budget.
    var idleSince: Int64?
    private var hasRoom = false
    private var awaitsRoom = false

    package init(loop: any EventLoop, dialer: Dialer, maximumConnectionsPerHost: Int, budget: ConnectionBudget = .shared) {
        self.loop = loop
        self.dialer = dialer
        self.budget = budget
        pace = DialPace(LoopDirectory.executor(of: loop).turns)
        machine = PoolMachine(maximumPerHost: maximumConnectionsPerHost, requestsCapacity: true)
        dialer.network?.changed = { [unowned self] in networkChanged(from: $0, to: $1) }
    }

    func takeScratch() -> ByteBuffer? { scratch.take() }
    func keepScratch(_ buffer: ByteBuffer) { scratch = buffer }

    // MARK: The load's side

    /// Returns an idle connection, if there is one.
    ///
    /// The connection belongs to the load until its exchange ends.
    package func takeIdle(_ route: Route) -> (any HTTPConnection)? {
        guard let id = machine.takeIdle(origin(of: route)) else { return nil }
        reportIdle()
        if let connection = entries[id]?.connection { return connection }
        perform(machine.handle(.closed(id)))
        return nil
    }

    /// Requests a connection: an idle one, a new one, or the first that becomes available.
    ///
    /// With `onlyNew`, only a new connection is accepted, because an idle one turned out to be gone. The connection belongs to the
    /// load until its exchange ends. The load waits until the request is answered; every request must be passed to ``take(_:)``.
    package func acquire(
        _ route: Route, priority: Float, control: LoadControl, adviser: (any HandshakeAdviser)? = nil, onlyNew: Bool = false
    ) -> Lease {
        nextLease += 1
        let lease = Lease(
            LeaseID(nextLease), origin(of: route), route, priority: priority, onlyNew: onlyNew, control, adviser, in: self)
        leases[lease.id] = lease
        control.enter(.queued(lease))
        control.hold(now: .now())
        enqueue(lease)
        return lease
    }

    private func enqueue(_ lease: Lease) {
        perform(
            machine.handle(
                .wanted(
                    lease.id, lease.origin, priority: lease.priority, onlyNew: lease.onlyNew,
                    mayBeShared: mayBeShared(lease.origin, lease.route)))
        )
    }

    fileprivate func appIsAsked(_ isAsked: Bool, for lease: Lease) {
        guard leases[lease.id] === lease, isAsked || lease.questionCount > 0 else { return }
        lease.questionCount += isAsked ? 1 : -1
        perform(machine.handle(.appIsAsked(lease.origin, isAsked)))
    }

    fileprivate func reprioritize(_ lease: Lease, _ priority: Float) {
        lease.priority = priority
        if !lease.isAnswered { perform(machine.handle(.reprioritized(lease.id, priority))) }
    }

    /// Returns the result of a request; withdraws a request that has not been answered.
    package func take(_ lease: Lease) throws(LoadError) -> any HTTPConnection {
        lease.control.enter(.elsewhere)
        let now = NIODeadline.now()
        endHold(lease, now: now)
        lease.control.markProgress(now)
        if let failure = lease.control.failure {
            leases[lease.id] = nil
            if let connection = lease.connection {
                giveBack(connection)
            } else {
                perform(machine.handle(.withdrawn(lease.id, isLate: failure.kind == .timedOut)))
            }
            // Called last, so that open questions pass to the next queued load.
            leave(lease)
            throw failure
        }
        leave(lease)
        if let connection = lease.connection { return connection }
        throw lease.failure ?? LoadError(.unknown, "no connection")
    }

    /// Removes the lease's load from the dials in which it takes part.
    func leave(_ lease: Lease) {
        while lease.questionCount > 0 {
            lease.questionCount -= 1
            perform(machine.handle(.appIsAsked(lease.origin, false)))
        }
        guard let adviser = lease.adviser.take() else { return }
        for id in machine.dials(lease.origin) { entries[id]?.dial?.forEachAdvice { $0.left(adviser) } }
    }

    /// Ends the hold of a lease, so that the request timeout of its load runs again.
    func endHold(_ lease: Lease, now: NIODeadline) {
        guard lease.isOnHold else { return }
        lease.isOnHold = false
        lease.control.endHold(now: now)
    }

    /// Returns the adviser for a dial: the load that is expected to get the connection, and that is also notified of a failure.
    func adviser(for origin: OriginID) -> (any HandshakeAdviser)? {
        machine.firstQueued(origin).flatMap { leases[$0]?.adviser }
    }

    /// Discards a route's idle connections, because one of them turned out to be gone and the others presumably are, too.
    package func wentStale(_ route: Route) {
        if let origin = knownOrigin(of: route) { perform(machine.handle(.wentStale(origin))) }
    }

    /// Takes back a connection that was leased but not used, was found closed, or is kept idle for `keepAlive` nanoseconds at most.
    package func giveBack(_ connection: any HTTPConnection, keepAlive: Int64? = nil, now: NIODeadline = .now()) {
        exchangeEnded(on: connection, reusable: connection.channelIsActive, keepAlive: keepAlive, now: now)
    }

    // MARK: The connections' side

    func exchangeEnded(on connection: any HTTPConnection, reusable: Bool, keepAlive: Int64?, now: NIODeadline) {
        let now = Int64(now.uptimeNanoseconds)
        perform(
            machine.handle(.released(ConnectionID(connection.id), reusable: reusable, now: now, keepAlive: keepAlive))
        )
        if !reusable, connection.initialCapacity == nil { entries[ConnectionID(connection.id)] = nil }
    }

    /// Applies the server's new limit on concurrent exchanges.
    func leaseLimitChanged(_ capacity: Int, of connection: any HTTPConnection, isLasting: Bool = true) {
        let id = ConnectionID(connection.id)
        if isLasting, let origin = entries[id]?.origin { servers[origin, default: KnownServer()].capacity = capacity }
        perform(machine.handle(.leaseLimitChanged(id, capacity)))
    }

    /// Handles a connection that starts no more exchanges.
    func drains(_ connection: any HTTPConnection) {
        forgetAliases(of: ConnectionID(connection.id))
        perform(machine.handle(.drains(ConnectionID(connection.id))))
    }

    func connectionClosed(_ connection: any HTTPConnection) {
        forgetAliases(of: ConnectionID(connection.id))
        guard entries.removeValue(forKey: ConnectionID(connection.id)) != nil else { return }
        perform(machine.handle(.closed(ConnectionID(connection.id))))
    }

    // MARK: The session's side

    package func closeIdle() {
        // The next connection may not be valid for hosts that share another host's connection.
        for id in Array(entries.keys) { forgetAliases(of: id) }
        perform(machine.handle(.closeIdle))
    }

    package func shutDown() {
        dialer.network?.end()
        perform(machine.handle(.shutdown))
        cancelQueueWatches()
        share?.withdraw()
    }

    // MARK: Carrying out actions

    func origin(of route: Route) -> OriginID {
        if let lastOrigin, lastOrigin.route == route { return lastOrigin.id }
        if route.hasOwnDelegate { return origin(ofDelegate: route) }
        if let known = origins[route] {
            lastOrigin = (route, known)
            return known
        }
        let origin = makeOrigin(of: route)
        lastOrigin = (route, origin)
        return origin
    }

    func makeOrigin(of route: Route) -> OriginID {
        if origins.count >= originLimit { forgetOrigins() }
        nextOrigin += 1
        let origin = OriginID(nextOrigin)
        origins[route] = origin
        routes[origin] = route
        return origin
    }

    private func forgetOrigins() {
        origins = origins.filter { machine.isKnown($0.value) }
        routes = routes.filter { machine.isKnown($0.key) }
        servers = servers.filter { routes[$0.key] != nil }
        closedOrigins = closedOrigins.filter { routes[$0.key] != nil }
        lastOrigin = nil
        originLimit = max(256, 2 * origins.count)
    }

    /// Forgets the unused origin of a route.
    func forget(_ origin: OriginID, of route: Route) {
        origins[route] = nil
        routes[origin] = nil
        servers[origin] = nil
    }

    func perform(_ actions: [PoolMachine.Action]) {
        for action in actions { perform(action) }
        reportIdle()
        // Each dial requests its own reservation; the machine learns here whether the reservation was available at once.
        while hasRoom || awaitsRoom {
            let event: PoolMachine.Event = hasRoom ? .capacityGranted : .capacityPending
            hasRoom = false
            awaitsRoom = false
            for action in machine.handle(event) { perform(action) }
        }
        if !pausing.isEmpty, !isReportingPauses { reportPauses() }
    }

    private func perform(_ action: PoolMachine.Action) {
        switch action {
        case .dial(let id, let origin): dial(id, origin)
        case .queueIsBlocked(let origin): watchQueue(of: origin)
        case .grant(let lease, let id, _): grant(lease, id)
        case .refuse(let lease, let failedDial):
            refuse(
                lease,
                failedDial.flatMap { dialFailures[$0] } ?? LoadError(.cancelled, "the session was invalidated")
            )
        case .cancelDial(let id): cancel(id)
        case .close(let id):
            forgetAliases(of: id)
            entries.removeValue(forKey: id)?.connection?.close()
        case .startTimer(let delay):
            sweep?.cancel()
            let bound = NIOLoopBound(self, eventLoop: loop)
            sweep = loop.scheduleTask(in: .nanoseconds(delay)) {
                let pool = bound.value
                pool.perform(pool.machine.handle(.timer(now: Int64(NIODeadline.now().uptimeNanoseconds))))
            }
        case .stopTimer:
            sweep?.cancel()
            sweep = nil
        case .connecting(let id): if let lease = leases[id] { endHold(lease, now: .now()) }
        case .paused(let id): putOnHold(id)
        case .requestCapacity:
            hasRoom = room.ask()
            awaitsRoom = !hasRoom
        case .returnCapacity: room.giveBack()
        }
    }

    private func putOnHold(_ id: LeaseID) {
        guard let lease = leases[id], !lease.isOnHold else { return }
        lease.isOnHold = true
        lease.control.hold(now: .now())
    }

    private func grant(_ id: LeaseID, _ connection: ConnectionID) {
        guard let lease = leases.removeValue(forKey: id) else { return }
        leave(lease)
        lease.connection = entries[connection]?.connection
        if lease.connection == nil { lease.failure = LoadError(.connectionLost, "the connection was lost") }
        lease.control.isSuspended ? leaveQueue(lease) : lease.control.wake()
    }

    func refuse(_ id: LeaseID, _ error: LoadError) {
        guard let lease = leases.removeValue(forKey: id) else { return }
        leave(lease)
        lease.failure = error
        lease.control.wake()
    }
}
