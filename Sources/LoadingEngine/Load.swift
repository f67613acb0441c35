// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPTransport
import HTTPWire
import LoadingModel
import NIOCore

/// The state of one load while it runs.
///
/// Used only by the stages and deliveries of the load. Confined to the session's event loop.
final class Load: LoopCallee {
    let id: TaskID
    let client: any LoadClient
    let control: LoadControl
    let session: SessionFacts
    let started: NIODeadline
    // These properties, here and below, are unchecked because every load reads them at each step; the methods that change them do
    // not call back into the load.
    @exclusivity(unchecked) private(set) var order: TaskOrder
    /// The response that was or is being delivered.
    private(set) var response: LoadResponse?
    /// The current transaction, or the last one.
    private(set) var transaction: Transaction?
    private var earlierTransactions: [Transaction] = []
    /// Whether the app canceled the load and wants to resume it later.
    private(set) var wantsResumeData = false
    /// Whether the client was told that the load is waiting for a network.
    private var hasReportedWaiting = false
    /// The hop at which a load without a task is waiting.
    private var parkedHop: Hop?
    /// The runner of the waiting hop.
    ///
    /// The load retains the runner, as a task would.
    private var runner: (any LoadRunner)?
    /// The number of bytes that were delivered to the client and have not been processed yet.
    private var outstandingBytes = 0

    @exclusivity(unchecked) var followUp = FollowUpHistory()
    var lastAttempt = AttemptTraffic()
    @exclusivity(unchecked) var tunnels = TunnelQuestions()
    @exclusivity(unchecked) var body = BodyCounts()
    var deadline = DeadlinePlace()
    #if Logging || Metrics || Tracing
    var observation = Observation()
    #endif
    /// Nil for a load of plain data.
    @exclusivity(unchecked) private(set) var kind: LoadKind?

    init(_ order: TaskOrder, _ kind: LoadKind?, client: any LoadClient, session: SessionFacts, now: NIODeadline) {
        id = order.id
        self.order = order
        self.client = client
        self.session = session
        started = now
        control = LoadControl(on: session.executor, now: now)
        self.kind = kind
        kind?.begin(with: &self.order)
    }

    var timelines: [TransactionTimeline] { earlierTransactions.map(\.timeline) + (transaction.map { [$0.timeline] } ?? []) }

    func begin(_ transaction: Transaction) {
        if let earlier = self.transaction {
            earlier.observeEnd()
            earlierTransactions.append(earlier)
        }
        self.transaction = transaction
    }

    func setPriority(_ priority: Float) {
        order.priority = priority
        control.queuePosition?.priorityChanged(connectionPriority)
        control.exchange?.priorityChanged(priority)
    }

    /// The load's priority for connections.
    ///
    /// Background loads never delay other loads.
    var connectionPriority: Float {
        order.request.needs.joined(with: session.policy.needs).service == .background ? order.priority - 2 : order.priority
    }

    /// Replaces the request of the order with the app's new request.
    func replaceRequest(_ request: LoadRequest) { order.request = request }

    func add(_ interests: TaskOrder.Interests) { order.interests.formUnion(interests) }

    /// Stores the response that is delivered, or that accompanies the error.
    func take(_ response: LoadResponse?) { self.response = response }

    func cancel(producingResumeData: Bool) {
        if producingResumeData { wantsResumeData = true }
        control.abort(.cancelled)
    }

    var collects: Bool { if case .collect = order.delivery { true } else { false } }
    /// Whether the load may answer a hop from the cache and store its response.
    ///
    /// False for hops that ask to switch protocols, and for those that do not go to the URL of the app's request.
    func usesCache(_ hop: Hop) -> Bool { mayUseCache && !asksToSwitch(hop) && !hop.leavesRequest }
    var mayUseCache: Bool { kind?.usesCache ?? true }

    /// Whether the hop asks the server to switch protocols: to a WebSocket, or to the protocol that the app's request names.
    ///
    /// A redirect to another server drops the app's own `Upgrade`.
    func asksToSwitch(_ hop: Hop) -> Bool {
        switchesProtocols
            || !collects && wants(.upgrades) && isStreamed && hop.request.hasField(.upgrade) && !hop.followUp.leftOrigin
    }

    /// Whether every hop asks the server to switch protocols.
    var switchesProtocols: Bool { kind?.switchesProtocols ?? false }

    private var isStreamed: Bool { if case .stream = order.delivery { true } else { false } }

    /// Continues as a load of another kind.
    func become(_ kind: LoadKind) { self.kind = kind }

    @inline(never)
    func firstHop() -> Hop {
        if let hop = kind?.firstHop(of: self) { return hop }
        let hop = Hop(number: 0, request: order.request)
        // The session's credentials are not sent to the server of a proxy script.
        if order.isForProxies || order.leftOrigin { hop.followUp = FollowUpState(leftOrigin: true) }
        return hop
    }

    /// Makes the runner continue the hop when the load is woken; the load retains the runner until then.
    func park(_ hop: Hop, by runner: any LoadRunner) {
        parkedHop = hop
        self.runner = runner
        control.park(self)
    }

    package func proceed() { runner?.proceed(self) }

    func takeParkedHop() -> Hop? {
        defer { (parkedHop, runner) = (nil, nil) }
        return parkedHop
    }

    func wants(_ interest: TaskOrder.Interests) -> Bool {
        // `contains` is not inlined for an option set of another module.
        order.interests.rawValue & interest.rawValue == interest.rawValue
    }

    /// The time of the last progress, in seconds since the reference date; used instead of reading the clock.
    var now: Double { session.seconds(control.lastProgress) }

    /// The session's proxies, unless this load fetches a proxy script.
    var proxies: SessionProxies? {
        guard let proxies = session.proxies, !order.isForProxies else { return nil }
        return proxies
    }

    /// The request timeout in seconds: the request's own, or the session's.
    var requestTimeout: Double { order.request.timeout ?? session.policy.requestTimeout }

    /// Waits a number of seconds, which do not count as idle time.
    func pause(_ seconds: Double) async throws(LoadError) {
        guard seconds > 0 else { return }
        control.hold(now: .now())
        defer { control.endHold(now: .now()) }
        try await session.wait(seconds, in: control)
    }

    // MARK: Communication with the client

    func tell(_ event: TaskEvent) { client.tell(event) }

    /// Reports, at most once, that the load is waiting for a network.
    func reportWaiting() {
        guard !hasReportedWaiting else { return }
        hasReportedWaiting = true
        tell(.waitingForConnectivity)
    }

    /// Asks the client and waits for its answer, or for the end of the load.
    ///
    /// The request timeout is paused meanwhile, because only the server's time counts toward it.
    func ask(_ question: TaskQuestion) async throws(LoadError) -> TaskAnswer {
        try control.check()
        let slot = NIOLoopBoundBox(nil as TaskAnswer?, eventLoop: session.loop)
        let load = NIOLoopBound(self, eventLoop: session.loop)
        let loop = session.loop
        client.ask(question) { answer in
            loop.execute {
                slot.value = answer
                load.value.control.wake()
            }
        }
        control.hold(now: .now())
        let queuePosition = control.queuePosition
        queuePosition?.appIsAsked(true)
        defer {
            let now = NIODeadline.now()
            queuePosition?.appIsAsked(false)
            control.endHold(now: now)
            control.markProgress(now)
        }
        while true {
            if let answer = slot.value { return answer }
            try control.check()
            await control.wait()
        }
    }

    /// Delivers body bytes, and waits while too many are outstanding.
    func tell(data: Data) async throws(LoadError) {
        outstandingBytes += data.count
        client.tell(.data(data))
        if outstandingBytes >= Mailbox.creditWindow { try await waitForCredit() }
        try control.check()
    }

    /// Delivers a WebSocket message, which counts as `cost` bytes.
    func tell(_ message: WebSocketMessage, cost: Int) {
        outstandingBytes += cost
        client.tell(.webSocket(.message(message)))
    }

    var hasCredit: Bool { outstandingBytes < Mailbox.creditWindow }

    /// Waits until there is credit, or `isOver` returns true.
    @inline(never)
    func waitForCredit(unless isOver: () -> Bool = { false }) async throws(LoadError) {
        outstandingBytes -= session.mailbox.beginWaitingForCredit(of: id)
        defer { session.mailbox.endWaitingForCredit() }
        guard !hasCredit else { return }
        control.hold(now: .now())
        defer { control.endHold(now: .now()) }
        while !hasCredit, !isOver() {
            try control.check()
            await control.wait()
        }
    }

    func consumed(_ bytes: Int) {
        let mayWait = !hasCredit
        outstandingBytes = max(0, outstandingBytes - bytes)
        if mayWait, hasCredit { control.wake() }
    }
}

/// Continues loads that wait without a task.
///
/// This is the session's engine, as its loads see it: `SessionEngine+Mailbox.swift`.
protocol LoadRunner: AnyObject {
    /// Continues a load that was woken, on the session's loop.
    func proceed(_ load: Load)
}
