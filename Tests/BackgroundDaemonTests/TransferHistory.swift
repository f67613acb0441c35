// SPDX-License-Identifier: Apache-2.0

import SeededNumbers

@testable import BackgroundDaemon

/// Sends random events to a scheduler, applies its actions to a model, and records violations of its rules.
struct TransferHistory {
    private typealias Scheduler = TransferScheduler
    private enum Stage { case waiting, running, stopping, over }

    private struct Transfer {
        var item: TransferScheduler.Item
        var stage = Stage.waiting
        var isExpired = false
        var lacksSpace = false
        var startTime = -Double.infinity
        var lacksNetwork = false
        /// Whether the transfer was added, and nothing else has happened to it.
        var isFresh = true
        var failedForNetwork = false
        var serverBound: Double?
        var bytes: Int64 = 0
        var sample: (time: Double, bytes: Int64)?
        var hasSentAll = false
        var hasResponse = false
        var unansweredSince: Double?
        var unansweredStops = 0

        mutating func note(hasSentAll: Bool, _ start: Double) {
            guard self.hasSentAll != hasSentAll else { return }
            self.hasSentAll = hasSentAll
            if !hasSentAll { hasResponse = false }
            unansweredSince = hasSentAll && !hasResponse ? start : nil
            sample = nil
        }
    }

    private(set) var faults: [String] = []
    private(set) var log: [String] = []
    private var random: SeededNumbers
    private var scheduler: TransferScheduler
    private let limits: TransferScheduler.Limits
    private var conditions = TransferScheduler.Conditions()
    private var transfers: [Int64: Transfer] = [:]
    private var now = 1000.0
    private var wake: Double?
    private var count: Int64 = 0
    private(set) var starts = 0
    /// Sessions and hosts, combined by ``line(_:)``, whose transfers wait for the network because one transfer found no route.
    private var offline: Set<String> = []
    private var networkChange = -Double.infinity

    init(seed: UInt64) {
        random = SeededNumbers(seed: seed)
        var limits = TransferScheduler.Limits()
        limits.simultaneous = random.next(below: 5) + 1
        limits.perHost = random.next(below: 3) + 1
        self.limits = limits
        scheduler = TransferScheduler(limits: limits)
    }

    mutating func run(steps: Int) {
        for _ in 0..<steps where faults.isEmpty { step() }
        for id in transfers.keys.sorted() where faults.isEmpty {
            transfers[id] = nil
            send(.removed(id))
        }
        if wake != nil { faults.append("the timer runs without transfers") }
    }

    private func all(_ stages: Stage...) -> [Int64] {
        transfers.filter { stages.contains($0.value.stage) }.keys.sorted()
    }

    private mutating func any(_ stages: Stage...) -> Int64? {
        transfers.filter { stages.contains($0.value.stage) }.keys.sorted().randomElement(using: &random)
    }

    // MARK: Events

    private mutating func step() {
        let next = now + [0, 0, 0.5, 2, 20, 70, 700][random.next(below: 7)]
        if let wake, wake <= next, random.next(below: 8) > 0 {
            now = max(now, wake)
            return send(.tick)
        }
        now = next
        switch random.next(below: 31) {
        case 0..<7: add()
        case 7, 8: end()
        case 9, 10: fail()
        case 11, 12: if let id = any(.stopping) { stopped(id) }
        case 13: if let id = any(.waiting, .running, .stopping) { hold(id) }
        case 14, 15:
            if let id = transfers.filter({ $0.value.item.isHeld }).keys.sorted().randomElement(using: &random) { release(id) }
        case 16: if let id = any(.waiting, .running, .stopping) { prioritise(id) }
        case 17: if let id = any(.running) { progress(id) }
        case 18: if let id = any(.running, .stopping) { answer(id) }
        case 19, 20: changeConditions()
        case 21: moveClock()
        case 22: sendSomethingLate()
        case 23: if let id = any(.waiting) { failWithoutSpace(id) }
        case 24:
            if let id = transfers.filter({ $0.value.lacksSpace }).keys.sorted().randomElement(using: &random) { findSpace(id) }
        case 25, 26: if let id = any(.running) { failWithoutNetwork(id) }
        case 27:
            offline = []
            networkChange = now
            send(.networkChanged)
        case 28: if let id = any(.running) { sendContent(id) }
        case 29: if let id = any(.running) { beginResponse(id) }
        default: send(.tick)
        }
    }

    private func line(_ item: TransferScheduler.Item) -> String { "\(item.session) \(item.host)" }

    private mutating func failWithoutNetwork(_ id: Int64) {
        transfers[id]?.lacksNetwork = true
        transfers[id]?.note(hasSentAll: false, now)
        transfers[id]?.hasResponse = false
        noteOffline()
        send(.lacksNetwork(id))
    }

    private mutating func noteOffline() {
        if conditions.isConnected { offline = [] }
        guard !conditions.isConnected else { return }
        for transfer in transfers.values where transfer.stage == .running && transfer.lacksNetwork && !transfer.item.isLocal {
            guard transfer.startTime >= networkChange else { continue }
            offline.insert(line(transfer.item))
        }
    }

    private mutating func add() {
        count += 1
        let program = Int64(random.next(below: 3))
        var item = TransferScheduler.Item(
            id: count, program: program, session: program * 2 + Int64(random.next(below: 2)),
            host: ["a", "b", "c"][random.next(below: 3)], origin: nil,
            hostLimit: 0, priority: [0, 0.5, 0.5, 1][random.next(below: 4)], deadline: now + Double(random.next(below: 20_000)))
        if random.next(below: 2) == 0 { item.origin += ":81" }
        item.hostLimit = Int(item.session % 3) + 1
        item.isDiscretionary = random.next(below: 4) == 0
        item.isUpload = random.next(below: 3) == 0
        item.isLocal = random.next(below: 8) == 0
        item.isHeld = random.next(below: 10) == 0
        if random.next(below: 5) == 0 { item.earliestBegin = now + Double(random.next(below: 300)) - 100 }
        var transfer = Transfer(item: item)
        transfer.isFresh = item.earliestBegin == nil && !item.isHeld
        transfers[count] = transfer
        send(.added(item))
    }

    private mutating func end() {
        guard let id = any(.running, .running, .stopping, .waiting) else { return }
        transfers[id] = nil
        send(.removed(id))
    }

    private mutating func stopped(_ id: Int64) {
        transfers[id]?.stage = .waiting
        if let reason = reasons[id], reason == .tooSlow { transfers[id]?.item.notBefore = now + limits.firstPause }
        send(.stopped(id))
    }

    private mutating func fail() {
        guard let id = any(.running, .stopping), let transfer = transfers[id] else { return }
        let failure = [Scheduler.Failure.network, .network, .server, .noSpace, .other][random.next(below: 5)]
        let hasMoved = random.next(below: 3) == 0
        let retryAfter = random.next(below: 3) == 0 ? Double(random.next(below: 200_000)) / 10 : nil
        let number = random.next()
        let attempts = hasMoved ? 1 : transfer.item.attempts + 1
        var longest = 2.0
        for _ in 1..<attempts { longest = min(longest * 2, 900) }
        let pause = max(longest * Double(number >> 11) / Double(1 << 53), min(retryAfter ?? 0, 86_400))
        transfers[id]?.stage = .waiting
        transfers[id]?.item.attempts = attempts
        transfers[id]?.item.notBefore = now + pause
        transfers[id]?.failedForNetwork = failure == .network
        transfers[id]?.serverBound = retryAfter.map { now + $0 }
        send(.failed(id, failure, madeProgress: hasMoved, retryAfter: retryAfter, random: number))
    }

    private mutating func hold(_ id: Int64) {
        transfers[id]?.item.isHeld = true
        transfers[id]?.isFresh = false
        send(.held(id))
    }

    private mutating func release(_ id: Int64) {
        transfers[id]?.item.isHeld = false
        send(.released(id))
    }

    private mutating func failWithoutSpace(_ id: Int64) {
        transfers[id]?.lacksSpace = true
        transfers[id]?.isFresh = false
        send(.lacksSpace(id))
    }

    private mutating func findSpace(_ id: Int64) {
        transfers[id]?.lacksSpace = false
        let (pause, endsPause) = (transfers[id]?.item.notBefore, random.next(below: 2) == 0)
        if endsPause { transfers[id]?.item.notBefore = pause.map { min($0, now) } }
        send(.foundSpace(id, endsPause: endsPause))
    }

    private mutating func prioritise(_ id: Int64) {
        let priority: Float = [0, 0.5, 1][random.next(below: 3)]
        transfers[id]?.item.priority = priority
        send(.priorityChanged(id, priority))
    }

    private mutating func progress(_ id: Int64) {
        let count = Int64(random.next(below: 9000))
        transfers[id]?.bytes += count
        if count > 0 { transfers[id]?.lacksNetwork = false }
        send(.progressed(id, bytes: transfers[id]?.bytes ?? 0))
    }

    private mutating func sendContent(_ id: Int64) {
        let (hasSentAll, pause) = (random.next(below: 4) > 0, Double(random.next(below: 3)) * 100)
        transfers[id]?.note(hasSentAll: hasSentAll, now + pause)
        send(.sentAll(id, hasSentAll, pausedFor: pause))
    }

    private mutating func beginResponse(_ id: Int64) {
        transfers[id]?.hasResponse = true
        transfers[id]?.unansweredStops = 0
        if transfers[id]?.unansweredSince != nil { transfers[id]?.sample = nil }
        transfers[id]?.unansweredSince = nil
        send(.receivedResponse(id))
    }

    private mutating func answer(_ id: Int64) {
        send(.answered(id))
        guard let origin = transfers[id]?.item.origin, pause(of: origin) != nil else { return }
        faults.append("\(origin) answered, and transfers still wait for it")
    }

    /// The pause of an origin that does not answer; its length is the decision of the scheduler.
    private func pause(of origin: String) -> TransferScheduler.OriginPause? { scheduler.origins[origin]?.pause }

    private mutating func changeConditions() {
        let before = conditions
        switch random.next(below: 6) {
        case 0: conditions.isConnected.toggle()
        case 1: conditions.isMetered.toggle()
        case 2: conditions.hasExternalPower.toggle()
        case 3: conditions.isWithinHours = !conditions.isWithinHours || random.next(below: 3) > 0
        case 4: conditions.isSlow.toggle()
        default: conditions.hasSpace.toggle()
        }
        noteOffline()
        // The scheduler decides how long the pauses of these transfers are now.
        var shortened: [Int64] = []
        if conditions.isConnected, !before.isConnected {
            shortened = all(.waiting).filter { transfers[$0]?.failedForNetwork == true }
        }
        send(.conditionsChanged(conditions, random: random.next()), shortened: shortened)
    }

    private mutating func moveClock() {
        let seconds = Double(random.next(below: 2000)) - 1000
        now += seconds
        networkChange += seconds
        for id in transfers.keys {
            transfers[id]?.item.deadline += seconds
            let transfer = transfers[id]
            transfers[id]?.item.notBefore = transfer?.item.notBefore.map { $0 + seconds }
            transfers[id]?.serverBound = transfer?.serverBound.map { $0 + seconds }
            transfers[id]?.startTime += seconds
            transfers[id]?.sample?.time += seconds
            transfers[id]?.unansweredSince = transfer?.unansweredSince.map { $0 + seconds }
        }
        send(.clockMoved(by: seconds))
    }

    private mutating func sendSomethingLate() {
        // Late events are sent only if no timer is due.
        if let wake, wake <= now { return send(.tick) }
        let id = random.next(below: 2) == 0 ? count + 1 : any(.waiting) ?? count + 1
        let late: [TransferScheduler.Event] = [
            .answered(id), .stopped(id), .failed(id, .network, madeProgress: false, retryAfter: 5, random: 1),
            .progressed(id, bytes: 1), .held(count + 1), .released(count + 1), .removed(count + 1),
            .priorityChanged(count + 1, 1),
            .lacksSpace(count + 1), .foundSpace(count + 1, endsPause: true),
        ]
        let event = late[random.next(below: late.count)]
        let actions = scheduler.handle(event, now: now)
        if !actions.isEmpty { faults.append("late \(event) -> \(actions)") }
    }

    // MARK: Actions

    private var reasons: [Int64: TransferScheduler.StopReason] = [:]

    private mutating func send(_ event: TransferScheduler.Event, shortened: [Int64] = []) {
        let actions = scheduler.handle(event, now: now)
        log.append("\(now) \(event) -> \(actions)")
        for id in shortened { readPause(of: id) }
        var timers = 0
        for action in actions {
            switch action {
            case .start(let id): start(id)
            case .stop(let id, let reason): stop(id, reason)
            case .expire(let id):
                if let transfer = transfers[id], !transfer.isExpired, transfer.item.deadline <= now {
                    transfers[id]?.isExpired = true
                } else {
                    faults.append("\(id) expires too early, or twice")
                }
            case .wake(let at):
                wake = at
                timers += 1
            }
        }
        if timers > 1 { faults.append("several timers") }
        checkRules()
    }

    private mutating func readPause(of id: Int64) {
        guard let transfer = transfers[id], let pause = scheduler.entries[id]?.item.notBefore else { return }
        transfers[id]?.item.notBefore = pause
        if pause > max(now + limits.spread, transfer.serverBound ?? now) { faults.append("\(id) waits too long for the network") }
        if let bound = transfer.serverBound, pause < bound { faults.append("\(id) ignores the server's Retry-After") }
    }

    private func mayRun(_ transfer: Transfer) -> Bool {
        let item = transfer.item
        return !item.isHeld && !transfer.isExpired && item.deadline > now
            && (conditions.isConnected || item.isLocal || !offline.contains(line(item)))
            && (conditions.hasSpace || item.isUpload) && !transfer.lacksSpace
            && conditions.isWithinHours && (!item.isDiscretionary || !conditions.isMetered && conditions.hasExternalPower)
    }

    private func isDue(_ transfer: Transfer) -> Bool { isTimeOver(of: transfer) && !isHeldBack(transfer) }

    private func isTimeOver(of transfer: Transfer) -> Bool {
        max(transfer.item.notBefore ?? -.infinity, transfer.item.earliestBegin ?? -.infinity) <= now
    }

    /// Whether a transfer waits for its origin: another transfer tests the origin, or the pause has not ended.
    private func isHeldBack(_ transfer: Transfer) -> Bool {
        guard let pause = pause(of: transfer.item.origin), pause.probe != transfer.item.id else { return false }
        return pause.probe != nil || pause.until > now
    }

    /// Whether there is a place for a transfer, or would be without the transfer `gone`.
    private func fits(_ item: TransferScheduler.Item, without gone: Int64? = nil) -> Bool {
        var (total, discretionary, host, session) = (0, 0, 0, 0)
        for (id, other) in transfers where (other.stage == .running || other.stage == .stopping) && id != gone {
            total += 1
            if other.item.isDiscretionary { discretionary += 1 }
            guard other.item.host == item.host else { continue }
            host += 1
            if other.item.session == item.session { session += 1 }
        }
        return total < limits.simultaneous && host < limits.perHost && session < item.hostLimit
            && (!item.isDiscretionary || discretionary < max(1, limits.simultaneous / 2))
    }

    private func runningCount(of program: Int64) -> Int {
        all(.running, .stopping).count { transfers[$0]?.item.program == program }
    }

    private var ready: [Transfer] { all(.waiting).compactMap { transfers[$0] }.filter { mayRun($0) && isDue($0) } }

    private mutating func start(_ id: Int64) {
        starts += 1
        guard let transfer = transfers[id], transfer.stage == .waiting, mayRun(transfer), isDue(transfer), fits(transfer.item)
        else {
            faults.append("\(id) must not start")
            return
        }
        for other in ready where other.item.id != id && fits(other.item) {
            let (one, two) = (transfer.item, other.item)
            if one.isDiscretionary, !two.isDiscretionary { faults.append("\(id) took the place of \(two.id)") }
            guard one.isDiscretionary == two.isDiscretionary else { continue }
            if runningCount(of: two.program) < runningCount(of: one.program) {
                faults.append("\(id) before the program of \(two.id)")
            }
            if one.program == two.program, transfer.isFresh, other.isFresh, two.id < id, two.priority >= one.priority {
                faults.append("\(id) before \(two.id)")
            }
        }
        transfers[id]?.stage = .running
        transfers[id]?.startTime = now
        transfers[id]?.isFresh = false
        transfers[id]?.failedForNetwork = false
        transfers[id]?.lacksNetwork = false
        transfers[id]?.serverBound = nil
        transfers[id]?.note(hasSentAll: false, now)
        transfers[id]?.hasResponse = false
        transfers[id]?.sample = nil
    }

    private mutating func stop(_ id: Int64, _ reason: TransferScheduler.StopReason) {
        guard let transfer = transfers[id], transfer.stage == .running else {
            faults.append("\(id) is stopped and was not running")
            return
        }
        let isRight =
            switch reason {
            case .held: transfer.item.isHeld
            case .network: transfer.lacksNetwork && !transfer.item.isLocal && !conditions.isConnected
            case .conditions where transfer.hasSentAll: false
            case .conditions:
                !conditions.isWithinHours
                    || transfer.item.isDiscretionary && (conditions.isMetered || !conditions.hasExternalPower)
            case .yields: !transfer.hasSentAll && transfer.item.isDiscretionary && isWanted(transfer, onlyByOrdinary: true)
            case .tooSlow:
                if let sample = transfer.sample {
                    isWanted(transfer) && sample.time + limits.floorWindow <= now
                        && Double(transfer.bytes - sample.bytes) / (now - sample.time) < limits.floor
                } else {
                    false
                }
            }
        if !isRight { faults.append("no reason to stop \(id)") }
        transfers[id]?.stage = .stopping
        transfers[id]?.sample = nil
        if reason == .tooSlow, transfer.unansweredSince != nil { transfers[id]?.unansweredStops += 1 }
        reasons[id] = reason
    }

    private func isWanted(_ transfer: Transfer, onlyByOrdinary: Bool = false) -> Bool {
        ready.contains { other in
            (!other.item.isDiscretionary || transfer.item.isDiscretionary && !onlyByOrdinary)
                && fits(other.item, without: transfer.item.id)
        }
    }

    // MARK: Rules

    private mutating func checkRules() {
        let isLeaving = !all(.stopping).isEmpty
        var due = Double.infinity
        for id in all(.running) {
            guard let transfer = transfers[id] else { continue }
            if transfer.item.isHeld { faults.append("\(id) is held and still running") }
            if !conditions.isWithinHours, !transfer.hasSentAll { faults.append("\(id) is running outside the hours") }
            if transfer.item.isDiscretionary, !transfer.hasSentAll, conditions.isMetered || !conditions.hasExternalPower {
                faults.append("\(id) is still running")
            }
            if transfer.isExpired { continue }
            guard isWanted(transfer) else {
                transfers[id]?.sample = nil
                continue
            }
            if transfer.item.isDiscretionary, !transfer.hasSentAll, !isLeaving, isWanted(transfer, onlyByOrdinary: true) {
                faults.append("\(id) does not yield")
            }
            if conditions.isSlow, transfer.unansweredSince == nil {
                transfers[id]?.sample = nil
                continue
            }
            if let since = transfer.unansweredSince {
                let measurable = since + limits.responseWait * Double(1 << min(transfer.unansweredStops, 10))
                guard measurable <= now else {
                    due = min(due, measurable)
                    continue
                }
            }
            var sample = transfer.sample ?? (now, transfer.bytes)
            if sample.time + limits.floorWindow <= now, sample.time < now {
                let isSlow = Double(transfer.bytes - sample.bytes) / (now - sample.time) < limits.floor
                if isSlow, !isLeaving { faults.append("\(id) is slow and still running") }
                if !isSlow, !isLeaving { sample = (now, transfer.bytes) }
            }
            transfers[id]?.sample = sample
            if sample.time + limits.floorWindow > now { due = min(due, sample.time + limits.floorWindow) }
        }
        for id in all(.waiting) {
            guard let transfer = transfers[id] else { continue }
            guard mayRun(transfer) else { continue }
            if isTimeOver(of: transfer), isHeldBack(transfer) {
                if let pause = pause(of: transfer.item.origin), pause.probe == nil { due = min(due, pause.until) }
            } else if !isDue(transfer) {
                due = min(due, max(transfer.item.notBefore ?? -.infinity, transfer.item.earliestBegin ?? -.infinity))
            } else if fits(transfer.item) {
                faults.append("\(id) could run")
            }
        }
        for (id, transfer) in transfers where !transfer.isExpired {
            if transfer.item.deadline <= now { faults.append("\(id) is past its deadline") }
            due = min(due, transfer.item.deadline)
        }
        if (wake ?? .infinity) != due { faults.append("wakes at \(wake ?? .infinity), not \(due)") }
    }
}
