//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
package import HTTPRules
package import HTTPTransport
package import LoadingModel
import LoadingStores
package import NIOCore
import TransportMachines

/// Which event loop carries a session.
package enum LoopChoice: Sendable {
    /// The next of the process's group, which other sessions share.
    case dealt
    /// One beside the group, on which nothing of an app runs: for sessions that a thread waits for.
    case apart
}

/// Carries out the loads of one session, in this process.
///
/// All of a session's mutable state, from the loads to the sockets, lives on one event loop, and this actor runs on that loop: nothing
/// below the façade takes a lock. Other threads get in through the mailbox (`SessionEngine+Mailbox.swift`), which keeps their order.
package actor SessionEngine {
    nonisolated let executor: LoopExecutor
    /// The loop that every load of the session runs on.
    package nonisolated let loop: any EventLoop
    nonisolated let mailbox = Mailbox()
    nonisolated let entrance = Entrance()
    nonisolated let policy: SessionPolicy
    nonisolated let stores: SessionStores
    nonisolated let security: AppTransportSecurity
    /// Whether fresh responses may be given to the thread that asks: the session's own fields say nothing of caches.
    nonisolated let answersAtOnce: Bool
    // Unchecked are lists and tables that every load goes through: their methods call nothing that could come back here.
    /// What was taken out of the mailbox; kept for its capacity.
    @exclusivity(unchecked) var messages: [Mailbox.Message] = []
    /// Some of them wait for their turn.
    var isAttending = false
    private let session: SessionFacts
    private let resolver: SystemResolver
    let pool: ConnectionPool
    private let plan: LoadPlan
    private let deadlines: DeadlineClock
    @exclusivity(unchecked) private var loads: [LoadNumber: Load] = [:]
    /// Loads that are over and whose clients have not been told.
    @exclusivity(unchecked) private var ended: [(any LoadClient, TaskOutcome)] = []
    /// Those that are being told; kept for its capacity.
    @exclusivity(unchecked) private var telling: [(any LoadClient, TaskOutcome)] = []
    private var isInvalidated = false

    package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// An engine on a loop of the process.
    package static func make(
        policy: SessionPolicy, stores: SessionStores, security: AppTransportSecurity = .strict, proxies: ProxyRules? = nil,
        network: (any NetworkMonitoring)? = nil, loop: LoopChoice = .dealt
    ) -> any LoadingService {
        let executor =
            switch loop {
            case .dealt: LoopDirectory.next()
            case .apart: LoopDirectory.apart
            }
        return SessionEngine(
            policy: policy, stores: stores, security: security, proxies: proxies, network: network, executor: executor)
    }

    package init(
        policy: SessionPolicy, stores: SessionStores, security: AppTransportSecurity, proxies: ProxyRules? = nil,
        network: (any NetworkMonitoring)? = nil,
        executor: LoopExecutor
    ) {
        self.executor = executor
        self.policy = policy
        self.stores = stores
        self.security = security
        loop = executor.loop
        session = SessionFacts(
            policy: policy, stores: stores, security: security, proxies: proxies, executor: executor, mailbox: mailbox)
        let headers = session.headers
        answersAtOnce =
            stores.cache != nil && !policy.leavesSystemsWay
            && !["Cache-Control", "Pragma", "Range", "If-None-Match", "If-Modified-Since", "Authorization"].contains {
                headers.sessionValue($0) != nil
            }
        let tls = TLSSession(
            policy: TLSPolicy(
                minimumVersion: policy.minimumTLSVersion ?? 0x0303, maximumVersion: policy.maximumTLSVersion,
                trustRoots: policy.trustRoots
            )
        )
        let nameServers = policy.connections?.nameServers ?? []
        resolver = nameServers.isEmpty ? SystemResolver() : NameServerLookups.resolver(nameServers)
        let view = network.map { NetworkView($0, on: executor.loop) }
        view?.addressesChanged = { [session] in session.alternatives.networkChanged() }
        let dialer = Dialer(
            loop: executor.loop, tls: tls, resolver: resolver,
            validatingResolver: SystemResolver(ValidatedNames.lookups), options: policy.connections,
            needs: policy.needs, usesMultipath: policy.usesMultipath, now: WallClock.now,
            network: view,
            demands: { if case .allowed(let demands) = security.verdict(isSecure: true, host: $0) { demands } else { .strict } }
        )
        pool = ConnectionPool(
            loop: executor.loop, dialer: dialer, maximumConnectionsPerHost: policy.maximumConnectionsPerHost
        )
        #if Logging || Metrics || Tracing
        dialer.observer = policy.connectionObserver
        #endif
        plan = LoadPlan(pool: pool)
        deadlines = DeadlineClock(executor, clock: stores.clock)
    }

    /// Whether the calling thread carries loads, and must not be kept waiting by what an app does.
    package static var isOnLoop: Bool { LoopDirectory.isOnLoop }

    // MARK: Orders and commands

    func carryOut(_ command: TaskCommand, for id: TaskID) {
        guard let load = loads[LoadNumber(id)] else { return }
        switch command {
        case .suspend: load.control.suspend()
        case .resume: load.control.resume(now: .now())
        case .cancel: load.cancel(producingResumeData: false)
        case .cancelProducingResumeData: load.cancel(producingResumeData: true)
        case .setPriority(let priority): load.setPriority(priority)
        case .consumed(let bytes): load.consumed(bytes)
        case .tellCounts: load.beginTellingCounts()
        case .webSocket(let command): load.webSocket?.take(command, for: load)
        case .stream(let command): load.stream?.take(command, for: load)
        }
    }

    /// In one turn of the loop: a connection that one of them leaves finds no other in line.
    func cancelAllNow() {
        for load in loads.values where !load.order.endsUpload { load.cancel(producingResumeData: false) }
    }

    func stopTakingOrders() {
        isInvalidated = true
        // No task of the app is left to end what it did not begin.
        for load in loads.values where BackgroundRevalidation.isBackground(load.id) && !load.order.endsUpload {
            load.control.abort(.cancelled)
        }
        if loads.isEmpty { pool.shutDown() }
    }

    func renew(_ renewal: Renewal, _ completion: @escaping @Sendable () -> Void) {
        pool.closeIdle()
        resolver.forget()
        ValidatedNames.forget()
        session.proxies?.failed = FailedProxies()
        session.proxies?.scripts.forget()
        switch renewal {
        case .reset:
            session.credentials.removeAll()
            session.alternatives.removeAll()
            session.forgetOwn()
            // A store may have to read its file.
            DiskQueue.shared.run(on: .values) { [stores] in
                stores.removeAll()
                stores.flush(completion)
            }
        case .flush: stores.flush(completion)
        }
    }

    /// Where else an origin said that it can be reached, for what speaks other protocols.
    package func alternatives(of origin: Origin) -> [AlternativeService] {
        session.alternatives.services(of: origin, now: session.seconds(.now()))
    }

    // MARK: One load

    /// Starts a load.
    ///
    /// Most loads wait for no more than their connection and the head of their response, and what follows is done in one go: these
    /// get a task only when there is something else to wait for. A task, its frames and its returns cost as much as to parse the response.
    func start(_ order: TaskOrder, client: any LoadClient) {
        guard let load = accept(order, client) else { return }
        guard load.collects, !load.control.isSuspended, load.order.earliestBegin == nil, load.order.upload?.resuming == nil else {
            return attend(load)
        }
        goOn(load, load.firstHop())
    }

    /// Goes on with a load that has no task, and was woken.
    private func goOn(_ woken: NIOLoopBound<Load>) {
        let load = woken.value
        if let hop = load.takeDeparted() { goOn(load, hop) }
    }

    private func goOn(_ load: Load, _ hop: Hop) {
        switch plan.goOn(hop, in: load) {
        case .waits: load.park(hop, of: self)
        case .goOn, .needsTask: attend(load, departed: hop)
        case .answered(let answer):
            // What is not here yet is waited for.
            if !isDelivered(answer, of: load) { Task.immediate(executorPreference: executor) { await deliver(answer, of: load) } }
        }
    }

    /// Gives a load its task, which is made on the loop, whose memory it then is from beginning to end, and begins at once.
    ///
    /// A load from beginning to end, as the app sees it, is what the task does here and now. In a method of its own it would begin one
    /// turn later: a task that is started so is on its actor, but not yet on its executor for the runtime, which a call of such a method
    /// makes sure of.
    ///
    /// What waits is kept apart from what does not: every local of an async function that is alive across a wait takes room in the
    /// task's memory, for each of ten thousand loads that may wait at once.
    private func attend(_ load: Load, departed hop: Hop? = nil) {
        Task.immediate(executorPreference: executor) {
            if hop == nil,
                load.isDownload || load.control.isSuspended || load.order.earliestBegin != nil || load.stream != nil
            {
                return await runApart(load)
            }
            do throws(LoadError) {
                let answer = try await plan.answer(hop ?? load.firstHop(), in: load)
                if !isDelivered(answer, of: load) { await deliver(answer, of: load) }
            } catch {
                fail(load, error)
            }
        }
    }

    /// Ends a load whose whole body is here to be collected, and answers whether it did.
    private func isDelivered(_ answer: Answer, of load: Load) -> Bool {
        do throws(LoadError) {
            guard let body = try DataDelivery.whole(answer, of: load) else { return false }
            end(load, .success(body))
        } catch {
            fail(load, error)
        }
        return true
    }

    /// What most loads have no need of.
    @inline(never)
    private func runApart(_ load: Load) async {
        do throws(LoadError) {
            if load.control.isSuspended || load.order.earliestBegin != nil { try await begin(load) }
            if load.isDownload { return end(load, .success(try await download(load))) }
            if let stream = load.stream {
                try await stream.run(by: pool, in: load)
                return end(load, .success(.none))
            }
            await deliver(try await plan.answer(load.firstHop(), in: load), of: load)
        } catch {
            fail(load, error)
        }
    }

    @inline(never)
    private func deliver(_ answer: Answer, of load: Load) async {
        do throws(LoadError) {
            let body: TaskOutcome.Body
            if load.collects {
                body = try await DataDelivery.collect(answer, of: load)
            } else if let socket = load.webSocket {
                body = try await socket.deliver(answer, of: load)
            } else {
                body = try await DataDelivery.stream(answer, of: load)
            }
            end(load, .success(body))
        } catch {
            fail(load, error)
        }
    }

    @inline(never)
    func accept(_ order: TaskOrder, _ client: any LoadClient) -> Load? {
        guard !isInvalidated || order.endsUpload else {
            let error = LoadError(.cancelled, "the session was invalidated", url: order.request.url)
            client.tell(.finished(TaskOutcome(result: .failure(error), response: nil, timelines: [], redirectCount: 0)))
            return nil
        }
        if session.start == nil {
            session.start = { [unowned self] in start($0, client: $1) }
            session.command = { [unowned self] in carryOut($0, for: $1) }
            session.goOn = { [unowned self] in goOn($0) }
        }
        let load = Load(order, client: client, session: session, now: .now())
        loads[LoadNumber(order.id)] = load
        deadlines.add(load, now: load.started)
        return load
    }

    @inline(never)
    func end(_ load: Load, _ result: Result<TaskOutcome.Body, LoadError>) {
        loads[LoadNumber(load.id)] = nil
        deadlines.remove(load)
        load.tellSent()
        load.stream?.end()
        load.observeEnd(result)
        load.control.stand(at: .elsewhere)
        let outcome = TaskOutcome(
            result: result, response: load.response, timelines: load.wants(.metrics) ? load.timelines : [],
            redirectCount: load.followUp.redirectCount,
            sentBodyBytes: load.transaction.map { $0.sentOffset + $0.sentBodyBytes } ?? 0, receivedBodyBytes: load.body.received
        )
        ended.append((load.client, outcome))
        // Loads that end in one turn of the loop are told of together: waking one thread many times costs more than the loads.
        if ended.count == 1 { executor.afterwards { self.tellEnded() } }
        if isInvalidated, loads.isEmpty { pool.shutDown() }
    }

    private func tellEnded() {
        if ended.count == 1, let (client, outcome) = ended.popLast() {
            client.conclude(outcome)?.run()
            return
        }
        swap(&ended, &telling)
        Waking.run(telling.compactMap { client, outcome in client.conclude(outcome) })
        telling.removeAll(keepingCapacity: telling.count <= 64)
    }

    /// Waits for the time the app set, and asks it whether the request still stands.
    @inline(never)
    private func begin(_ load: Load) async throws(LoadError) {
        try await load.control.waitWhileSuspended()
        guard let begin = load.order.earliestBegin else { return }
        if session.seconds(.now()) < begin {
            // The time until then is the app's own: no timeout counts it.
            deadlines.remove(load)
            // A clock may be set back meanwhile.
            while true {
                let left = begin - session.seconds(.now())
                guard left > 0 else { break }
                try await session.wait(left, in: load.control)
            }
            load.control.markProgress(.now())
            deadlines.add(load, now: load.control.lastProgress)
        }
        guard load.wants(.delayedRequests), case .delayed(let answer) = try await load.ask(.delayedRequest(load.order.request))
        else { return }
        switch answer {
        case .proceed: break
        case .cancel: throw .cancelled
        case .replace(let request):
            load.replaceRequest(request)
            // Its timeout may be another.
            deadlines.remove(load)
            deadlines.add(load, now: load.control.lastProgress)
            load.tell(.requestChanged(request))
        }
    }

    @inline(never)
    private func download(_ load: Load) async throws(LoadError) -> TaskOutcome.Body {
        guard case .download(let resumeData?) = load.order.delivery else {
            let answer = try await plan.answer(load.firstHop(), in: load)
            return try await DownloadDelivery.deliver(answer, continuing: nil, of: load)
        }
        let resumption = try DownloadResumption(
            resuming: resumeData, of: load.order.request.url, in: load.session.policy.temporaryDirectory
        )
        return try await resumption.deliver(by: plan, in: load)
    }

    @inline(never)
    private func fail(_ load: Load, _ error: LoadError) {
        var error = error
        if error.url == nil { error.url = load.transaction?.request.url ?? load.order.request.url }
        load.upload?.ends(with: &error, in: load)
        end(load, .failure(error))
    }
}

/// Names a load among those of its session, which numbers them.
private struct LoadNumber: NumberedIdentifier {
    let number: TaskID

    init(_ number: TaskID) { self.number = number }
}
