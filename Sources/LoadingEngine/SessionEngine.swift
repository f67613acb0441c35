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

/// The event loop that runs a session.
package enum LoopChoice: Sendable {
    /// The next loop of the process's group, shared with other sessions.
    case dealt
    /// A loop outside the group that runs no code of the app: for sessions that a thread waits for.
    case apart
}

/// Runs the loads of one session, in this process.
///
/// All of a session's mutable state, from the loads to the sockets, is confined to one event loop, and this actor runs on that
/// loop: the code below the façade takes no locks. Other threads post to the mailbox (`SessionEngine+Mailbox.swift`), which keeps
/// their order.
package actor SessionEngine {
    nonisolated let executor: LoopExecutor
    /// The loop that every load of the session runs on.
    package nonisolated let loop: any EventLoop
    nonisolated let mailbox = Mailbox()
    nonisolated let entrance = Entrance()
    nonisolated let policy: SessionPolicy
    nonisolated let stores: SessionStores
    nonisolated let security: AppTransportSecurity
    /// Whether fresh responses may be returned on the caller's thread: the session's own fields do not affect caching.
    nonisolated let answersAtOnce: Bool
    // Unchecked members are used by every load; their methods do not call back into the engine.
    /// The messages taken from the mailbox; the array is reused for its capacity.
    @exclusivity(unchecked) var messages: [Mailbox.Message] = []
    /// Some messages wait for their turn.
    var isAttending = false
    private let session: SessionFacts
    private let resolver: SystemResolver
    let pool: ConnectionPool
    private let plan: LoadPlan
    private let deadlines: DeadlineClock
    @exclusivity(unchecked) private var loads: [LoadNumber: Load] = [:]
    /// Ended loads whose clients have not been notified.
    @exclusivity(unchecked) private var ended: [(any LoadClient, TaskOutcome)] = []
    /// The clients that are being notified; the array is reused for its capacity.
    @exclusivity(unchecked) private var telling: [(any LoadClient, TaskOutcome)] = []
    private var isInvalidated = false

    package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// Creates an engine on a loop of the process.
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

    /// Whether the calling thread runs loads, so that the app must not block it.
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

    /// In one turn of the loop, so that a released connection is not assigned to another load that is about to be canceled.
    func cancelAllNow() {
        for load in loads.values where !load.order.endsUpload { load.cancel(producingResumeData: false) }
    }

    func stopTakingOrders() {
        isInvalidated = true
        // No task of the app remains that could end the session's own loads.
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

    /// The alternative services of an origin, for clients of other protocols.
    package func alternatives(of origin: Origin) -> [AlternativeService] {
        session.alternatives.services(of: origin, now: session.seconds(.now()))
    }

    // MARK: One load

    /// Starts a load.
    ///
    /// Most loads only wait for their connection and for the head of their response, and the rest is done at once: these get a task
    /// only if there is something else to wait for. A task with its frames and returns costs as much as parsing the response.
    func start(_ order: TaskOrder, client: any LoadClient) {
        guard let load = accept(order, client) else { return }
        guard load.collects, !load.control.isSuspended, load.order.earliestBegin == nil, load.order.upload?.resuming == nil else {
            return attend(load)
        }
        proceed(load, load.firstHop())
    }

    /// Continues a load without a task after it was woken.
    private func proceed(_ woken: NIOLoopBound<Load>) {
        let load = woken.value
        if let hop = load.takeDeparted() { proceed(load, hop) }
    }

    private func proceed(_ load: Load, _ hop: Hop) {
        switch plan.proceed(hop, in: load) {
        case .waits: load.park(hop, of: self)
        case .proceed, .needsTask: attend(load, departed: hop)
        case .answered(let answer):
            // A body that has not arrived completely is awaited.
            if !isDelivered(answer, of: load) { Task.immediate(executorPreference: executor) { await deliver(answer, of: load) } }
        }
    }

    /// Creates the task of a load on the loop, which it uses for its entire lifetime, and starts it at once.
    ///
    /// The body of the task is a load from beginning to end, as the app sees it. In a separate method it would start one turn
    /// later: a task started this way is on its actor, but for the runtime not yet on its executor, which a call of such a method
    /// ensures.
    ///
    /// Code that waits is separate from code that does not: every local variable of an async function that is live across a wait
    /// takes space in the task's memory, for each of perhaps ten thousand waiting loads.
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

    /// Ends a load whose whole body is available and collected; returns whether it did.
    private func isDelivered(_ answer: Answer, of load: Load) -> Bool {
        do throws(LoadError) {
            guard let body = try DataDelivery.whole(answer, of: load) else { return false }
            end(load, .success(body))
        } catch {
            fail(load, error)
        }
        return true
    }

    /// The parts that most loads do not need.
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
            session.proceed = { [unowned self] in proceed($0) }
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
        load.control.enter(.elsewhere)
        let outcome = TaskOutcome(
            result: result, response: load.response, timelines: load.wants(.metrics) ? load.timelines : [],
            redirectCount: load.followUp.redirectCount,
            sentBodyBytes: load.transaction.map { $0.sentOffset + $0.sentBodyBytes } ?? 0, receivedBodyBytes: load.body.received
        )
        ended.append((load.client, outcome))
        // Loads that end in one turn of the loop are reported together: waking a thread many times costs more than the loads.
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

    /// Waits for the task's earliest begin date, and asks the app whether the request is still valid.
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
            // Its timeout may differ.
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

/// The key of a load in its session, which numbers its loads.
private struct LoadNumber: NumberedIdentifier {
    let number: TaskID

    init(_ number: TaskID) { self.number = number }
}
