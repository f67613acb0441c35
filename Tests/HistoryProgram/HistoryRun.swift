// SPDX-License-Identifier: Apache-2.0

import Foundation
import HistoryModel
import LoadingTestKit

/// Executes the steps of a history, and checks the rules after each.
///
/// A step whose session or worker no longer exists is skipped, so that a history remains valid when steps are removed.
final class HistoryRun {
    struct LiveSession {
        var worker: Int
        var life: Int
        /// A number that is unique for each session object.
        var identity: Int
        var kind: SessionKind
        /// Whether a server that only this session trusts has told the session to use https for `localhost`, so that the session
        /// can no longer use the clear server.
        var knowsStrictHost = false
    }

    struct BackgroundLoad {
        var worker: Int
        var ends = 0
        var kills = 0
        var number: Int
    }

    static let limit = Duration.seconds(12)

    let place: HistoryPlace
    let servers: HistoryServers
    var world = HistoryWorld()
    var workers: [Int: WorkerHandle] = [:]
    var lives = 0
    var sessions: [Int: LiveSession] = [:]
    var sessionCount = 1000
    var loadCount = 0
    private var orders: [Int: LoadRequest] = [:]
    /// Loads of resumed downloads, by the load that began the download and that their requests name.
    var aliases: [Int: Int] = [:]
    var background: [Int: BackgroundLoad] = [:]
    /// The data tasks of background sessions, and their workers.
    var backgroundData: [Int: Int] = [:]
    /// The loads of the tasks of each worker's background session, by the task's identifier.
    private var identifiers: [Int: [Int: Int]] = [:]
    /// The daemons that were not started by the library, and the service manager that starts daemons.
    var daemons: [ServerProcess] = []
    var manager: ServerProcess?
    private var handled: [Int: Int] = [:]
    private var ended: Set<Int> = []
    private var seenFiles: [String: Date] = [:]
    private var mayLeaveDownloads = false
    /// Whether a server has closed a connection without announcing it.
    private(set) var hasClosed = false
    private let overlooked: Set<Fault.Rule>
    private var faults: [Fault] = []
    /// The number of executed steps, without skipped ones.
    private(set) var done = 0

    private init(_ place: HistoryPlace, _ servers: HistoryServers, overlooked: Set<Fault.Rule>) {
        self.place = place
        self.servers = servers
        self.overlooked = overlooked
    }

    struct Result: Sendable {
        var faults: [Fault]
        /// The step after which the faults were found; the number of all steps if they were found at the end.
        var step: Int
        var done: Int
    }

    static func run(
        _ steps: [HistoryStep], _ certificates: TestCertificates, overlooked: Set<Fault.Rule> = []
    ) async throws -> Result {
        let place = try HistoryPlace(certificates)
        defer { place.remove() }
        let run = HistoryRun(place, try await HistoryServers.start(certificates), overlooked: overlooked)
        var step = 0
        for (number, one) in steps.enumerated() {
            step = number
            await run.attempt { try await run.carryOut(one) }
            if !run.faults.isEmpty { break }
        }
        if run.faults.isEmpty {
            step = steps.count
            await run.attempt { try await run.settle() }
        }
        for worker in run.workers.values { try? await worker.kill() }
        run.manager?.stop(SIGKILL)
        place.signalDaemon(SIGKILL)
        do { try await run.servers.close() } catch  where run.faults.isEmpty { run.faults = [Fault(.machine, "\(error)")] }
        return Result(faults: run.faults, step: step, done: run.done)
    }

    private func attempt(_ body: () async throws -> Void) async {
        do {
            try await body()
            inspect()
        } catch let fault as Fault {
            inspect()
            add([fault])
        } catch {
            inspect()
            add([Fault(.machine, "\(error)")])
        }
    }

    func add(_ new: [Fault]) { faults += new.filter { !overlooked.contains($0.rule) } }

    // MARK: After each step

    /// Examines the new requests and reports, and the disk.
    private func inspect() {
        noteRequests()
        for (slot, worker) in workers.sorted(by: { $0.key < $1.key }) {
            let said = worker.reports.read { $0 }
            for report in said.reports.dropFirst(handled[worker.life] ?? 0) { record(report, of: worker.life) }
            handled[worker.life] = said.reports.count
            if said.isOver {
                add([Fault(.machine, "worker \(slot) exited unexpectedly: \(place.errors(of: worker.life))")])
                forget(slot)
            }
        }
        add(place.faults(since: &seenFiles))
    }

    private func noteRequests() {
        for var request in servers.takeRequests() {
            request.load = aliases[request.load] ?? request.load
            add(world.note(request))
        }
        add(servers.takeUploadFaults())
    }

    private func record(_ report: WorkerReport, of life: Int) {
        if report.kind == .stray {
            add([Fault(.end, "told again: load \(report.load ?? 0), session \(report.session ?? 0) \(report.calls)")])
        }
        guard let number = report.load else { return }
        if report.kind == .begun { note(report.task, of: number) }
        guard report.kind == .end else { return }
        if background[number] != nil {
            background[number]?.ends += 1
            judge(number, report)
        } else if let load = world.loads[number], load.process != life {
            add([Fault(.end, "load \(number) ended with its program, and its end was told to the next one")])
        }
    }

    /// Records the identifier of a task, which no other task of its background session has.
    ///
    /// Identifiers of transfers begin anew in a later program if every transfer of the session has ended.
    private func note(_ identifier: Int?, of number: Int) {
        guard let identifier, let slot = background[number]?.worker ?? backgroundData[number],
            let other = identifiers[slot, default: [:]].updateValue(number, forKey: identifier), other != number
        else { return }
        let isOver = background[other].map { $0.ends > 0 } ?? false
        if isOver, world.loads[other]?.process != world.loads[number]?.process { return }
        add([Fault(.identifier, "the tasks of loads \(other) and \(number) have the identifier \(identifier)")])
    }

    private func forget(_ slot: Int) {
        workers[slot] = nil
        sessions = sessions.filter { $0.value.worker != slot }
        for (number, load) in background where load.worker == slot { background[number]?.kills += 1 }
    }

    // MARK: Workers

    func worker(_ slot: Int) async throws -> WorkerHandle {
        if let worker = workers[slot] { return worker }
        lives += 1
        let worker = try place.startWorker(lives)
        workers[slot] = worker
        let isReady = try await waitForReport(worker, "worker \(slot) does not start") { $0.kind == .ready }
        guard isReady != nil else { throw Fault(.machine, "worker \(slot) does not start: \(place.errors(of: worker.life))") }
        return worker
    }

    /// Waits for a report with a time limit; nil if the worker has exited.
    func waitForReport(
        _ worker: WorkerHandle, _ what: String, rule: Fault.Rule = .machine, limit: Duration = HistoryRun.limit,
        _ pick: @escaping @Sendable (WorkerReport) -> Bool
    ) async throws -> WorkerReport? {
        do {
            return try await within(limit) { try await worker.report(pick) }
        } catch is Late {
            throw Fault(rule, what)
        }
    }

    func kill(_ slot: Int) async throws {
        guard let worker = workers[slot] else { return }
        try await worker.kill()
        // The reports that the killed worker has already written still count.
        for report in worker.reports.read({ $0.reports }).dropFirst(handled[worker.life] ?? 0) { record(report, of: worker.life) }
        mayLeaveDownloads = true
        forget(slot)
    }

    // MARK: Steps

    private func carryOut(_ step: HistoryStep) async throws {
        done += 1
        switch step {
        case .makeSession(let name, let slot, let kind): try await makeSession(name, slot, kind)
        case .invalidate(let name, let finishes):
            guard let session = sessions.removeValue(forKey: name), let worker = workers[session.worker] else {
                return skip()
            }
            worker.tell(.invalidate(session.identity, finishes: finishes))
            guard session.kind.hasDelegate else { return }
            _ = try await waitForReport(worker, "session \(name) is not told that it is invalid", rule: .end) {
                $0.kind == .invalid && $0.session == session.identity
            }
        case .load(let load): try await finish(begin(load))
        case .together(let loads):
            let numbers = loads.compactMap { begin($0) }
            for number in numbers { world.loads[number]?.isAlone = false }
            for number in numbers { try await finish(number) }
        case .deploy(let origin, let page): servers.deploy(origin, page)
        case .certificate(let identity): show(identity)
        case .interrupted(let load, let interruption): try await interrupt(load, interruption)
        case .kill(let slot): try await kill(slot)
        case .line(let slot): try await waitInQueue(slot)
        case .post(let load, let failure): try await post(load, failure)
        case .cutDownload(let load, let deploys, let identity, let other):
            try await cutDownload(load, deploys: deploys, identity, other)
        case .upload(let load, let plan): try await upload(load, plan)
        case .byProtocol(let slot, let stores): try await answerByProtocol(slot, stores: stores)
        case .orderInBackground(let slot, let load, let uploads): try await order(slot, load, uploads: uploads)
        case .inBackground(let step): try await carryOut(step)
        case .tool(let tool): try await use(tool)
        case .killDaemon: if !killDaemon() { skip() }
        }
    }

    func skip() { done -= 1 }

    /// Changes the certificate for new connections, including those of loads in progress.
    private func show(_ identity: Identity) {
        servers.show(identity)
        for (number, load) in world.loads where !ended.contains(number) && !load.isSubstituted {
            world.loads[number]?.identities.insert(identity)
        }
    }

    func makeSession(_ name: Int, _ slot: Int, _ kind: SessionKind) async throws {
        let worker = try await worker(slot)
        sessionCount += 1
        let identity = sessionCount
        worker.tell(.makeSession(identity, kind, ports: servers.substitutions, roots: place.roots))
        _ = try await waitForReport(worker, "session \(name) is not made") { $0.kind == .session && $0.session == identity }
        sessions[name] = LiveSession(worker: slot, life: worker.life, identity: identity, kind: kind)
    }

    // MARK: Loads

    /// Makes a worker begin a load; nil if its session does not exist.
    func begin(_ step: LoadStep, _ change: (inout LoadRequest) -> Void = { _ in }) -> Int? {
        guard let session = sessions[step.session], let worker = workers[session.worker],
            !(session.knowsStrictHost && step.isByName && step.origin == .clear)
        else { return nil }
        loadCount += 1
        let number = loadCount
        world.loads[number] = facts(number, step, session)
        var order = LoadRequest(load: number, session: session.identity, url: "")
        describe(step, session.kind, &order)
        if step.way == .webSocket {
            order.messages = (0..<number % 4).map { "message \($0) of load \(number)" }
            order.fields["X-Messages"] = "\(order.messages.count)"
            world.loads[number]?.sent = order.messages
        }
        change(&order)
        orders[number] = order
        if step.service == .ftp {
            servers.files.expect(number, step, hold: order.fields["X-Hold"])
            world.loads[number]?.sent = order.body.map { [$0] } ?? []
        }
        worker.tell(.load(order))
        if step.page == .strict { sessions[step.session]?.knowsStrictHost = true }
        return number
    }

    func facts(_ number: Int, _ step: LoadStep, _ session: LiveSession) -> LoadFacts {
        let page = step.page == .away ? Page.landing : step.page
        let origin = step.page == .away ? step.origin.other : step.origin
        let version = servers.content.version(of: page, at: origin)
        var facts = LoadFacts(
            number: number, step: step, kind: session.kind, session: session.identity, identities: [servers.identity],
            versions: version...version)
        facts.isByProtocol = session.kind.hasProtocol
        facts.process = session.life
        // The connections of these loads lead to a server that never changes.
        if facts.isSubstituted { facts.identities = [.valid] }
        return facts
    }

    func describe(_ step: LoadStep, _ kind: SessionKind, _ order: inout LoadRequest) {
        let principal = step.principal
        order.url = servers.url(of: step)
        order.isSecure = step.origin == .secure
        order.startsInClear = order.isSecure && step.startsInClear
        order.way = step.way
        order.policy = step.policy
        order.hasOwnTrust = step.hasOwnTrust
        switch step.proof {
        case .none, .userInfo: break
        case .challenge, .challengeForSession:
            order.user = principal.rawValue
            order.password = principal.password
            order.isKept = step.proof == .challengeForSession
        case .basicField: order.fields["Authorization"] = Worker.basic(principal.rawValue, principal.password)
        case .bearerField: order.fields["Authorization"] = "Bearer \(principal.token)"
        }
        if let field = step.field { order.fields["X-Field"] = field }
        if let login = step.login { order.fields["X-Login"] = login.rawValue }
        switch kind.stores {
        case .shared: break
        case .ephemeral: order.fields["X-Traceless"] = "all"
        case .withoutCache: order.fields["X-Traceless"] = "body"
        }
    }

    private func worker(of number: Int) -> WorkerHandle? {
        guard let identity = world.loads[number]?.session else { return nil }
        return sessions.values.first { $0.identity == identity }.flatMap { workers[$0.worker] }
    }

    /// Waits for the end of a load, and checks the rules.
    @discardableResult
    func finish(
        _ number: Int?, by given: WorkerHandle? = nil, limit: Duration = HistoryRun.limit
    ) async throws -> WorkerReport? {
        guard let number, let worker = given ?? worker(of: number) else {
            skip()
            return nil
        }
        let what = "load \(number) has not ended"
        guard
            let report = try await waitForReport(worker, what, rule: .end, limit: limit, { $0.kind == .end && $0.load == number })
        else { return nil }
        judge(number, report)
        return report
    }

    func judge(_ number: Int, _ report: WorkerReport) {
        noteRequests()
        guard var load = world.loads[number], ended.insert(number).inserted || background[number] != nil else { return }
        if !load.isSubstituted { load.identities.insert(servers.identity) }
        let page = load.step.page == .away ? Page.landing : load.step.page
        let origin = load.step.page == .away ? load.step.origin.other : load.step.origin
        load.versions = load.versions.lowerBound...servers.content.version(of: page, at: origin)
        load.received =
            load.step.service == .ftp ? [servers.files.stored(at: load.server(at: origin)) ?? ""] : servers.received(number)
        world.loads[number] = load
        add(HistoryRules.faults(of: load, report, in: world))
    }

    // MARK: Interruptions

    private func interrupt(_ step: LoadStep, _ interruption: Interruption) async throws {
        let slot = sessions[step.session]?.worker
        guard let number = begin(step, { $0.fields["X-Hold"] = interruption == .deploy ? "head" : "body" }),
            let slot, let worker = workers[slot], let load = world.loads[number]
        else { return skip() }
        defer { servers.open(number) }
        if interruption == .killWhileSending {
            _ = try await waitForReport(worker, "load \(number) does not begin") { $0.kind == .begun && $0.load == number }
            return try await kill(slot)
        }
        let (servers, server) = (servers, load.server(at: step.origin))
        try await Self.firstOf(
            { try await servers.held(number, at: server) },
            { _ = try await worker.report { $0.kind == .end && $0.load == number } })
        switch interruption {
        case .kill, .killWhileSending: return try await kill(slot)
        case .deploy: servers.deploy(step.origin, step.page)
        case .certificate: show(servers.identity == .valid ? .unknown : .valid)
        case .cancel:
            world.loads[number]?.isDisturbed = true
            worker.tell(.cancel(number))
        case .invalidate:
            world.loads[number]?.isDisturbed = true
            worker.tell(.invalidate(load.session, finishes: false))
            sessions[step.session] = nil
        }
        if interruption == .cancel || interruption == .invalidate {
            // The load ends although the server does not respond.
            try await finish(number, by: worker)
        } else {
            servers.open(number)
            try await finish(number, by: worker)
        }
    }

    /// Waits for the first of two events.
    static func firstOf(
        _ one: @escaping @Sendable () async throws -> Void, _ other: @escaping @Sendable () async throws -> Void
    ) async throws {
        do {
            try await within(limit) {
                try await withThrowingTaskGroup(of: Void.self) { group in
                    group.addTask { try await one() }
                    group.addTask { try await other() }
                    defer { group.cancelAll() }
                    try await group.next()
                }
            }
        } catch is Late {
            throw Fault(.end, "a load neither reached its server nor ended")
        }
    }

    private func post(_ step: LoadStep, _ failure: HistoryStep.Failure?) async throws {
        let number = begin(step) { order in
            order.method = step.service == .ftp ? "PUT" : "POST"
            order.body = "posted by load \(order.load)"
            if let failure { order.fields["X-Failure"] = failure.rawValue }
        }
        if failure == .reset, let number { world.loads[number]?.isDisturbed = true }
        if let number { world.loads[number]?.mayMeetClosed = hasClosed }
        if failure == .closeAfterwards { hasClosed = true }
        try await finish(number)
    }

    // MARK: Downloads

    private func cutDownload(_ step: LoadStep, deploys: Bool, _ identity: Identity?, _ other: Int) async throws {
        guard let session = sessions[step.session], let resuming = sessions[other], resuming.worker == session.worker,
            !(resuming.knowsStrictHost && step.isByName && step.origin == .clear), let worker = workers[session.worker],
            let number = begin(step, { $0.fields["X-Hold"] = "cut" })
        else { return skip() }
        world.loads[number]?.isDisturbed = true
        guard let report = try await finish(number), report.hasResumeData else { return }
        if deploys { servers.deploy(step.origin, step.page) }
        if let identity { show(identity) }
        loadCount += 1
        let second = loadCount
        var next = step
        next.session = other
        // Resume data contains the URL and the request's fields, but not the delegate's answers to challenges.
        let isInURL = step.service == .ftp && step.proof == .userInfo
        if !isInURL, step.proof != .basicField, step.proof != .bearerField { (next.principal, next.proof) = (.anonymous, .none) }
        world.loads[second] = facts(second, next, resuming)
        world.loads[second]?.isAlone = false
        // The earlier part may be delivered with the rest if both are parts of one version.
        if let first = world.loads[number] {
            world.loads[second]?.versions = first.versions.lowerBound...servers.content.version(of: .long, at: step.origin)
        }
        aliases[number] = second
        if next.service == .ftp { servers.files.expect(second, next, hold: nil) }
        worker.tell(.resumeDownload(second, of: number, session: resuming.identity, way: .download))
        mayLeaveDownloads = true
        try await finish(second, by: worker)
    }

    // MARK: The end

    private func settle() async throws {
        show(.valid)
        for (number, load) in background.sorted(by: { $0.key < $1.key }) where load.ends == 0 {
            let worker = try await backgroundWorker(load.worker)
            _ = try await waitForReport(worker, "background load \(number) has not ended", rule: .end, limit: .seconds(40)) {
                $0.kind == .end && $0.load == number
            }
        }
        inspect()
        for load in background.values where load.ends > 1 + load.kills {
            throw Fault(.end, "the end of background load \(load.number) was told \(load.ends) times, with \(load.kills) kills")
        }
        for (slot, worker) in workers.sorted(by: { $0.key < $1.key }) {
            worker.tell(.leave)
            let report = try await waitForReport(worker, "the sessions of worker \(slot) do not end", rule: .end) {
                $0.kind == .left
            }
            if let open = report?.open, !open.isEmpty { throw Fault(.left, "worker \(slot) has open \(open)") }
        }
        manager?.stop(SIGKILL)
        place.signalDaemon(SIGTERM)
        let servers = servers
        do {
            try await within(Self.limit) { try await servers.allClosed() }
        } catch is Late {
            throw Fault(.left, "\(servers.openConnections) connections are open")
        }
        if !mayLeaveDownloads, !place.leftDownloads.isEmpty { throw Fault(.left, "\(place.leftDownloads)") }
    }
}
