//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import HTTPRules
package import HTTPWire
package import LoadingModel
package import NIOCore

/// When an exchange went over the wire, and how much of it.
package struct ExchangeRecord {
    package let requestStart: NIODeadline
    package private(set) var requestEnd: NIODeadline?
    /// When the first byte arrived.
    package private(set) var responseStart: NIODeadline?
    package private(set) var responseEnd: NIODeadline?
    package private(set) var requestHeaderBytes = 0
    package private(set) var requestBodyBytes: Int64 = 0
    /// Bytes of the body that are or were on their way to the network: the server may have any of them.
    package private(set) var givenBodyBytes: Int64 = 0
    package private(set) var responseHeaderBytes: Int64 = 0
    package private(set) var responseBodyBytes: Int64 = 0

    init(requestStart: NIODeadline) { self.requestStart = requestStart }

    /// Whether any byte of a response has arrived: what decides whether the request may be sent again.
    package var hasReceivedBytes: Bool { responseStart != nil }

    mutating func sentHead(_ bytes: Int) { requestHeaderBytes = bytes }
    mutating func gaveBody(_ bytes: Int64) { givenBodyBytes += bytes }
    mutating func sentBody(_ bytes: Int64) { requestBodyBytes += bytes }
    mutating func sentAll(_ now: NIODeadline) { requestEnd = now }
    mutating func received(_ now: NIODeadline) { if responseStart == nil { responseStart = now } }
    mutating func receivedHead(_ bytes: Int64) { responseHeaderBytes += bytes }
    mutating func receivedBody(_ bytes: Int64) { responseBodyBytes += bytes }
    mutating func receivedAll(_ now: NIODeadline) { responseEnd = now }
}

/// One request and its response, as a load sees them, whatever the HTTP version that carries them.
///
/// The load takes ``ExchangeEvent``s until the head of the final response, then body pieces until nil. Bytes that the load does not
/// take stay here up to ``Exchange/highWaterMark``; beyond it, and while the task is suspended, its carrier reads no more of it, so the
/// peer stops sending. Letting go of an exchange before its end must go through ``cancel()``: on the wire, an HTTP/1 connection is then
/// closed, since what is still to come cannot be told from the answer to another request, and a stream of HTTP/2 is reset.
///
/// Confined to the session's event loop.
package final class Exchange {
    /// What comes before the body.
    package enum Event {
        case informational(ResponseHead)
        /// Body bytes of the request were handed to the kernel since the last event.
        case sent(bytes: Int64, total: Int64)
        case head
    }

    /// Bytes of body that may wait here before the socket is left alone (a block of a fast body, or four reads of another).
    package static let highWaterMark = 1_048_576
    package static let lowWaterMark = 262_144
    /// 1xx responses before the final one; no server has reason to send more.
    static let maximumInformationalResponses = InformationalResponses.limit

    private enum End {
        case open
        case complete
        case failed(LoadError)
    }

    package let control: LoadControl
    package let facts: ConnectionFacts
    package let isReused: Bool
    package let version: HTTPVersion
    /// The request asks for another protocol.
    var asksToSwitch = false
    /// The peer of that protocol says no more, and may be told more.
    private var inputHasEnded = false
    // Unchecked are the parts, which call nothing that could come back here. Other modules read by a function, as each look at a stored
    // property that they can see is checked, also from here.
    /// What is received is not optional, as to unwrap it would be to copy it once more.
    @exclusivity(unchecked) private var finalHead = ResponseHead(status: 0)
    @exclusivity(unchecked) private var headIsHere = false
    package var head: ResponseHead? { headIsHere ? finalHead : nil }
    /// The head, where ``hasHead`` says that it is there.
    package var receivedHead: ResponseHead { finalHead }
    /// So that to look whether it is there does not copy it.
    package var hasHead: Bool { headIsHere }
    @exclusivity(unchecked) private var finalFraming = ResponseParser.Framing.none
    package var framing: ResponseParser.Framing { finalFraming }
    @exclusivity(unchecked) package private(set) var trailers: HeaderBlock?
    @exclusivity(unchecked) package internal(set) var record: ExchangeRecord

    // Methods, as a look from another module is checked for exclusive access, which costs more than the call.
    package var hasSentRequest: Bool { record.requestEnd != nil }
    package var sentBodyBytes: Int64 { record.requestBodyBytes }

    /// What carries the exchange, until its end.
    private(set) var carrier: (any ExchangeCarrier)?
    /// Why the request may be sent again, where that is known.
    @exclusivity(unchecked) package private(set) var evidence = RetryEvidence.none
    @exclusivity(unchecked) private var end = End.open
    private var toldSentBytes: Int64 = 0
    @exclusivity(unchecked) private var queue = BodyQueue()
    @exclusivity(unchecked) private var informational = InformationalResponses()
    @exclusivity(unchecked) private var reading = BodyReading()
    @exclusivity(unchecked) private var wakes = BodyWakes()
    @exclusivity(unchecked) var bodyFile = SentFile()

    init(
        control: LoadControl, carrier: any ExchangeCarrier, facts: ConnectionFacts, version: HTTPVersion, isReused: Bool,
        now: NIODeadline
    ) {
        self.control = control
        self.carrier = carrier
        self.isReused = isReused
        self.version = version
        self.facts = facts
        record = ExchangeRecord(requestStart: now)
    }

    func receivedHead(_ head: ResponseHead, _ framing: ResponseParser.Framing) {
        finalHead = head
        finalFraming = framing
        headIsHere = true
        lookAtBodyFile()
    }

    func received(_ trailers: HeaderBlock?) { self.trailers = trailers }

    // MARK: The load's side

    /// The next thing that happened before the body, if there is any.
    ///
    /// The head comes last, and every time it is asked for.
    package func takeEvent() -> Event? {
        if record.requestBodyBytes > toldSentBytes {
            defer { toldSentBytes = record.requestBodyBytes }
            return .sent(bytes: record.requestBodyBytes - toldSentBytes, total: record.requestBodyBytes)
        }
        if let head = informational.popFirst() { return .informational(head) }
        return headIsHere ? .head : nil
    }

    /// Whether ``takeEvent()`` has something new.
    ///
    /// Throws when nothing more will come.
    package func hasEvent() throws(LoadError) -> Bool {
        try control.check()
        guard !control.isSuspended else { return false }
        if headIsHere || record.requestBodyBytes > toldSentBytes || !informational.isEmpty { return true }
        if let failure { throw failure }
        return false
    }

    /// The next piece of the body as it was on the wire, or nil at its end.
    ///
    /// Failures come after every byte that arrived before them.
    package func next() async throws(LoadError) -> ByteBuffer? {
        while true {
            try control.check()
            if !control.isSuspended {
                if let piece = queue.popFirst() {
                    updateReading()
                    return piece
                }
                if hasWholeBody { return nil }
                if let failure { throw failure }
            }
            await control.wait()
        }
    }

    /// Whether ``next()`` has something to return or to throw, without waiting.
    package var hasNext: Bool {
        control.failure != nil || !control.isSuspended && (!queue.isEmpty || hasWholeBody || failure != nil)
    }

    /// Whether the whole body is here already; then taking it will not wait.
    package var hasWholeBody: Bool { inputHasEnded || isComplete && !bodyFile.isLookedAt }

    /// The whole body, where it is here in one piece, for a caller that has taken nothing of it.
    package func takeWhole() -> ByteBuffer? {
        guard hasWholeBody, control.failure == nil, !control.isSuspended, queue.isOneAtMost else { return nil }
        return queue.popFirst() ?? ByteBuffer()
    }

    // MARK: A protocol that was switched to

    /// Whether the server switched to the protocol that the request asked for.
    ///
    /// What it sends from then on is taken by ``next()``, and ends with the connection.
    package var hasSwitched: Bool {
        asksToSwitch && headIsHere && (version == .http1 ? finalHead.status == 101 : finalHead.status / 100 == 2)
    }

    /// Whether the peer takes more; the load is woken when it does.
    package var isWritable: Bool { carrier?.isWritable ?? false }

    /// Sends bytes of that protocol.
    ///
    /// `written` is called on the loop, perhaps at once: with true when the system has all of them.
    package func write(_ bytes: ByteBuffer, written: @escaping (Bool) -> Void) {
        guard let carrier, hasSwitched else { return written(false) }
        record.sentBody(Int64(bytes.readableBytes))
        toldSentBytes = record.requestBodyBytes
        carrier.write(bytes, for: self, written: written)
    }

    /// The connection itself, which the exchange loses; nil where it is not its own.
    package func takeConnection() -> ByteStreamConnection? {
        guard hasSwitched else { return nil }
        if let carrier { return carrier.handOver(self) }
        // The peer has ended it meanwhile.
        return version == .http1 ? ByteStreamConnection(id: 0, facts: facts, received: takeAll(), failure: failure) : nil
    }

    /// What was read and not taken.
    func takeAll() -> ByteBuffer {
        var all = queue.popFirst() ?? ByteBuffer()
        while var piece = queue.popFirst() { all.writeBuffer(&piece) }
        return all
    }

    /// The protocol that was switched to is over, and the peer has so long to end the connection.
    package func linger(_ patience: TimeAmount) {
        guard !isOver else { return }
        end = .complete
        record.receivedAll(.now())
        queue.removeAll()
        carrier?.linger(for: self, patience)
    }

    /// The compressions that the response was sent in; they are no property of what is delivered, and are to be undone before.
    package var transferCompressions: [TransferCodings.Compression] {
        switch framing {
        case .none, .length: []
        case .chunked, .untilClose:
            // The parser read the field before, and refused what cannot be read.
            if let head, head.headers.contains(.transferEncoding), let codings = try? TransferCodings(head.headers) {
                codings.compressions
            } else {
                []
            }
        }
    }

    /// What has arrived already, without waiting.
    func takeBuffered() -> ByteBuffer? { queue.popFirst() }

    private var isComplete: Bool { if case .complete = end { true } else { false } }
    private var failure: LoadError? { if case .failed(let error) = end { error } else { nil } }
    package var isOver: Bool { if case .open = end { false } else { true } }

    /// Lets go of the exchange.
    ///
    /// Harmless once it is complete.
    package func cancel() {
        guard !isOver else { return }
        end = .failed(.cancelled)
        queue.removeAll()
        bodyFile.settle()
        carrier?.abandon(self)
    }

    /// How many bytes that its connection was given the peer has not acknowledged.
    package var unacknowledgedBytes: Int64 { carrier?.unacknowledgedBytes ?? 0 }

    // MARK: The connection's side

    func endInput() {
        inputHasEnded = true
        control.wake()
    }

    /// Something came from the server.
    func hears(_ now: NIODeadline) {
        control.markProgress(now)
        record.received(now)
    }

    func receivedInformational(_ head: ResponseHead) -> Bool {
        informational.append(head, sentBodyBytes: record.requestBodyBytes)
    }

    func received(_ piece: ByteBuffer) {
        queue.append(piece)
        updateReading()
    }

    /// Wakes the load for what was read.
    ///
    /// Pieces of a large body that follow each other closely are taken together: waking a load and its client costs more than a read.
    func wakeAfterRead(on loop: any EventLoop) {
        let now = control.lastProgress
        guard queue.byteCount >= BodyWakes.smallestBulk, !hasSwitched else {
            if !queue.isEmpty { wakes.note(now) }
            return control.wake()
        }
        let isMuch = carrier?.readMuch(of: self, endingIn: queue.last) ?? false
        if isMuch || isOver || wakes.areDue(for: queue.byteCount, now: now) {
            wakes.note(now)
            return control.wake()
        }
        guard let next = wakes.plan() else { return }
        loop.assumeIsolated().scheduleTask(deadline: next) { [self] in
            wakes.planEnded()
            guard !queue.isEmpty else { return }
            wakes.note(.now())
            control.wake()
        }
    }

    /// Bytes of the body are on their way to the network.
    func gaveBody(_ bytes: Int64) { record.gaveBody(bytes) }

    func sent(_ bytes: Int64) {
        record.sentBody(bytes)
        control.wake()
    }

    /// Its carrier has no more to do with it.
    func leaveCarrier() { carrier = nil }

    /// Nothing more comes from its carrier; a whole answer counts, whatever else there was.
    func end(isComplete: Bool, _ error: LoadError? = nil, evidence: RetryEvidence = .none) {
        carrier = nil
        self.evidence = evidence
        if isComplete { end = .complete }
        if let error { fail(error) }
        control.wake()
    }

    func fail(_ error: LoadError) {
        guard !isOver else { return }
        end = .failed(error)
        bodyFile.settle()
        control.wake()
    }

    /// Fails the exchange though its answer may be here.
    func failAtEnd(_ error: LoadError) {
        guard failure == nil else { return }
        end = .failed(error)
        carrier?.abandon(self)
        // Its carrier may have found it complete.
        end = .failed(error)
        control.wake()
    }

    /// Stops or resumes the traffic of a task that was suspended or resumed.
    package func suspensionChanged() {
        updateReading()
        carrier?.suspensionChanged(of: self)
    }

    /// The app gave the task another priority.
    package func priorityChanged(_ priority: Float) { carrier?.priorityChanged(priority, of: self) }

    /// Bytes of the body that wait here.
    var waitingBytes: Int { queue.byteCount }

    /// Sets whether more of the body is to be read.
    func updateReading() {
        guard let wants = reading.update(isSuspended: control.isSuspended, waiting: queue.byteCount) else { return }
        carrier?.setReading(wants, for: self)
    }

    /// The body goes past this process, which must not read it meanwhile; or does no more.
    func bypass(_ isBypassed: Bool) { reading.bypass(isBypassed) }
}
