// SPDX-License-Identifier: Apache-2.0

import CQUIC
package import HTTPRules
package import HTTPWire
package import LoadingModel
import NIOCore
import TransportMachines

typealias HTTP3Stream = CarriedStream<HTTP3Connection>

/// What a connection keeps with each stream.
struct HTTP3StreamState {
    /// The section that is arriving.
    var section = HTTP3FieldSectionReader()
    var isTrailers = false
}

/// Carries many exchanges at a time over an HTTP/3 connection (RFC 9114).
///
/// The library behind ``QUICConnection`` reads and writes packets, frames and field sections, and the windows for sending are its own.
/// The connection's own receive window is refilled as soon as data arrives: a slow task is limited by its stream's window, and does not
/// block other streams.
///
/// Confined to its loop, which is the session's.
package final class HTTP3Connection: HTTPConnection, StreamHost {
    typealias StreamID = Int64
    typealias Sending = HTTP3StreamState
    typealias Outlet = HTTP3BodyOutlet

    static let version = HTTPVersions.http3
    /// The initial receive window of a stream, in bytes.
    static let streamWindow = 1_048_576
    static let connectionWindow = PeerSettings.largestCapacity * streamWindow
    /// The maximum size of a field section that is accepted (RFC 9114, section 4.2.2), in bytes.
    static let sectionLimit = HTTP2FrameReader.Limits().headerListBytes
    /// How many datagrams may bring nothing: more than a window of them that arrive after a lost one.
    private static let datagramsWithoutProgress = 65_536
    /// While a response is awaited, the server is asked for a sign of life after so many nanoseconds without one; more often if it
    /// bears less silence.
    private static let askInterval: Int64 = 10_000_000_000
    /// How long before the end of what either side bears an idle connection is closed, in nanoseconds.
    private static let idleMargin: Int64 = 2_000_000_000

    package let id: Int
    package private(set) var facts: ConnectionFacts
    package let keptChain: KeptChain?
    @exclusivity(unchecked) package var pool: ConnectionPool?
    package private(set) var initialCapacity: Int? = 1
    let loop: any EventLoop
    let quic: QUICConnection
    /// What is told to the session about the place where the connection leads to.
    let endpoint: QUICEndpointReport?
    private let closedPromise: EventLoopPromise<Void>

    @exclusivity(unchecked) var streams: [Int64: HTTP3Stream] = [:]
    @exclusivity(unchecked) var loan = WindowLoan()
    @exclusivity(unchecked) var buffers = RecycledBuffers(size: 131_072, limit: 24)
    @exclusivity(unchecked) var flood: FrameFlood
    @exclusivity(unchecked) var liveness: LivenessMachine
    @exclusivity(unchecked) var status: HTTP3ConnectionStatus
    /// Streams that received something in this read.
    @exclusivity(unchecked) var touched: [HTTP3Stream] = []
    var questionTimer: Scheduled<Void>?
    private var isMoving = false
    /// The limit on concurrent exchanges that the pool knows.
    private var toldCapacity = 1
    var bulk: BulkReading? { nil }

    init(
        _ quic: QUICConnection, id: Int, facts: ConnectionFacts, keptChain: KeptChain?, endpoint: QUICEndpointReport?,
        pool: ConnectionPool,
        closed: EventLoopPromise<Void>
    ) {
        self.quic = quic
        self.id = id
        self.facts = facts
        self.keptChain = keptChain
        self.endpoint = endpoint
        self.pool = pool
        closedPromise = closed
        loop = pool.loop
        let now = loop.now.nanoseconds
        flood = FrameFlood(now: now, limit: Self.datagramsWithoutProgress)
        liveness = LivenessMachine(now: now, patience: .datagrams)
        status = HTTP3ConnectionStatus(facts)
        quic.owner = self
        quic.keepAlive(after: nil)
        toldCapacity = capacity
        initialCapacity = toldCapacity
    }

    // MARK: The pool's side

    var isOpen: Bool { !status.isClosing && quic.isOpen }
    package var channelIsActive: Bool { isOpen }
    package var isIdle: Bool { streams.isEmpty }
    private var takesRequests: Bool { isOpen && status.goAway == nil }
    /// Whether the connection takes no more requests; that the server is gone is noticed after a request (``LivenessMachine``).
    package var isGone: Bool { !takesRequests }
    package var servesOtherHosts: Bool { isOpen && facts.isVerified && !facts.sentClientCertificate }
    package var hasAnswered: Bool { status.answers.hasAnswered }
    package var allowsExchange: Bool {
        if quic.requestCount < quic.allowedRequests { return true }
        // The pool must not grant the connection again before the limit is raised.
        tell(capacity)
        return false
    }
    package var evidenceBeforeRequest: RetryEvidence { status.evidence }
    package var allowsExtendedConnect: Bool { takesRequests && quic.allowsExtendedConnect }

    /// The number of exchanges that the server allows now: the limit of QUIC is on all requests since the beginning (RFC 9000, section
    /// 4.6).
    private var capacity: Int {
        let left = max(0, quic.allowedRequests - quic.requestCount)
        return Int(min(Int64(streams.count) + left, Int64(PeerSettings.largestCapacity)))
    }

    /// Tells the pool about a limit that is reached, or raised; not about each request and each end while there is much left.
    private func tellCapacity() {
        let capacity = capacity
        if capacity > toldCapacity || capacity - streams.count < 32 { tell(capacity) }
    }

    private func tell(_ capacity: Int) {
        guard capacity != toldCapacity else { return }
        toldCapacity = capacity
        if !liveness.isBarred { pool?.leaseLimitChanged(capacity, of: self, isLasting: false) }
    }

    func bar(_ isBarred: Bool) { pool?.leaseLimitChanged(isBarred ? 0 : toldCapacity, of: self, isLasting: false) }

    /// Returns the head for HTTP/3, in which no field frames the message.
    package func framedHead(of message: OutgoingMessage) -> RequestHead {
        var head = message.head
        head.majorVersion = 3
        // "clients SHOULD use the Alt-Used header field in each request" (RFC 7838, section 5).
        if let used = endpoint?.alternative(of: head), !head.headers.contains("Alt-Used") {
            head.headers.append("Alt-Used", used)
        }
        return head
    }

    package func begin(_ message: OutgoingMessage, control: LoadControl) throws(LoadError) -> Exchange {
        let now = loop.now
        guard takesRequests else { throw status.closedBefore }
        let hasBody = message.body.length != nil || message.asksToSwitch
        let (id, size) = try writeHead(message, hasBody: hasBody)
        let stream = HTTP3Stream(id, of: self, isHead: message.head.method == "HEAD", sending: HTTP3StreamState(), now: now)
        let exchange = Exchange(control: control, carrier: stream, facts: facts, version: .http3, isReused: id > 0, now: now)
        exchange.asksToSwitch = message.asksToSwitch
        exchange.record.sentHead(size)
        stream.carry(exchange)
        if streams.isEmpty { quic.keepAlive(after: UInt64(min(Self.askInterval, (quic.idleTimeout ?? .max) / 3))) }
        streams[id] = stream
        tellCapacity()
        if streams.count == 1, message.head.method == "GET" { stream.expectBulk() }
        control.markProgress(now)
        if message.asksToSwitch {
            stream.beginSwitching()
            exchange.record.sentAll(now)
        } else if hasBody {
            stream.send(message.body, expectsContinue: message.expectsContinue)
        } else {
            stream.hasSentEnd = true
            exchange.record.sentAll(now)
        }
        perform(liveness.handle(.requestBegan, now: now.nanoseconds))
        quic.scheduleFlush()
        return exchange
    }

    /// Begins a stream with the request's head; returns the stream, and the size of the fields.
    private func writeHead(_ message: OutgoingMessage, hasBody: Bool) throws(LoadError) -> (Int64, Int) {
        let head = endpoint?.isAlternative == true ? framedHead(of: message) : message.head
        let request: HTTP3RequestFields
        do {
            request = try HTTP3RequestFields(
                head, scheme: "https", priority: HTTP2Priority.field(message.priority), protocolName: message.protocolName)
        } catch {
            throw LoadError(.badURL, "the request cannot be sent: \(error.message)", cause: error)
        }
        if let limit = quic.peerSectionLimit, request.listBytes > limit {
            throw LoadError(
                .dataLengthExceedsMaximum,
                """
                sending the request to \(facts.peer): its header fields have \(request.listBytes) bytes, but the server accepts only \
                \(limit) (SETTINGS_MAX_FIELD_SECTION_SIZE): send fewer or shorter fields, including cookies
                """)
        }
        let stream = request.bytes.withUnsafeBytes { bytes in
            withUnsafeTemporaryAllocation(of: cquic_field.self, capacity: request.fields.count) { fields in
                for (index, field) in request.fields.enumerated() {
                    fields.initializeElement(
                        at: index,
                        to: cquic_field(
                            name: UnsafeRawBufferPointer(rebasing: bytes[field.name]).forQUIC,
                            value: UnsafeRawBufferPointer(rebasing: bytes[field.value]).forQUIC, is_secret: field.isSecret ? 1 : 0
                        ))
                }
                return quic.request(UnsafeBufferPointer(fields), hasBody: hasBody)
            }
        }
        guard stream >= 0 else {
            // The server has limited its requests meanwhile, or memory is short.
            giveUp()
            throw status.closedBefore
        }
        return (stream, request.listBytes)
    }

    package func close() {
        guard !status.isClosing else { return }
        leavePool()
        failAll(status.ended)
        quic.close()
        ended()
    }

    package func giveUp() {
        if streams.isEmpty { close() } else { pool?.drains(self) }
    }

    /// Moves to another network if the server allows that, because its exchanges then survive.
    package func networkIsLost(_ error: LoadError) {
        guard hasAnswered, !streams.isEmpty, !isMoving else { return lose(error) }
        isMoving = true
        quic.migrate { [self] hasMoved in
            isMoving = false
            guard isOpen else { return }
            guard hasMoved else { return lose(error) }
            let local = quic.channel?.localAddress
            facts = facts.moved(
                to: local?.ipAddress, local?.port, by: pool?.dialer.network?.interface(from: local?.ipAddress))
            perform(liveness.handle(.requestTimedOut(began: .max), now: loop.now.nanoseconds))
        }
    }

    /// Ends the connection with its exchanges.
    func lose(_ error: LoadError) {
        leavePool()
        failAll(error)
        quic.close()
        ended()
    }

    /// Removes the connection from the pool before its exchanges end, so that the pool does not give their places to other loads.
    func leavePool() {
        status.close()
        pool?.connectionClosed(self)
        pool = nil
    }

    /// Ends what outlives the exchanges.
    func ended() {
        notifyLiveness(.ended)
        touched = []
        closedPromise.succeed()
        pool = nil
    }

    // MARK: The end of streams

    var streamsInOrder: [HTTP3Stream] { streams.values.sorted { $0.id < $1.id } }

    func abandon(_ stream: HTTP3Stream, isLate: Bool) {
        reset(stream, .requestCancelled)
        if isLate, isOpen { notifyLiveness(.requestTimedOut(began: stream.began.nanoseconds)) }
        end(stream)
    }

    func reset(_ stream: HTTP3Stream, _ code: HTTP3ErrorCode) { quic.cancel(stream.id, code) }

    /// Ends a stream.
    func end(_ stream: HTTP3Stream, _ error: LoadError? = nil, evidence: RetryEvidence = .none, isComplete: Bool = false) {
        guard streams.removeValue(forKey: stream.id) != nil else { return }
        loan.giveBack(stream.borrowed)
        let exchange = stream.end()
        exchange?.end(isComplete: isComplete, error, evidence: evidence)
        tellCapacity()
        if streams.isEmpty {
            quic.keepAlive(after: nil)
            quic.socket?.shrink()
            buffers.removeAll()
        }
        pool?.exchangeEnded(on: self, reusable: true, keepAlive: keepAlive, now: exchange?.record.responseEnd ?? .now())
    }

    /// How long the connection may be kept idle, so that it is not used when the server has forgotten it.
    private lazy var keepAlive = quic.idleTimeout.map { max($0 - Self.idleMargin, $0 / 2) }

    /// Ends a stream that receives nothing more; if its whole response has arrived, the exchange is complete.
    func giveUp(_ stream: HTTP3Stream, _ error: LoadError, evidence: RetryEvidence) {
        if stream.hasWholeResponse { end(stream, isComplete: true) } else { end(stream, error, evidence: evidence) }
    }

    func failAll(_ error: LoadError, evidence: RetryEvidence = .none) {
        for stream in streamsInOrder { giveUp(stream, error, evidence: evidence) }
    }

    // MARK: StreamHost

    var lastRead: Int64 { liveness.lastRead }
    var roundTrip: Int64 { quic.roundTrip }

    func makeOutlet(for stream: HTTP3Stream) -> HTTP3BodyOutlet { HTTP3BodyOutlet(stream, of: self) }

    func widenWindow(by change: Int, of stream: HTTP3Stream) { quic.credit(stream.id, change) }

    func noteLargeRead(received: Int64, missing: Int64, now: NIODeadline) -> Bool { false }

    /// The load of a switched stream is woken when its piece has been sent.
    func queue(_ stream: HTTP3Stream) {}

    func requestCompleted(_ stream: HTTP3Stream) {
        guard streams[stream.id] === stream else { return }
        stream.requestCompleted()
        if stream.hasWholeResponse { end(stream, isComplete: true) }
    }

    /// Resets a stream whose request body could not be read, and fails its load.
    func requestFailed(_ error: LoadError, _ stream: HTTP3Stream) {
        guard streams[stream.id] === stream else { return }
        reset(stream, .requestCancelled)
        end(stream, error, evidence: .streamFailed)
    }

    /// Sends a changed priority to the server (RFC 9218, section 7.2).
    func priorityChanged(_ priority: Float, of stream: HTTP3Stream) {
        guard isOpen, streams[stream.id] === stream else { return }
        quic.prioritize(stream.id, HTTP2Priority.field(priority) ?? HTTP2Priority.ordinary)
    }

    func limitsAreKnown() { tellCapacity() }
}
