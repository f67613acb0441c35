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
    package internal(set) var requestEnd: NIODeadline?
    /// When the first byte arrived.
    package internal(set) var responseStart: NIODeadline?
    package internal(set) var responseEnd: NIODeadline?
    package internal(set) var requestHeaderBytes = 0
    package internal(set) var requestBodyBytes: Int64 = 0
    package internal(set) var responseHeaderBytes: Int64 = 0
    package internal(set) var responseBodyBytes: Int64 = 0

    init(requestStart: NIODeadline) { self.requestStart = requestStart }

    /// Whether any byte of a response has arrived: what decides whether the request may be sent again.
    package var hasReceivedBytes: Bool { responseStart != nil }
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
    static let highWaterMark = 1_048_576
    static let lowWaterMark = 262_144
    /// Body bytes for which the load is woken at once, however shortly after the last time.
    private static let gatheredBytes = 524_288
    /// Below this it is woken at once too: that is no bulk, and whoever sent it may wait for an answer.
    private static let smallestBulk = 16_384
    /// How long anything else may lie before the load is woken for it.
    private static let gatheringTime = TimeAmount.microseconds(500)
    /// 1xx responses before the final one; no server has reason to send more.
    static let maximumInformationalResponses = 100
    /// Of all their fields: a few bytes of HTTP/2 may stand for very many.
    private static let maximumInformationalBytes = 262_144

    package let control: LoadControl
    package let facts: ConnectionFacts
    package let isReused: Bool
    package let version: HTTPVersion
    // Unchecked are the queues, and what is set at every request. Other modules read by a function, as each look at a stored property that
    // they can see is checked, also from here.
    /// What is received is not optional, as to unwrap it would be to copy it once more.
    @exclusivity(unchecked) private var finalHead = ResponseHead(status: 0)
    private var headIsHere = false
    package var head: ResponseHead? { headIsHere ? finalHead : nil }
    /// The head, where ``hasHead`` says that it is there.
    package var receivedHead: ResponseHead { finalHead }
    /// So that to look whether it is there does not copy it.
    package var hasHead: Bool { headIsHere }
    /// The nanoseconds for which the server says it keeps an idle connection.
    var keepAlive: Int64?
    private var finalFraming = ResponseParser.Framing.none
    package var framing: ResponseParser.Framing { finalFraming }
    @exclusivity(unchecked) package internal(set) var trailers: HeaderBlock?
    @exclusivity(unchecked) package internal(set) var record: ExchangeRecord

    // Methods, as a look from another module is checked for exclusive access, which costs more than the call.
    package var hasSentRequest: Bool { record.requestEnd != nil }
    package var sentBodyBytes: Int64 { record.requestBodyBytes }

    /// What carries the exchange, until its end.
    var carrier: (any ExchangeCarrier)?
    /// Why the request may be sent again, where that is known.
    package internal(set) var evidence = RetryEvidence.none
    @exclusivity(unchecked) private var queue = BodyQueue()
    @exclusivity(unchecked) private var informational: [ResponseHead] = []
    private var informationalCount = 0
    private var informationalBytes = 0
    private var toldSentBytes: Int64 = 0
    private var isComplete = false
    private var failure: LoadError?
    private(set) var wantsReading = true
    /// When the load was last woken for a piece of the body.
    private var lastBodyWake = NIODeadline.distantPast
    private var willWake = false
    /// The body goes past this process, which must not read it meanwhile.
    var isBypassed = false

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
    }

    // MARK: The load's side

    /// The next thing that happened before the body, if there is any.
    ///
    /// The head comes last, and every time it is asked for.
    package func takeEvent() -> Event? {
        if record.requestBodyBytes > toldSentBytes {
            defer { toldSentBytes = record.requestBodyBytes }
            return .sent(bytes: record.requestBodyBytes - toldSentBytes, total: record.requestBodyBytes)
        }
        if !informational.isEmpty { return .informational(informational.removeFirst()) }
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
                if isComplete { return nil }
                if let failure { throw failure }
            }
            await control.wait()
        }
    }

    /// Whether ``next()`` has something to return or to throw, without waiting.
    package var hasNext: Bool {
        control.failure != nil || !control.isSuspended && (!queue.isEmpty || isComplete || failure != nil)
    }

    /// Whether the whole body is here already; then taking it will not wait.
    package var hasWholeBody: Bool { isComplete }

    /// The whole body, where it is here in one piece, for a caller that has taken nothing of it.
    package func takeWhole() -> ByteBuffer? {
        guard isComplete, control.failure == nil, !control.isSuspended, queue.isOneAtMost else { return nil }
        return queue.popFirst() ?? ByteBuffer()
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

    var isOver: Bool { isComplete || failure != nil }

    /// Lets go of the exchange.
    ///
    /// Harmless once it is complete.
    package func cancel() {
        guard !isComplete, failure == nil else { return }
        failure = .cancelled
        queue.removeAll()
        carrier?.abandon(self)
    }

    // MARK: The connection's side

    func receivedInformational(_ head: ResponseHead) -> Bool {
        informationalCount += 1
        informationalBytes += head.headers.bytes.count
        guard informationalCount <= Self.maximumInformationalResponses,
            informationalBytes <= Self.maximumInformationalBytes
        else { return false }
        informational.append(head)
        return true
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
        guard queue.byteCount >= Self.smallestBulk else {
            if !queue.isEmpty { lastBodyWake = now }
            return control.wake()
        }
        carrier?.readMuch(of: self, endingIn: queue.last)
        guard queue.byteCount < Self.gatheredBytes, !isOver, now < lastBodyWake + Self.gatheringTime else {
            lastBodyWake = now
            return control.wake()
        }
        guard !willWake else { return }
        willWake = true
        loop.assumeIsolated().scheduleTask(deadline: lastBodyWake + Self.gatheringTime) { [self] in
            willWake = false
            guard !queue.isEmpty else { return }
            lastBodyWake = .now()
            control.wake()
        }
    }

    func sent(_ bytes: Int64) {
        record.requestBodyBytes += bytes
        control.wake()
    }

    func complete() { isComplete = true }

    func fail(_ error: LoadError) {
        guard !isComplete, failure == nil else { return }
        failure = error
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

    /// Sets whether more of the body is to be read, with the distance between the two marks as hysteresis.
    func updateReading() {
        guard !isBypassed else { return }
        let wants: Bool
        if control.isSuspended {
            wants = false
        } else if wantsReading {
            wants = queue.byteCount < Self.highWaterMark
        } else {
            wants = queue.byteCount <= Self.lowWaterMark
        }
        wantsReading = wants
        carrier?.setReading(wants, for: self)
    }
}
