// SPDX-License-Identifier: Apache-2.0

import SeededNumbers
import TransportMachines

/// Drives a pool with random events, performs its actions on a model, and records violated rules.
struct PoolHistory {
    private enum Stage { case dialing, leased, idle }
    private struct Socket {
        var origin: OriginID
        var stage: Stage
    }
    private struct WaitingLease {
        var lease: LeaseID
        var origin: OriginID
        var priority: Float
        var onlyNew: Bool
        var turn: Int
    }

    private(set) var faults: [String] = []
    private var entries: [(note: String, event: PoolMachine.Event, actions: [PoolMachine.Action])] = []
    var log: String { entries.map { "\($0.note)\($0.event) -> \($0.actions)" }.joined(separator: "\n") }
    private var random: SeededNumbers
    private let limit: Int
    private var pool: PoolMachine
    private var sockets: [Int: Socket] = [:]
    private var waitingLeases: [WaitingLease] = []
    private var answered: Set<Int> = []
    private var timerDue: Int64?
    private var now: Int64 = 0
    private var leaseCount = 0
    private var turn = 0
    private var highestSocket = -1
    /// For each origin, how many leases of the highest priority were served in a row while others waited.
    private var runs: [OriginID: Int] = [:]
    private var connecting: Set<LeaseID> = []
    private var questions: [OriginID: Int] = [:]
    private let requestsCapacity: Bool
    private var isRequestingCapacity = false
    private var refusedByName: LeaseID?

    init(seed: UInt64) {
        random = SeededNumbers(seed: seed)
        limit = Int.random(in: 1...4, using: &random)
        requestsCapacity = Bool.random(using: &random)
        pool = PoolMachine(maximumPerHost: limit, requestsCapacity: requestsCapacity)
    }

    mutating func run(steps: Int) {
        for _ in 0..<steps where faults.isEmpty { step() }
        send(.shutdown)
        for number in sockets.keys.sorted() where sockets[number]?.stage == .leased {
            sockets[number]?.stage = .idle
            send(.released(ConnectionID(number), reusable: Bool.random(using: &random), now: now, keepAlive: nil))
        }
        if isRequestingCapacity {
            isRequestingCapacity = false
            if pool.handle(.capacityGranted) != [.returnCapacity] { faults.append("kept room after the end") }
        }
        if !sockets.isEmpty { faults.append("sockets leaked: \(sockets)") }
        if !waitingLeases.isEmpty { faults.append("leases neither granted nor refused: \(waitingLeases)") }
        if answered.count != leaseCount { faults.append("\(leaseCount) leases, \(answered.count) answers") }
        if timerDue != nil { faults.append("the timer still runs") }
        if !pool.isEmpty { faults.append("the pool is not empty") }
    }

    private mutating func step() {
        now += Int64.random(in: 0...4_000_000_000, using: &random)
        if let timerDue, timerDue <= now {
            self.timerDue = nil
            return send(.timer(now: now))
        }
        if isRequestingCapacity, Int.random(in: 0..<3, using: &random) == 0 {
            isRequestingCapacity = false
            return send(.capacityGranted)
        }
        switch Int.random(in: 0..<20, using: &random) {
        case 0..<6: requestLease()
        case 6: withdraw()
        case 7:
            guard let index = waitingLeases.indices.randomElement(using: &random) else { return }
            reprioritize(index, to: [0.1, 0.5, 0.9].randomElement(using: &random) ?? 0.5)
        case 8..<12:
            guard let number = anySocket(.dialing) else { return }
            send(.opened(ConnectionID(number)))
        case 12:
            guard let number = anySocket(.dialing) else { return }
            sockets[number] = nil
            // The failure may be one lease's own.
            refusedByName = Bool.random(using: &random) ? waitingLeases.randomElement(using: &random)?.lease : nil
            send(.dialFailed(ConnectionID(number), lease: refusedByName))
            refusedByName = nil
        case 13..<17:
            guard let number = anySocket(.leased) else { return }
            let keepAlive = [nil, 0, 2_000_000_000, 30_000_000_000, Int64.max].randomElement(using: &random) ?? nil
            let reusable = Int.random(in: 0..<4, using: &random) > 0
            sockets[number]?.stage = .idle
            send(.released(ConnectionID(number), reusable: reusable, now: now, keepAlive: keepAlive))
        case 17:
            guard let number = anySocket(.leased) ?? anySocket(.idle) else { return }
            sockets[number] = nil
            send(.closed(ConnectionID(number)))
        case 18: sendSomethingLate()
        default:
            let origin = OriginID(Int.random(in: 0..<2, using: &random))
            switch Int.random(in: 0..<12, using: &random) {
            case 0: send(.closeIdle)
            case 1: send(.wentStale(origin))
            case 2: send(.capacityNeeded)
            case 3:
                guard let number = anySocket(.dialing), requestsCapacity else { return }
                sockets[number] = nil
                send(.dialHadNoDescriptor(ConnectionID(number)))
            case 4:
                guard pool.isKnown(origin), pool.firstQueued(origin) != nil else { return }
                questions[origin, default: 0] += 1
                send(.appIsAsked(origin, true))
            case 5, 6, 7: answerQuestion(origin)
            case 8, 9, 10: regroup(from: origin)
            default: break
            }
        }
    }

    private mutating func answerQuestion(_ origin: OriginID) {
        guard questions[origin, default: 0] > 0 else { return }
        questions[origin, default: 0] -= 1
        send(.appIsAsked(origin, false))
    }

    /// Moves some leases and dials of an origin to the other one.
    private mutating func regroup(from origin: OriginID) {
        let other = OriginID(1 - origin.number)
        let leases = waitingLeases.indices.filter {
            waitingLeases[$0].origin == origin && Bool.random(using: &random)
        }
        let dials = sockets.keys.sorted().filter { sockets[$0]?.origin == origin && sockets[$0]?.stage == .dialing }
        let room = limit - sockets.values.count { $0.origin == other }
        let chosen = dials.prefix(Int.random(in: 0...leases.count, using: &random))
        for dial in chosen.prefix(max(0, room)) { sockets[dial]?.origin = other }
        let names = leases.map { waitingLeases[$0].lease }
        let inOrder = leases.sorted { left, right in
            let (left, right) = (waitingLeases[left], waitingLeases[right])
            return (-left.priority, left.turn) < (-right.priority, right.turn)
        }
        for index in inOrder {
            turn += 1
            waitingLeases[index].origin = other
            waitingLeases[index].turn = turn
        }
        send(.regrouped(names.shuffled(using: &random), chosen.map { ConnectionID($0) }, other, mayBeShared: false))
    }

    /// Ends the questions of origins without waiting leases, because a question is asked only for a waiting lease.
    private mutating func endQuestions() {
        for origin in [OriginID(0), OriginID(1)] where !waitingLeases.contains(where: { $0.origin == origin }) {
            while questions[origin, default: 0] > 0 { answerQuestion(origin) }
        }
    }

    private mutating func requestLease() {
        let lease = LeaseID(leaseCount)
        let origin = OriginID(Int.random(in: 0..<2, using: &random))
        let priority: Float = [0.1, 0.5, 0.5, 0.9].randomElement(using: &random) ?? 0.5
        leaseCount += 1
        turn += 1
        let onlyNew = Int.random(in: 0..<8, using: &random) == 0
        waitingLeases.append(WaitingLease(lease: lease, origin: origin, priority: priority, onlyNew: onlyNew, turn: turn))
        send(.wanted(lease, origin, priority: priority, onlyNew: onlyNew))
    }

    private mutating func withdraw() {
        guard let index = waitingLeases.indices.randomElement(using: &random) else { return }
        let lease = waitingLeases.remove(at: index).lease
        answered.insert(lease.number)
        send(.withdrawn(lease))
    }

    private mutating func reprioritize(_ index: Int, to priority: Float) {
        if waitingLeases[index].priority != priority {
            turn += 1
            waitingLeases[index].priority = priority
            waitingLeases[index].turn = turn
        }
        send(.reprioritized(waitingLeases[index].lease, priority))
    }

    /// Sends an event for a connection that is gone, which must have no effect.
    private mutating func sendSomethingLate() {
        let gone = (0...max(0, highestSocket)).filter { sockets[$0] == nil }
        guard let number = gone.randomElement(using: &random) else { return }
        let connection = ConnectionID(number)
        let late: [PoolMachine.Event] = [
            .opened(connection), .dialFailed(connection), .closed(connection),
            .released(connection, reusable: true, now: now, keepAlive: nil),
        ]
        let event = late.randomElement(using: &random) ?? .opened(connection)
        let actions = pool.handle(event)
        entries.append(("late ", event, actions))
        if !actions.isEmpty { faults.append("a late event caused actions") }
    }

    private mutating func send(_ event: PoolMachine.Event) {
        let actions = pool.handle(event)
        entries.append(("", event, actions))
        if case .opened(let connection, _) = event { sockets[connection.number]?.stage = .idle }
        for action in actions { perform(action) }
        for origin in runs.keys where !pool.isKnown(origin) { runs[origin] = nil }
        // The shell reports at once that capacity is pending.
        if actions.contains(.requestCapacity) { return send(.capacityPending) }
        checkRules()
        endQuestions()
    }

    private mutating func perform(_ action: PoolMachine.Action) {
        switch action {
        case .dial(let connection, let origin):
            if connection.number <= highestSocket { faults.append("a connection number came twice") }
            highestSocket = connection.number
            sockets[connection.number] = Socket(origin: origin, stage: .dialing)
        case .grant(let lease, let connection, let reused): grant(lease, connection, reused: reused)
        case .refuse(let lease, _):
            guard let index = waitingLeases.firstIndex(where: { $0.lease == lease }) else {
                faults.append("refused a lease that does not wait")
                return
            }
            let refused = waitingLeases.remove(at: index)
            if lease != refusedByName { served(refused) }
            if !answered.insert(lease.number).inserted { faults.append("answered twice") }
        case .cancelDial(let connection):
            if sockets.removeValue(forKey: connection.number)?.stage != .dialing { faults.append("cancelled an open one") }
        case .close(let connection):
            if sockets.removeValue(forKey: connection.number)?.stage != .idle { faults.append("closed a connection in use") }
        case .startTimer(let delay):
            if delay < 1_000_000_000 { faults.append("the sweep is too frequent") }
            timerDue = now + delay
        case .queueIsBlocked: faults.append("no connection here is shared")
        case .stopTimer:
            if timerDue == nil { faults.append("stopped a timer that does not run") }
            timerDue = nil
        case .connecting(let lease):
            if !connecting.insert(lease).inserted { faults.append("\(lease) was connecting already") }
        case .paused(let lease):
            if connecting.remove(lease) == nil { faults.append("\(lease) was paused already") }
        case .requestCapacity:
            if isRequestingCapacity { faults.append("asked twice for room") }
            isRequestingCapacity = true
        case .returnCapacity: break
        }
    }

    private mutating func served(_ waitingLease: WaitingLease) {
        let others = waitingLeases.filter { $0.origin == waitingLease.origin }
        let isHighest = !others.contains { $0.priority > waitingLease.priority }
        runs[waitingLease.origin] =
            isHighest && others.contains { $0.priority < waitingLease.priority } ? runs[waitingLease.origin, default: 0] + 1 : 0
    }

    private mutating func grant(_ lease: LeaseID, _ connection: ConnectionID, reused: Bool) {
        guard let index = waitingLeases.firstIndex(where: { $0.lease == lease }) else {
            faults.append("granted to a lease that does not wait")
            return
        }
        let waitingLease = waitingLeases.remove(at: index)
        if !answered.insert(lease.number).inserted { faults.append("answered twice") }
        let others = waitingLeases.filter { $0.origin == waitingLease.origin }
        // After seven leases of the highest priority, the first lease of a lower priority has its turn.
        let highest = others.map(\.priority).max() ?? 0
        let isPatient =
            runs[waitingLease.origin, default: 0] >= 7 && waitingLease.priority < highest
            && !others.contains { $0.priority < highest && $0.turn < waitingLease.turn }
        let isOvertaking = others.contains {
            $0.priority > waitingLease.priority && !isPatient
                || $0.priority == waitingLease.priority && $0.turn < waitingLease.turn
        }
        served(waitingLease)
        if reused, waitingLease.onlyNew { faults.append("granted an old connection for a new one") }
        if isOvertaking { faults.append("\(lease) was not first in the queue") }
        if sockets[connection.number]?.stage != .idle || sockets[connection.number]?.origin != waitingLease.origin {
            faults.append("granted a connection that is not free for it")
        }
        sockets[connection.number]?.stage = .leased
    }

    private mutating func checkRules() {
        for origin in [OriginID(0), OriginID(1)] {
            let own = sockets.values.filter { $0.origin == origin }
            let waiting = waitingLeases.count { $0.origin == origin }
            let dials = own.count { $0.stage == .dialing }
            if own.count > limit { faults.append("above the limit") }
            if waiting > 0, own.contains(where: { $0.stage == .idle }) { faults.append("a lease waits beside an idle one") }
            let standing = connecting.count { lease in waitingLeases.contains { $0.lease == lease && $0.origin == origin } }
            if standing != (questions[origin, default: 0] > 0 ? 0 : min(dials, waiting)) {
                faults.append("\(standing) of \(waiting) are connecting by \(dials) dials")
            }
            if waiting > dials, own.count < limit, !isRequestingCapacity {
                faults.append("a lease waits below the limit without a dial")
            }
        }
        if timerDue == nil, sockets.values.contains(where: { $0.stage == .idle }) { faults.append("idle without a sweep") }
    }

    private mutating func anySocket(_ stage: Stage) -> Int? {
        sockets.keys.sorted().filter { sockets[$0]?.stage == stage }.randomElement(using: &random)
    }
}
