// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import HTTPWire
import LoadingModel
import NIOCore
import TransportMachines

/// Carries one exchange on a stream of a connection with many (RFC 9113, section 5; RFC 9114, section 4.1).
///
/// Confined to the connection's event loop.
final class CarriedStream<Host: StreamHost>: ExchangeCarrier {
    let id: Host.StreamID
    private(set) var exchange: Exchange?
    let began: NIODeadline
    /// Whether the method is HEAD, so that the response has no content.
    private let isHead: Bool
    private unowned let connection: Host

    /// What the connection knows about sending on the stream.
    @exclusivity(unchecked) var sending: Host.Sending
    @exclusivity(unchecked) private var receiveWindow: ReceiveWindow
    private(set) var pump: RequestBodyPump?
    private(set) var outlet: Host.Outlet?
    /// The output of a stream that switches protocols.
    private var switched: SwitchedOutput<Host.Outlet>?
    /// The timer that ends the stream if the server does not.
    private var lingering: Scheduled<Void>?
    /// Whether the end of this side was written.
    var hasSentEnd = false
    /// Whether the stream is queued for its turn to send.
    fileprivate(set) var isQueued = false
    /// Whether something was received since the load was last woken.
    private var isTouched = false
    /// Whether the whole response has arrived while the request is still being sent.
    private(set) var hasWholeResponse = false
    /// The announced length of the content, if any.
    private var expectedLength: Int64?
    private var mayHaveContent = true
    /// The pieces of one read, copied into one buffer.
    private var gathered: ByteBuffer?
    private var isRecycled = false
    /// The number of bytes received since counting last started.
    private var receivedSinceGrowth = 0
    /// The time at which counting the received bytes started.
    private var countedSince: Int64 = 0
    /// The number of bytes by which the window has grown beyond its initial size.
    private(set) var borrowed = 0

    /// Pieces of at least this size are copied into recycled memory, smaller ones into memory of their own size.
    private static var smallestBulk: Int { 4_096 }

    init(_ id: Host.StreamID, of connection: Host, isHead: Bool, sending: Host.Sending, now: NIODeadline) {
        self.id = id
        self.connection = connection
        self.isHead = isHead
        self.sending = sending
        receiveWindow = ReceiveWindow(Host.streamWindow)
        began = now
    }

    func carry(_ exchange: Exchange) { self.exchange = exchange }

    /// Starts to send the request's body.
    func send(_ body: OutgoingBody, expectsContinue: Bool) {
        guard let exchange else { return }
        let outlet = connection.makeOutlet(for: self)
        let pump = RequestBodyPump(body: body, exchange: exchange, outlet: outlet)
        self.outlet = outlet
        self.pump = pump
        pump.start(waitingForContinue: expectsContinue)
    }

    /// Keeps this side of the stream open for a request that asks to switch protocols.
    func beginSwitching() { switched = SwitchedOutput(connection.makeOutlet(for: self)) }

    /// Sends what may be sent now.
    func sendMore() {
        if let switched, switched.sendMore() { exchange?.control.wake() }
        outlet?.sendMore()
        pump?.writabilityChanged()
        outlet?.flush()
    }

    /// Notes that the connection has sent the piece that it was given.
    func pieceWasSent() {
        outlet?.pieceWasSent()
        switched?.pieceWasSent()
    }

    // MARK: The exchange's side

    func abandon(_ exchange: Exchange) {
        guard self.exchange === exchange else { return }
        connection.abandon(self, isLate: exchange.control.failure?.kind == .timedOut)
    }

    func setReading(_ wanted: Bool, for exchange: Exchange) {
        guard wanted, self.exchange === exchange else { return }
        updateWindow()
    }

    func noteLargeRead(of exchange: Exchange, endingIn piece: ByteBuffer?) -> Bool {
        guard case .length(let length) = exchange.framing else { return false }
        let received = exchange.record.responseBodyBytes
        // The server cannot send more than the window allows.
        let missing = min(length - received, Int64(receiveWindow.available))
        return connection.noteLargeRead(received: received, missing: missing, now: exchange.control.lastProgress)
    }

    func suspensionChanged(of exchange: Exchange) {
        updateWindow()
        sendMore()
    }

    func priorityChanged(_ priority: Float, of exchange: Exchange) { connection.priorityChanged(priority, of: self) }

    /// False, because the socket is shared with other streams.
    var mayBypass: Bool { false }
    func beginBypass(of exchange: Exchange) -> (any Channel)? { nil }
    func endBypass(of exchange: Exchange, moved: Int64) {}

    /// Zero for "unknown", because the connection's count would include other streams.
    var unacknowledgedBytes: Int64 { 0 }

    var isWritable: Bool {
        guard let switched else { return false }
        // The load is woken when the stream's turn comes.
        if !switched.isReady { connection.queue(self) }
        return switched.isReady
    }

    func write(_ bytes: ByteBuffer, for exchange: Exchange, written: @escaping (Bool) -> Void) {
        guard let switched, self.exchange === exchange else { return written(false) }
        switched.write(bytes, written: written)
    }

    /// Ends this side after the rest of the output, and waits for the end of the server's.
    func linger(for exchange: Exchange, _ patience: TimeAmount) {
        guard self.exchange === exchange, let switched else { return connection.abandon(self, isLate: false) }
        let bound = NIOLoopBound(self, eventLoop: connection.loop)
        lingering = connection.loop.scheduleTask(in: patience) {
            if bound.value.exchange != nil { bound.value.connection.abandon(bound.value, isLate: false) }
        }
        switched.end { if bound.value.hasWholeResponse { bound.value.connection.requestCompleted(bound.value) } }
    }

    // MARK: The connection's side

    /// Notes received data; returns whether they are the first since the load was woken.
    func touch(now: NIODeadline) -> Bool {
        guard let exchange else { return false }
        exchange.receivedData(now)
        defer { isTouched = true }
        return !isTouched
    }

    /// Processes a response's head, an informational head, or trailers; returns the violation, if any.
    func receive(_ section: FieldSection, endsStream: Bool, now: NIODeadline) -> StreamViolation? {
        guard let exchange else { return nil }
        if let fault = section.fault {
            return fault == .tooLarge
                ? StreamViolation(.excessive, fault.message, kind: .dataLengthExceedsMaximum)
                : StreamViolation(.malformed, fault.message)
        }
        exchange.record.receivedHead(Int64(section.listBytes))
        guard !exchange.hasHead else {
            guard section.mayBeTrailers, endsStream else {
                return StreamViolation(.malformed, "the second header section is not a trailer section")
            }
            exchange.received(section.headers.isEmpty ? nil : section.headers)
            return nil
        }
        guard let status = section.status else { return StreamViolation(.malformed, "the response has no :status") }
        let head = ResponseHead(majorVersion: Host.version.number, minorVersion: 0, status: status, headers: section.headers)
        if 100...199 ~= status { return receiveInformational(head, endsStream: endsStream) }
        return receiveFinal(head, endsStream: endsStream)
    }

    private func receiveInformational(_ head: ResponseHead, endsStream: Bool) -> StreamViolation? {
        guard !endsStream else { return StreamViolation(.malformed, "the stream ends with an informational response") }
        guard exchange?.receivedInformational(head) == true else {
            let limit = Exchange.maximumInformationalResponses
            return StreamViolation(
                .excessive, "the server sent more than \(limit) informational responses and no final one")
        }
        if head.status == 100 { pump?.receivedContinue() }
        return nil
    }

    private func receiveFinal(_ head: ResponseHead, endsStream: Bool) -> StreamViolation? {
        guard let exchange else { return nil }
        mayHaveContent = !isHead && head.status != 204 && head.status != 304
        // After a successful CONNECT the bytes belong to the protocol, whatever the Content-Length (RFC 9110, section 8.6).
        if mayHaveContent, !(exchange.asksToSwitch && head.status / 100 == 2) {
            do {
                expectedLength = try ResponseParser.contentLength(head.headers)
            } catch {
                return StreamViolation(.malformed, error.message)
            }
        }
        let framing: ResponseParser.Framing =
            endsStream || !mayHaveContent ? .none : expectedLength.map { .length($0) } ?? .untilClose
        exchange.receivedHead(head, framing)
        pump?.receivedFinalHead(status: head.status)
        countedSince = connection.lastRead
        // Grows the window at once if the content is known to be long.
        if let expectedLength, expectedLength > Int64(receiveWindow.size), !exchange.control.isSuspended {
            grow(to: Int(min(expectedLength, Int64(connection.windowOfBulk))))
        }
        return nil
    }

    /// Processes a piece of the content; returns the violation, if any.
    func receive(_ piece: UnsafeRawBufferPointer, flowControlled: Int) -> StreamViolation? {
        guard let exchange else { return nil }
        guard receiveWindow.receive(flowControlled) else {
            return StreamViolation(.flowControl, "the server sent more than the stream's window allows")
        }
        guard exchange.hasHead else { return StreamViolation(.malformed, "content comes before the response's head") }
        guard piece.count > 0 else { return nil }
        let received = exchange.record.responseBodyBytes + Int64(piece.count)
        guard mayHaveContent, received <= expectedLength ?? .max else {
            return StreamViolation(
                .malformed,
                mayHaveContent ? "the content is longer than Content-Length says" : "the response must not have content")
        }
        exchange.record.receivedBody(Int64(piece.count))
        receivedSinceGrowth += piece.count
        gather(piece)
        return nil
    }

    /// Processes the end of the response; returns the violation, if any.
    func receiveEnd(now: NIODeadline) -> StreamViolation? {
        guard let exchange else { return nil }
        guard exchange.hasHead else { return StreamViolation(.malformed, "the stream ends without a response") }
        if let expectedLength, expectedLength != exchange.record.responseBodyBytes {
            let received = exchange.record.responseBodyBytes
            return StreamViolation(.malformed, "the content ends after \(received) of \(expectedLength) bytes")
        }
        exchange.record.receivedAll(now)
        return nil
    }

    /// Whether to continue sending although the whole response has arrived: after a success, the server may want the rest of the
    /// request.
    ///
    /// A server that does not want the rest says so (RFC 9113, section 8.1; RFC 9114, section 4.1).
    func keepsSending() -> Bool {
        if switched != nil, !hasSentEnd, let exchange, exchange.hasSwitched {
            hasWholeResponse = true
            passOnGathered()
            exchange.endInput()
            return true
        }
        guard let pump, !pump.isStopped, !hasSentEnd else { return false }
        hasWholeResponse = true
        return true
    }

    private func gather(_ piece: UnsafeRawBufferPointer) {
        if let count = gathered?.readableBytes, count + piece.count > connection.buffers.size { passOnGathered() }
        if gathered == nil {
            isRecycled = piece.count >= Self.smallestBulk && expectedLength ?? .max > Int64(piece.count)
            gathered =
                isRecycled
                ? connection.buffers.take(otherwise: connection.buffers.size)
                : ByteBufferAllocator().buffer(capacity: piece.count)
        }
        gathered?.writeBytes(piece)
    }

    /// Passes the gathered bytes to the exchange.
    func passOnGathered() {
        guard var piece = gathered.take() else { return }
        connection.bulk?.noteSmall(piece)
        if isRecycled {
            connection.buffers.remember(piece)
            // A small piece, which may be kept for long, must not keep a large buffer alive.
            if piece.readableBytes * 4 < connection.buffers.size {
                var small = ByteBufferAllocator().buffer(capacity: piece.readableBytes)
                small.writeImmutableBuffer(piece)
                piece = small
            }
        }
        exchange?.received(piece)
    }

    /// Passes what was received in one read to the load.
    func wake(on loop: any EventLoop) {
        isTouched = false
        passOnGathered()
        exchange?.wakeAfterRead(on: loop)
    }

    // MARK: Windows

    /// Widens the stream's window once the load has taken enough of the received data.
    private func updateWindow() {
        guard let exchange, !exchange.isOver, !exchange.control.isSuspended, connection.isOpen else { return }
        let waiting = exchange.waitingBytes + (gathered?.readableBytes ?? 0)
        if receivedSinceGrowth >= receiveWindow.size, waiting < Exchange.lowWaterMark {
            // The load reads as fast as the data arrives. If the server had to wait, the window is too small for the round-trip
            // time.
            let elapsed = connection.lastRead - countedSince
            let isShort = FlowControl.isShort(windowTook: elapsed, roundTrip: connection.roundTrip)
            if isShort { grow(to: receiveWindow.size * 4) } else { count() }
        }
        if let change = receiveWindow.update(waiting: waiting) { connection.widenWindow(by: change, of: self) }
    }

    /// Enlarges the window before the response arrives, because with a long round-trip time the response's head would come too
    /// late.
    func expectBulk() {
        let size = connection.windowOfBulk
        if size > receiveWindow.size { grow(to: size) }
    }

    private func count() {
        receivedSinceGrowth = 0
        countedSince = connection.lastRead
    }

    private func grow(to size: Int) {
        count()
        let lent = connection.loan.take(min(size, Host.largestStreamWindow) - receiveWindow.size)
        guard lent > 0 else { return }
        borrowed += lent
        receiveWindow.grow(to: receiveWindow.size + lent)
        let waiting = (exchange?.waitingBytes ?? 0) + (gathered?.readableBytes ?? 0)
        if let change = receiveWindow.update(waiting: waiting) { connection.widenWindow(by: change, of: self) }
    }

    // MARK: The end

    /// Notes that all of the request was sent.
    func requestCompleted() {
        exchange?.record.sentAll(.now())
        pump?.stop()
        pump = nil
        outlet = nil
    }

    /// Stops to send the request, because the server reads no more of it.
    func requestWasStopped() {
        pump?.stop()
        pump = nil
        outlet?.discard()
        outlet = nil
        switched?.discard()
    }

    /// Detaches the exchange; the caller notifies it.
    func end() -> Exchange? {
        exchange?.leaveCarrier()
        passOnGathered()
        pump?.stop()
        pump = nil
        outlet?.discard()
        outlet = nil
        switched?.discard()
        switched = nil
        lingering?.cancel()
        return exchange.take()
    }
}

/// Queued streams, without duplicates.
struct StreamQueue<Host: StreamHost> {
    private var streams = CircularBuffer<CarriedStream<Host>>()

    var isEmpty: Bool { streams.isEmpty }
    var count: Int { streams.count }

    mutating func append(_ stream: CarriedStream<Host>) {
        guard !stream.isQueued else { return }
        stream.isQueued = true
        streams.append(stream)
    }

    mutating func popFirst() -> CarriedStream<Host>? {
        let stream = streams.popFirst()
        stream?.isQueued = false
        return stream
    }

    mutating func remove(_ stream: CarriedStream<Host>) {
        if stream.isQueued { streams.removeAll { $0 === stream } }
    }
}
