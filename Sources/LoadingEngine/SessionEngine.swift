// SPDX-License-Identifier: Apache-2.0

package import HTTPRules
package import HTTPTransport
package import LoadingModel
import LoadingStores
package import NIOCore
import TransportMachines

/// The event loop that runs a session.
package enum LoopChoice: Sendable {
    /// The next loop of the process's group, shared with other sessions.
    case shared
    /// A separate loop, which runs no app code; used by sessions for whose results a thread blocks.
    case apart
}

/// Runs the loads of one session, in this process.
///
/// All mutable state of a session, from loads to sockets, is confined to one event loop, which is also this actor's executor;
/// this state needs no locks. Other threads post messages to the mailbox (`SessionEngine+Mailbox.swift`), which keeps the
/// messages in order.
package actor SessionEngine {
    nonisolated let executor: LoopExecutor
    /// The loop that every load of the session runs on.
    package nonisolated let loop: any EventLoop
    nonisolated let mailbox = Mailbox()
    nonisolated let entrance = Entrance()
    nonisolated let policy: SessionPolicy
    nonisolated let stores: SessionStores
    nonisolated let security: AppTransportSecurity
    /// Whether fresh cached responses may be returned on the caller's thread.
    ///
    /// True if the session has a cache, reaches the same servers as other sessions, and has no header fields that affect caching.
    nonisolated let mayRespondImmediately: Bool
    // Unchecked because every load uses these members; their methods do not call back into the engine.
    /// The messages taken from the mailbox.
    ///
    /// The array is reused for its capacity.
    @exclusivity(unchecked) var messages: [Mailbox.Message] = []
    /// Whether taken messages are still being processed.
    var isProcessingMessages = false
    private let session: SessionFacts
    private let resolver: SystemResolver
    let pool: ConnectionPool
    private let plan: LoadPlan
    private let deadlines: DeadlineClock
    @exclusivity(unchecked) private var loads: [LoadNumber: Load] = [:]
    /// Ended loads whose clients have not been notified yet.
    @exclusivity(unchecked) private var ended: [(any LoadClient, TaskOutcome)] = []
    /// The clients that are being notified.
    ///
    /// The array is reused for its capacity.
    @exclusivity(unchecked) private var notifying: [(any LoadClient, TaskOutcome)] = []
    private var isInvalidated = false

    package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// Creates an engine on a loop of the process.
    package static func make(
        policy: SessionPolicy, stores: SessionStores, security: AppTransportSecurity = .strict, proxies: ProxyRules? = nil,
        network: (any NetworkMonitoring)? = nil, loop: LoopChoice = .shared
    ) -> any LoadingService {
        let executor =
            switch loop {
            case .shared: LoopDirectory.next()
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
            policy: policy, stores: stores, security: security, proxies: proxies,
            issuers: IssuerFetches(policy, proxies: proxies, network: network, clock: stores.clock, executor: executor),
            executor: executor, mailbox: mailbox)
        let headers = session.headers
        mayRespondImmediately =
            stores.cache != nil && !policy.mayReachOtherServers
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
        view?.addressesChanged = { [session] in session.http3.directory.networkChanged() }
        let dialer = Dialer(
            loop: executor.loop, tls: tls, resolver: resolver,
            validatingResolver: SystemResolver(ValidatedNames.lookups), options: policy.connections,
            needs: policy.needs, usesMultipath: policy.usesMultipath, now: WallClock.now,
            network: view,
            demands: { if case .allowed(let demands) = security.verdict(isSecure: true, host: $0) { demands } else { .strict } }
        )
        session.http3.opened = { dialer.quic = $0 }
        pool = ConnectionPool(
            loop: executor.loop, dialer: dialer, maximumConnectionsPerHost: policy.maximumConnectionsPerHost
        )
        #if Logging || Metrics || Tracing
        dialer.observer = policy.connectionObserver
        #endif
        plan = LoadPlan(pool: pool)
        deadlines = DeadlineClock(executor, clock: stores.clock)
        stores.clock?.add { [weak self] elapsed, step in
            self?.post(.step(step, elapsed: elapsed))
            return self != nil
        }
    }

    /// Whether the calling thread runs loads; if so, the app must not block it.
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
        case .reportCounts: load.beginTellingCounts()
        case .webSocket, .stream: load.kind?.take(command, for: load)
        }
    }

    /// Runs in one turn of the loop, so that no released connection is assigned to a load that is about to be canceled.
    func cancelAllNow() {
        for load in loads.values where !load.order.endsUpload { load.cancel(producingResumeData: false) }
    }

    func stopAcceptingOrders() {
        isInvalidated = true
        // The session's own loads are canceled too, because no task of the app is left that could cancel them.
        for load in loads.values where BackgroundLoads.include(load.id) && !load.order.endsUpload {
            load.control.abort(.cancelled)
        }
        if loads.isEmpty { pool.shutDown() }
    }

    func renew(_ renewal: Renewal, _ completion: @escaping @Sendable () -> Void) {
        pool.closeIdle()
        resolver.forget()
        ValidatedNames.forget()
        session.http3.directory.forgetRecords()
        session.proxies?.failed = FailedProxies()
        session.proxies?.scripts.forget()
        session.issuers?.forget()
        switch renewal {
        case .reset:
            session.credentials.removeAll()
            session.http3.directory.removeAll()
            session.removeSessionOnlyState()
            // A store may have to read its file.
            DiskQueue.shared.run(on: .values) { [stores] in
                stores.removeAll()
                stores.flush(completion)
            }
        case .flush: stores.flush(completion)
        }
    }

    func apply(_ step: SteppedClock.Step, to elapsed: Int64) { deadlines.apply(step, to: elapsed) }

    /// Returns the alternative services of an origin, for clients of other protocols.
    package func alternatives(of origin: Origin) -> [AlternativeService] {
        session.http3.directory.alternatives.services(of: origin, now: session.seconds(.now()))
    }

    /// Returns what the session knows about HTTP/3 for an origin.
    package func http3(of origin: Origin) -> HTTP3Standing { session.http3.standing(of: origin) }

    // MARK: One load

    /// Starts a load.
    ///
    /// Most loads wait only for their connection and the response head, and can then finish immediately. They run without a task,
    /// because a task costs as much as parsing the response. A task is created only for a load that has to wait for something else.
    func start(_ order: TaskOrder, client: any LoadClient) {
        guard let load = accept(order, client) else { return }
        guard load.collects, !load.control.isSuspended, load.order.earliestBegin == nil, load.order.upload?.resuming == nil else {
            return load.order.upload?.isGivenUp == true ? giveUp(load) : startTask(load)
        }
        proceed(load, load.firstHop())
    }

    /// Ends a load whose upload was given up while no load carried it; the server is asked to discard the upload.
    private func giveUp(_ load: Load) {
        _ = load.firstHop()
        fail(load, .cancelled)
    }

    /// Continues a load without a task after it was woken.
    func proceed(_ woken: NIOLoopBound<Load>) {
        let load = woken.value
        if let hop = load.takeParkedHop() { proceed(load, hop) }
    }

    private func proceed(_ load: Load, _ hop: Hop) {
        switch plan.proceed(hop, in: load) {
        case .waits: load.park(hop, by: self)
        case .proceed, .needsTask: startTask(load, at: hop)
        case .answered(let answer):
            // The rest of the body is awaited in a task.
            if !isDelivered(answer, of: load) { Task.immediate(executorPreference: executor) { await deliver(answer, of: load) } }
        }
    }

    /// Creates and starts the load's task, which stays on the loop for its lifetime.
    ///
    /// The common path is in the task's closure instead of a separate method: the runtime does not yet consider an immediate task
    /// to be on its executor, so a call of an isolated method would start one turn later.
    ///
    /// Code that waits is kept apart from code that does not: each local variable that is live across an `await` takes memory in
    /// the task, and ten thousand loads may be waiting.
    private func startTask(_ load: Load, at hop: Hop? = nil) {
        Task.immediate(executorPreference: executor) {
            if hop == nil,
                load.kind?.runsItself == true || load.control.isSuspended || load.order.earliestBegin != nil
            {
                return await runSpecialCases(load)
            }
            do throws(LoadError) {
                let answer = try await plan.answer(hop ?? load.firstHop(), in: load)
                if !isDelivered(answer, of: load) { await deliver(answer, of: load) }
            } catch {
                fail(load, error)
            }
        }
    }

    /// Ends a load whose whole body has arrived and is collected; returns whether the load has ended.
    private func isDelivered(_ answer: Answer, of load: Load) -> Bool {
        do throws(LoadError) {
            guard let body = try DataDelivery.whole(answer, of: load) else { return false }
            end(load, .success(body))
        } catch {
            fail(load, error)
        }
        return true
    }

    /// Runs a load that is suspended, has an earliest begin date, or is of a kind that runs itself.
    @inline(never)
    private func runSpecialCases(_ load: Load) async {
        do throws(LoadError) {
            if load.control.isSuspended || load.order.earliestBegin != nil { try await begin(load) }
            if let kind = load.kind, kind.runsItself { return end(load, .success(try await kind.run(by: plan, in: load))) }
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
            } else if let own = try await load.kind?.deliver(answer, of: load) {
                body = own
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
        if entrance.processMessages == nil { openEntrance(for: session) }
        let load = Load(order, Self.kind(of: order), client: client, session: session, now: .now())
        loads[LoadNumber(order.id)] = load
        deadlines.add(load, now: load.started)
        return load
    }

    /// Returns the kind of an order's load; nil for plain data.
    private static func kind(of order: TaskOrder) -> LoadKind? {
        switch order.delivery {
        case .collect, .stream: order.upload.map { UploadResumption($0, of: order.request) }
        case .download(let resumeData): DownloadLoad(resuming: resumeData)
        case .webSocket(let socket): WebSocketLoad(socket)
        case .byteStream(let stream): StreamLoad(stream)
        }
    }

    @inline(never)
    func end(_ load: Load, _ result: Result<TaskOutcome.Body, LoadError>) {
        loads[LoadNumber(load.id)] = nil
        deadlines.remove(load)
        load.tellSent()
        load.kind?.end()
        load.observeEnd(result)
        load.control.enter(.elsewhere)
        let outcome = TaskOutcome(
            result: result, response: load.response, timelines: load.wants(.metrics) ? load.timelines : [],
            redirectCount: load.followUp.redirectCount,
            sentBodyBytes: load.transaction.map { $0.sentOffset + $0.sentBodyBytes } ?? 0, receivedBodyBytes: load.body.received,
            keptUntilTold: load.deadline.takeStep()
        )
        ended.append((load.client, outcome))
        // Clients of loads that end in the same turn are notified together: waking a thread for each costs more than the loads.
        if ended.count == 1 { executor.callLater { self.notifyEnded() } }
        if isInvalidated, loads.isEmpty { pool.shutDown() }
    }

    private func notifyEnded() {
        if ended.count == 1, let (client, outcome) = ended.popLast() {
            client.conclude(outcome)?.run()
            return
        }
        swap(&ended, &notifying)
        Waking.run(notifying.compactMap { client, outcome in client.conclude(outcome) })
        notifying.removeAll(keepingCapacity: notifying.count <= 64)
    }

    /// Waits for the task's earliest begin date, and asks the app whether the request is still valid.
    @inline(never)
    private func begin(_ load: Load) async throws(LoadError) {
        try await load.control.waitWhileSuspended()
        guard let begin = load.order.earliestBegin else { return }
        if session.seconds(.now()) < begin {
            // The app asked for this delay, so no timeout applies to it.
            deadlines.remove(load)
            // The system's clock may be set back during the wait.
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
            // The new request's timeout may differ.
            deadlines.remove(load)
            deadlines.add(load, now: load.control.lastProgress)
            load.tell(.requestChanged(request))
        }
    }

    @inline(never)
    private func fail(_ load: Load, _ error: LoadError) {
        var error = error
        if error.url == nil { error.url = load.transaction?.request.url ?? load.order.request.url }
        load.kind?.willFail(with: &error, in: load)
        end(load, .failure(error))
    }
}

/// The key of a load in its session: the number of its task.
private struct LoadNumber: NumberedIdentifier {
    let number: TaskID

    init(_ number: TaskID) { self.number = number }
}
