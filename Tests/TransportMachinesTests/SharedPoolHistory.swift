// SPDX-License-Identifier: Apache-2.0

import SeededNumbers
import TransportMachines

/// Sends random events to a pool whose connections can carry several leases, and records violated rules.
struct SharedPoolHistory {
    private enum Stage {
        case dialing
        case single(isLeased: Bool)
        case shared(capacity: Int, leaseCount: Int)
    }

    private struct Socket {
        var origin: OriginID
        var stage: Stage
        /// Whether the connection takes no more leases.
        var isRetired = false

        var leaseCount: Int {
            switch stage {
            case .dialing: 0
            case .single(let isLeased): isLeased ? 1 : 0
            case .shared(_, let count): count
            }
        }

        var isShared: Bool { if case .shared = stage { true } else { false } }
        var isDial: Bool { if case .dialing = stage { true } else { false } }
    }

    private(set) var faults: [String] = []
    private var entries: [String] = []
    var log: String { entries.joined(separator: "\n") }
    private var random: SeededNumbers
    private let limit: Int
    private var pool: PoolMachine
    private var sockets: [Int: Socket] = [:]
    /// The waiting leases and their origins.
    private var waitingLeases: [LeaseID: OriginID] = [:]
    private var answered: Set<LeaseID> = []
    /// The origins whose queues are watched; `exemptOrigins` are those that may have had a reason for a second connection.
    private var watched: Set<OriginID> = []
    private var exemptOrigins: Set<OriginID> = []
    private(set) var seconds = 0
    private var leaseCount = 0
    private var timerDue: Int64?
    private var now: Int64 = 0
    private(set) var sharedGrants = 0

    init(seed: UInt64) {
        random = SeededNumbers(seed: seed)
        limit = Int.random(in: 1...4, using: &random)
        pool = PoolMachine(maximumPerHost: limit)
    }

    mutating func run(steps: Int) {
        for _ in 0..<steps where faults.isEmpty { step() }
        send(.shutdown)
        for number in sockets.keys.sorted() {
            while let socket = sockets[number], socket.leaseCount > 0 { release(number, reusable: Bool.random(using: &random)) }
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
        switch Int.random(in: 0..<22, using: &random) {
        case 20:
            guard let origin = watched.min(by: { $0.number < $1.number }) else { return }
            watched.remove(origin)
            exemptOrigins.insert(origin)
            send(.queueCheckIsDue(origin))
        case 21:
            guard let number = any({ $0.isShared && !$0.isRetired }), let origin = sockets[number]?.origin else { return }
            exemptOrigins.insert(origin)
            send(.isDoubtful(ConnectionID(number)))
        case 0..<7: requestLease()
        case 7: if let lease = waitingLeases.keys.min(by: { $0.number < $1.number }) { withdraw(lease) }
        case 8..<11: if let number = any({ $0.isDial }) { open(number) }
        case 11:
            guard let number = any({ $0.isDial }) else { return }
            sockets[number] = nil
            send(.dialFailed(ConnectionID(number)))
        case 12..<15:
            if let number = any({ $0.leaseCount > 0 }) { release(number, reusable: Int.random(in: 0..<6, using: &random) > 0) }
        case 15, 16:
            guard let number = any({ $0.isShared }), case .shared(_, let count)? = sockets[number]?.stage else { return }
            let capacity = Int.random(in: 0...4, using: &random)
            sockets[number]?.stage = .shared(capacity: capacity, leaseCount: count)
            send(.leaseLimitChanged(ConnectionID(number), capacity))
        case 17:
            guard let number = any({ $0.isShared && !$0.isRetired }) else { return }
            sockets[number]?.isRetired = true
            send(.drains(ConnectionID(number)))
        case 18:
            guard let number = any({ !$0.isDial }) else { return }
            sockets[number] = nil
            send(.closed(ConnectionID(number)))
        default:
            switch Int.random(in: 0..<7, using: &random) {
            case 0:
                for number in sockets.keys where sockets[number]?.leaseCount ?? 0 > 0 { sockets[number]?.isRetired = true }
                send(.closeIdle)
            case 1: send(.wentStale(OriginID(0)))
            case 2, 3, 4: regroup()
            default: send(.capacityNeeded)
            }
        }
    }

    private mutating func requestLease() {
        let lease = LeaseID(leaseCount)
        leaseCount += 1
        let origin = OriginID(Int.random(in: 0..<2, using: &random))
        waitingLeases[lease] = origin
        let priority: Float = Bool.random(using: &random) ? 0.5 : 0.9
        let onlyNew = Int.random(in: 0..<8, using: &random) == 0
        send(.wanted(lease, origin, priority: priority, onlyNew: onlyNew, mayBeShared: true))
    }

    /// Moves some leases and dials of one origin to the other.
    private mutating func regroup() {
        let origin = OriginID(Int.random(in: 0..<2, using: &random))
        let other = OriginID(1 - origin.number)
        let leases = waitingLeases.keys.sorted { $0.number < $1.number }.filter {
            waitingLeases[$0] == origin && Bool.random(using: &random)
        }
        let dials = sockets.keys.sorted().filter { sockets[$0]?.origin == origin && sockets[$0]?.isDial == true }
        let chosen = dials.prefix(Int.random(in: 0...leases.count, using: &random))
        let takers = sockets.values.filter { $0.origin == other && !($0.isShared && $0.isRetired) }
        let room = takers.contains(where: \.isShared) ? 0 : limit - takers.count
        for dial in chosen.prefix(max(0, room)) { sockets[dial]?.origin = other }
        for lease in leases { waitingLeases[lease] = other }
        send(.regrouped(leases, chosen.map { ConnectionID($0) }, other, mayBeShared: true))
    }

    private mutating func withdraw(_ lease: LeaseID) {
        waitingLeases[lease] = nil
        answered.insert(lease)
        send(.withdrawn(lease))
    }

    private mutating func open(_ number: Int) {
        guard Int.random(in: 0..<3, using: &random) > 0 else {
            sockets[number]?.stage = .single(isLeased: false)
            return send(.opened(ConnectionID(number)))
        }
        let capacity = Int.random(in: 1...3, using: &random)
        sockets[number]?.stage = .shared(capacity: capacity, leaseCount: 0)
        send(.opened(ConnectionID(number), capacity: capacity))
    }

    private mutating func release(_ number: Int, reusable: Bool) {
        switch sockets[number]?.stage {
        case .single: sockets[number]?.stage = .single(isLeased: false)
        case .shared(let capacity, let count): sockets[number]?.stage = .shared(capacity: capacity, leaseCount: count - 1)
        case .dialing, nil: return
        }
        if !reusable { sockets[number]?.isRetired = true }
        send(.released(ConnectionID(number), reusable: reusable, now: now, keepAlive: nil))
    }

    private mutating func send(_ event: PoolMachine.Event) {
        let actions = pool.handle(event)
        entries.append("\(event) -> \(actions)")
        for action in actions { perform(action) }
        checkRules()
    }

    private mutating func perform(_ action: PoolMachine.Action) {
        switch action {
        case .dial(let id, let origin):
            if sockets.values.contains(where: { $0.origin == origin && $0.isShared && !$0.isRetired }) { seconds += 1 }
            sockets[id.number] = Socket(origin: origin, stage: .dialing)
        case .queueIsBlocked(let origin): watched.insert(origin)
        case .grant(let lease, let id, _): grant(lease, id)
        case .refuse(let lease, _):
            if waitingLeases.removeValue(forKey: lease) == nil || !answered.insert(lease).inserted {
                faults.append("bad refusal")
            }
        case .cancelDial(let id): if sockets.removeValue(forKey: id.number)?.isDial != true { faults.append("bad cancel") }
        case .close(let id): if sockets.removeValue(forKey: id.number)?.leaseCount != 0 { faults.append("closed one in use") }
        case .startTimer(let delay): timerDue = now + delay
        case .stopTimer: timerDue = nil
        case .connecting, .paused: break
        case .requestCapacity, .returnCapacity: faults.append("asked for room")
        }
    }

    private mutating func grant(_ lease: LeaseID, _ id: ConnectionID) {
        guard let origin = waitingLeases.removeValue(forKey: lease), answered.insert(lease).inserted else {
            return faults.append("granted to a lease that does not wait")
        }
        guard let socket = sockets[id.number], socket.origin == origin, !socket.isRetired else {
            return faults.append("granted a connection of another origin")
        }
        switch socket.stage {
        case .single(isLeased: false): sockets[id.number]?.stage = .single(isLeased: true)
        case .shared(let capacity, let count) where count < capacity:
            sockets[id.number]?.stage = .shared(capacity: capacity, leaseCount: count + 1)
            sharedGrants += 1
        case .single, .shared, .dialing: faults.append("granted a connection that is full")
        }
    }

    private mutating func checkRules() {
        for origin in [OriginID(0), OriginID(1)] {
            let own = sockets.values.filter { $0.origin == origin }
            let isWaitedFor = waitingLeases.values.contains(origin)
            let dials = own.count { $0.isDial }
            let shared = own.filter { $0.isShared && !$0.isRetired }
            // Shared connections that take no more leases do not count toward the limit.
            let takers = own.count { !($0.isShared && $0.isRetired) }
            if takers > limit { faults.append("above the limit") }
            if !shared.isEmpty, dials > 0, !exemptOrigins.contains(origin) || own.count > 2 {
                faults.append("a dial beside a shared connection")
            }
            let hasPlace = own.contains { socket in
                guard !socket.isRetired else { return false }
                return switch socket.stage {
                case .dialing: false
                case .single(let isLeased): !isLeased
                case .shared(let capacity, let count): count < capacity
                }
            }
            if isWaitedFor, hasPlace { faults.append("a lease waits beside free capacity") }
            if isWaitedFor, takers < limit, dials == 0, shared.isEmpty {
                faults.append("a lease waits without a dial")
            }
        }
    }

    private mutating func any(_ condition: (Socket) -> Bool) -> Int? {
        sockets.keys.sorted().filter { sockets[$0].map(condition) ?? false }.randomElement(using: &random)
    }
}
