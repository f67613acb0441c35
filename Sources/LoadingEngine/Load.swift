//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
import FoundationEssentials
import HTTPTransport
import HTTPWire
import LoadingModel
import NIOCore

/// What is known of one load while it runs.
///
/// The stages and deliveries share it; nobody else does.
///
/// Confined to the session's event loop.
final class Load: LoopCallee {
    /// How much body the client may have been told and not yet dealt with: two of the pieces that a fast body comes in.
    static let creditWindow = 1_572_864

    let id: TaskID
    let client: any LoadClient
    let control: LoadControl
    let session: SessionFacts
    let started: NIODeadline
    // Unchecked here and below is what every load reads step by step: what changes it calls nothing that could come back here.
    @exclusivity(unchecked) private(set) var order: TaskOrder
    /// The response that was, or is being, delivered.
    private(set) var response: LoadResponse?
    /// The transaction that goes on, or was the last.
    private(set) var transaction: Transaction?
    private var earlierTransactions: [Transaction] = []
    /// Cancelled by the app so that it can go on later.
    private(set) var wantsResumeData = false
    /// The client knows that the load waits, or waited, for a network.
    private var toldThatItWaits = false
    /// The hop that waits without a task.
    private var departed: Hop?
    /// Whom it waits for; a task would hold the engine as well.
    private var engine: SessionEngine?
    /// Bytes told to the client and not yet dealt with.
    private var outstandingBytes = 0

    // Each part is declared beside the code that changes it.
    @exclusivity(unchecked) var followUp = FollowUpStage.LoadPart()
    var lastAttempt = NetworkStage.LoadPart()
    var resumption = DownloadResumption.LoadPart()
    @exclusivity(unchecked) var tunnels = TunnelQuestions()
    @exclusivity(unchecked) var body = BodyCounts()
    var deadline = DeadlineClock.LoadPart()
    #if Logging || Metrics || Tracing
    var observation = Observation()
    #endif
    /// Nil for all loads but a WebSocket's.
    let webSocket: WebSocketLoad?
    /// Nil for all loads but uploads that may be continued.
    let upload: UploadResumption?
    /// Nil for all loads but those of stream tasks, and of data tasks that became one.
    private(set) var stream: StreamLoad?

    init(_ order: TaskOrder, client: any LoadClient, session: SessionFacts, now: NIODeadline) {
        id = order.id
        self.order = order
        self.client = client
        self.session = session
        started = now
        control = LoadControl(on: session.executor, now: now)
        upload = order.upload.map { UploadResumption($0, of: order.request) }
        if case .byteStream(let order) = order.delivery { stream = StreamLoad(order) } else { stream = nil }
        if case .webSocket(var socket) = order.delivery {
            webSocket = WebSocketLoad(socket)
            // What the app said is kept until it is sent, and no longer.
            socket.queued = []
            self.order.delivery = .webSocket(socket)
        } else {
            webSocket = nil
        }
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
        control.line?.priorityChanged(connectionPriority)
        control.exchange?.priorityChanged(priority)
    }

    /// Its place among those that wait for connections: nobody waits behind what is done in the background.
    var connectionPriority: Float {
        order.request.needs.joined(with: session.policy.needs).service == .background ? order.priority - 2 : order.priority
    }

    /// The app has another request in mind than it ordered.
    func replaceRequest(_ request: LoadRequest) { order.request = request }

    func add(_ interests: TaskOrder.Interests) { order.interests.formUnion(interests) }

    /// Keeps a response as the one that is delivered, or goes with the error.
    func take(_ response: LoadResponse?) { self.response = response }

    func cancel(producingResumeData: Bool) {
        if producingResumeData { wantsResumeData = true }
        control.abort(.cancelled)
    }

    var isDownload: Bool { if case .download = order.delivery { true } else { false } }
    var collects: Bool { if case .collect = order.delivery { true } else { false } }
    /// Whether responses to a hop are stored, and stored ones answer it.
    ///
    /// Not where it asks for another protocol, as no stored one switches, nor where it is about the state of an upload.
    func usesCache(_ hop: Hop) -> Bool { !isDownload && !asksToSwitch(hop) && !hop.goesToUpload }

    /// Whether its connection is to be taken over by what the server switches to: by a WebSocket, or as the app's request asks for.
    ///
    /// What the app asked one server for is not asked of another that a redirect leads to.
    func asksToSwitch(_ hop: Hop) -> Bool {
        webSocket != nil
            || !collects && wants(.upgrades) && isStreamed && hop.request.hasField(.upgrade) && !hop.followUp.leftOrigin
    }

    private var isStreamed: Bool { if case .stream = order.delivery { true } else { false } }

    /// Turns the load into a byte stream.
    func becomeStream() -> StreamLoad {
        let url = transaction?.request.url ?? order.request.url
        let isSecure = ["https", "wss"].contains(url?.scheme?.lowercased())
        let stream = StreamLoad(StreamOrder(host: url?.host ?? "", port: url?.port ?? (isSecure ? 443 : 80)))
        self.stream = stream
        return stream
    }

    @inline(never)
    func firstHop() -> Hop {
        if let hop = upload?.firstHop(of: self) { return hop }
        let hop = Hop(number: 0, request: order.request)
        // The session's credentials are not meant for the server of a proxy script.
        if order.isForProxies || order.leftOrigin { hop.followUp = FollowUpStage.HopPart(leftOrigin: true) }
        return hop
    }

    /// Has the engine go on with the hop when the load is woken; it lives until then.
    func park(_ hop: Hop, of engine: SessionEngine) {
        departed = hop
        self.engine = engine
        control.park(self)
    }

    package func goOn() {
        let engine = engine
        session.goOn?(NIOLoopBound(self, eventLoop: session.loop))
        withExtendedLifetime(engine) {}
    }

    func takeDeparted() -> Hop? {
        defer { (departed, engine) = (nil, nil) }
        return departed
    }

    func wants(_ interest: TaskOrder.Interests) -> Bool {
        // Not by `contains`, which is not compiled in place for the set of another room.
        order.interests.rawValue & interest.rawValue == interest.rawValue
    }

    /// The last progress in seconds since the reference date: the time that the load decides by, which spares it a look at the clock.
    var now: Double { WallClock.seconds(control.lastProgress) }

    /// The session's proxies, unless the load is one that is made for them.
    var proxies: SessionProxies? {
        guard let proxies = session.proxies, !order.isForProxies else { return nil }
        return proxies
    }

    /// Seconds without progress that this request allows: its own, or the session's.
    var requestTimeout: Double { order.request.timeout ?? session.policy.requestTimeout }

    // MARK: Talking to the client

    func tell(_ event: TaskEvent) { client.tell(event) }

    /// The load waits for a network: told once at most.
    func tellThatItWaits() {
        guard !toldThatItWaits else { return }
        toldThatItWaits = true
        tell(.waitingForConnectivity)
    }

    /// Asks the client and waits for its answer, or for the end of the load.
    ///
    /// The request timeout does not run meanwhile: it is about the server.
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
        let line = control.line
        line?.appIsAsked(true)
        defer {
            let now = NIODeadline.now()
            line?.appIsAsked(false)
            control.letGo(now: now)
            control.markProgress(now)
        }
        while true {
            if let answer = slot.value { return answer }
            try control.check()
            await control.wait()
        }
    }

    /// Tells body bytes, and waits while too many are outstanding.
    func tell(data: Data) async throws(LoadError) {
        outstandingBytes += data.count
        client.tell(.data(data))
        if outstandingBytes >= Self.creditWindow { try await waitForCredit() }
        try control.check()
    }

    /// Tells a message of a WebSocket, which counts as so many bytes.
    func tell(_ message: WebSocketMessage, cost: Int) {
        outstandingBytes += cost
        client.tell(.webSocket(.message(message)))
    }

    var hasCredit: Bool { outstandingBytes < Self.creditWindow }

    /// Waits until there is credit, or something else is to be done.
    @inline(never)
    func waitForCredit(unless isOver: () -> Bool = { false }) async throws(LoadError) {
        outstandingBytes -= session.mailbox.beginWaitingForCredit(of: id)
        defer { session.mailbox.endWaitingForCredit() }
        guard !hasCredit else { return }
        control.hold(now: .now())
        defer { control.letGo(now: .now()) }
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
