// SPDX-License-Identifier: Apache-2.0

package import HTTPRules
package import HTTPWire
package import LoadingModel
package import NIOCore

/// The times and byte counts of an exchange.
package struct ExchangeRecord {
    package let requestStart: NIODeadline
    package private(set) var requestEnd: NIODeadline?
    /// When the first byte of the response arrived.
    package private(set) var responseStart: NIODeadline?
    package private(set) var responseEnd: NIODeadline?
    package private(set) var requestHeaderBytes = 0
    package private(set) var requestBodyBytes: Int64 = 0
    /// The number of body bytes handed over for sending; the server may have received any of these bytes.
    package private(set) var submittedBodyBytes: Int64 = 0
    package private(set) var responseHeaderBytes: Int64 = 0
    package private(set) var responseBodyBytes: Int64 = 0

    init(requestStart: NIODeadline) { self.requestStart = requestStart }

    /// Whether any byte of a response has arrived, which affects whether a retry is allowed.
    package var hasReceivedBytes: Bool { responseStart != nil }

    mutating func sentHead(_ bytes: Int) { requestHeaderBytes = bytes }
    mutating func submittedBody(_ bytes: Int64) { submittedBodyBytes += bytes }
    mutating func sentBody(_ bytes: Int64) { requestBodyBytes += bytes }
    mutating func sentAll(_ now: NIODeadline) { requestEnd = now }
    mutating func received(_ now: NIODeadline) { if responseStart == nil { responseStart = now } }
    mutating func receivedHead(_ bytes: Int64) { responseHeaderBytes += bytes }
    mutating func receivedBody(_ bytes: Int64) { responseBodyBytes += bytes }
    mutating func receivedAll(_ now: NIODeadline) { responseEnd = now }
}

/// One request and its response as a load sees them, independent of the HTTP version.
///
/// The load takes events (``Exchange/Event``) up to the head of the final response, and then body pieces until ``next()`` returns
/// nil. Bytes that the load has not taken are queued here up to ``Exchange/highWaterMark``. Beyond that mark, and while the task is
/// suspended, the carrier stops reading, so that flow control stops the peer. An exchange that is dropped before its end must be
/// ended with ``cancel()``. That call closes an HTTP/1 connection, because the rest of the response could be taken for the response
/// to another request; with HTTP/2 it resets the stream.
///
/// Confined to the session's event loop.
package final class Exchange {
    /// The events that precede the body.
    package enum Event {
        case informational(ResponseHead)
        /// Body bytes of the request that were handed to the kernel since the last event.
        case sent(bytes: Int64, total: Int64)
        case head
    }

    /// The number of queued body bytes at which reading stops: one block of a fast body, or four reads of any other body.
    package static let highWaterMark = 1_048_576
    package static let lowWaterMark = 262_144
    /// The maximum number of 1xx responses before the final one, except for progress reports during an upload.
    static let maximumInformationalResponses = InformationalResponses.limit

    private enum End {
        case open
        case complete
        case failed(LoadError)
    }

    package let control: LoadControl
    package let facts: ConnectionFacts
    package let isReused: Bool
    package let version: HTTPVersions
    /// Whether the request asks to switch protocols.
    var asksToSwitch = false
    /// Whether another request will continue this one's content if this exchange ends before its response.
    private(set) var isContinued = false
    /// Whether, after a switch of protocols, the peer has closed its side; this side may still send.
    private var inputHasEnded = false
    // These properties need no exclusivity checks, because their types do not call back into this class. Other modules use computed
    // properties instead: if a stored property is visible to other modules, every access is checked, even from this file.
    /// Not optional, because unwrapping the head would make another copy.
    @exclusivity(unchecked) private var finalHead = ResponseHead(status: 0)
    @exclusivity(unchecked) private var hasReceivedHead = false
    package var head: ResponseHead? { hasReceivedHead ? finalHead : nil }
    /// The head; valid if ``hasHead`` is true.
    package var receivedHead: ResponseHead { finalHead }
    /// Whether the head has arrived; does not copy the head.
    package var hasHead: Bool { hasReceivedHead }
    @exclusivity(unchecked) private var finalFraming = ResponseParser.Framing.none
    package var framing: ResponseParser.Framing { finalFraming }
    @exclusivity(unchecked) package private(set) var trailers: HeaderBlock?
    @exclusivity(unchecked) package internal(set) var record: ExchangeRecord

    // These properties are computed, because another module's access to a stored property is checked for exclusivity, which costs
    // more than a call.
    package var hasSentRequest: Bool { record.requestEnd != nil }
    package var sentBodyBytes: Int64 { record.requestBodyBytes }

    /// The carrier of the exchange, until its end.
    private(set) var carrier: (any ExchangeCarrier)?
    /// The evidence that a retry is allowed, if there is any.
    @exclusivity(unchecked) package private(set) var evidence = RetryEvidence.none
    @exclusivity(unchecked) private var end = End.open
    private var reportedSentBytes: Int64 = 0
    @exclusivity(unchecked) private var queue = BodyQueue()
    @exclusivity(unchecked) private var informational = InformationalResponses()
    @exclusivity(unchecked) private var reading = BodyReading()
    @exclusivity(unchecked) private var wakes = BodyWakes()
    @exclusivity(unchecked) var bodyFile = SentFile()

    init(
        control: LoadControl, carrier: any ExchangeCarrier, facts: ConnectionFacts, version: HTTPVersions, isReused: Bool,
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
        hasReceivedHead = true
        checkBodyFile()
    }

    func received(_ trailers: HeaderBlock?) { self.trailers = trailers }

    // MARK: The load's side

    /// Returns the next event before the body, if there is one.
    ///
    /// The head comes last, and is returned on every further call.
    package func takeEvent() -> Event? {
        if record.requestBodyBytes > reportedSentBytes {
            defer { reportedSentBytes = record.requestBodyBytes }
            return .sent(bytes: record.requestBodyBytes - reportedSentBytes, total: record.requestBodyBytes)
        }
        if let head = informational.popFirst() { return .informational(head) }
        return hasReceivedHead ? .head : nil
    }

    /// Whether ``takeEvent()`` returns an event and the task is not suspended.
    ///
    /// Throws if the load has failed, or if the exchange has failed and no event is left.
    package func hasEvent() throws(LoadError) -> Bool {
        try control.check()
        guard !control.isSuspended else { return false }
        if hasReceivedHead || record.requestBodyBytes > reportedSentBytes || !informational.isEmpty { return true }
        if let failure { throw failure }
        return false
    }

    /// Returns the next piece of the body as received, before decoding, or nil at the end of the body.
    ///
    /// A failure of the exchange is thrown after the bytes that arrived before it; a failure of the load is thrown at once.
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

    /// Whether ``next()`` would return or throw without waiting.
    package var hasNext: Bool {
        control.failure != nil || !control.isSuspended && (!queue.isEmpty || hasWholeBody || failure != nil)
    }

    /// Whether the whole body has arrived, so that taking it will not wait.
    package var hasWholeBody: Bool { inputHasEnded || isComplete && !bodyFile.isBeingChecked }

    /// Returns the whole body, if it has arrived in one piece; for a caller that has not taken any of it.
    package func takeWhole() -> ByteBuffer? {
        guard hasWholeBody, control.failure == nil, !control.isSuspended, queue.hasAtMostOnePiece else { return nil }
        return queue.popFirst() ?? ByteBuffer()
    }

    // MARK: Switched protocols

    /// Whether the server switched to the requested protocol.
    ///
    /// The protocol's bytes are returned by ``next()`` until the connection ends.
    package var hasSwitched: Bool {
        asksToSwitch && hasReceivedHead && (version == .http1 ? finalHead.status == 101 : finalHead.status / 100 == 2)
    }

    /// Whether more bytes can be written now; the load is woken when that becomes true.
    package var isWritable: Bool { carrier?.isWritable ?? false }

    /// Sends bytes of the other protocol.
    ///
    /// `written` is called on the loop, possibly before this method returns: with true after the system has accepted all bytes, and
    /// with false if they cannot be sent.
    package func write(_ bytes: ByteBuffer, written: @escaping (Bool) -> Void) {
        guard let carrier, hasSwitched else { return written(false) }
        record.sentBody(Int64(bytes.readableBytes))
        reportedSentBytes = record.requestBodyBytes
        carrier.write(bytes, for: self, written: written)
    }

    /// Takes the connection from the exchange; returns nil if that is impossible, as with a shared connection.
    package func takeConnection() -> ByteStreamConnection? {
        guard hasSwitched else { return nil }
        if let carrier { return carrier.handOver(self) }
        // The peer has closed the connection meanwhile.
        return version == .http1 ? ByteStreamConnection(id: 0, facts: facts, received: takeAll(), failure: failure) : nil
    }

    /// Returns the bytes that were read and not taken.
    func takeAll() -> ByteBuffer {
        var all = queue.popFirst() ?? ByteBuffer()
        while var piece = queue.popFirst() { all.writeBuffer(&piece) }
        return all
    }

    /// Ends the switched protocol, and closes the connection or stream if the peer does not do so within `patience`.
    package func linger(_ patience: TimeAmount) {
        guard !isOver else { return }
        end = .complete
        record.receivedAll(.now())
        queue.removeAll()
        carrier?.linger(for: self, patience)
    }

    /// The transfer codings that compress the response; they must be decoded, because they are not part of the content.
    package var transferCompressions: [TransferCodings.Compression] {
        switch framing {
        case .none, .length: []
        case .chunked, .untilClose:
            // The parser has already read the field, and rejected invalid values.
            if let head, head.headers.contains(.transferEncoding), let codings = try? TransferCodings(head.headers) {
                codings.compressions
            } else {
                []
            }
        }
    }

    /// Returns a piece that has already arrived, or nil if the queue is empty.
    func takeBuffered() -> ByteBuffer? { queue.popFirst() }

    private var isComplete: Bool { if case .complete = end { true } else { false } }
    private var failure: LoadError? { if case .failed(let error) = end { error } else { nil } }
    package var isOver: Bool { if case .open = end { false } else { true } }

    /// Cancels the exchange; has no effect once the exchange is complete.
    package func cancel() {
        guard !isOver else { return }
        end = .failed(.cancelled)
        queue.removeAll()
        bodyFile.settle()
        carrier?.abandon(self)
    }

    /// Notes that another request will continue this one's content if this exchange ends before its response.
    ///
    /// What has not been sent by then is dropped: it would reach a server that the other request writes to.
    package func willBeContinued() {
        guard !isOver, !hasHead else { return }
        isContinued = true
        carrier?.dropUnsent(true, of: self)
    }

    /// The number of bytes that were sent on the connection but that the peer has not acknowledged yet.
    package var unacknowledgedBytes: Int64 { carrier?.unacknowledgedBytes ?? 0 }

    // MARK: The connection's side

    func endInput() {
        inputHasEnded = true
        control.wake()
    }

    /// Notes that bytes have arrived from the server.
    func receivedData(_ now: NIODeadline) {
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

    /// Wakes the load after a read.
    ///
    /// The load takes several pieces of a large body together if they arrive in quick succession, because waking a load and its
    /// client costs more than a read.
    func wakeAfterRead(on loop: any EventLoop) {
        let now = control.lastProgress
        guard queue.byteCount >= BodyWakes.smallestBulk, !hasSwitched else {
            if !queue.isEmpty { wakes.note(now) }
            return control.wake()
        }
        let isBulk = carrier?.noteLargeRead(of: self, endingIn: queue.last) ?? false
        if isBulk || isOver || wakes.isDue(for: queue.byteCount, now: now) {
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

    /// Counts bytes of the body that were handed over for sending.
    func submittedBody(_ bytes: Int64) { record.submittedBody(bytes) }

    func sent(_ bytes: Int64) {
        record.sentBody(bytes)
        control.wake()
    }

    /// Detaches the exchange from its carrier.
    func leaveCarrier() { carrier = nil }

    /// Ends the exchange, because the carrier delivers nothing more; a complete response counts even if there was an error.
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

    /// Fails the exchange even if its response has arrived.
    func failAtEnd(_ error: LoadError) {
        guard failure == nil else { return }
        end = .failed(error)
        carrier?.abandon(self)
        // The carrier may have marked the exchange as complete.
        end = .failed(error)
        control.wake()
    }

    /// Stops or resumes the traffic of a task that was suspended or resumed.
    package func suspensionChanged() {
        updateReading()
        carrier?.suspensionChanged(of: self)
    }

    /// Tells the carrier that the app changed the task's priority.
    package func priorityChanged(_ priority: Float) { carrier?.priorityChanged(priority, of: self) }

    /// The number of queued body bytes.
    var waitingBytes: Int { queue.byteCount }

    /// Updates whether the carrier reads more of the body.
    func updateReading() {
        guard let wants = reading.update(isSuspended: control.isSuspended, waiting: queue.byteCount) else { return }
        carrier?.setReading(wants, for: self)
    }

    /// Sets whether the body bypasses this process, which must not read it meanwhile.
    func bypass(_ isBypassed: Bool) { reading.bypass(isBypassed) }
}
