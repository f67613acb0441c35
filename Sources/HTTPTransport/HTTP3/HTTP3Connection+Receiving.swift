// SPDX-License-Identifier: Apache-2.0

import CQUIC
import HTTPRules
import HTTPWire
import LoadingModel
import NIOCore
import TransportMachines

/// Processes what the server sends.
extension HTTP3Connection: QUICConnectionOwner {
    func handshakeCompleted() {}

    func limitsChanged() { limitsAreKnown() }

    func willReceive(now: NIODeadline) {
        perform(liveness.read(now: now.nanoseconds))
        // Each datagram takes a token, which what it carries gives back.
        do {
            try flood.spend(now: now.nanoseconds)
        } catch {
            let message = "receiving the response from \(facts.peer): too many datagrams that carry nothing"
            fail(LoadError(.badServerResponse, message), .excessiveLoad)
        }
    }

    func received() {
        for stream in touched { stream.wake(on: loop) }
        touched.removeAll(keepingCapacity: true)
    }

    private func touch(_ stream: HTTP3Stream, _ count: Int = 0) {
        flood.earn(count / 1_000 + 1)
        if stream.touch(now: NIODeadline.uptimeNanoseconds(UInt64(max(0, liveness.lastRead)))) { touched.append(stream) }
    }

    /// Returns the stream of something that arrives; nil if the stream has ended.
    private func stream(_ id: Int64) -> HTTP3Stream? {
        guard isOpen, let stream = streams[id], !stream.hasWholeResponse else { return nil }
        return stream
    }

    // MARK: Messages

    func sectionBegan(_ id: Int64, isTrailers: Bool) {
        guard let stream = stream(id) else { return }
        stream.sending.section.begin()
        stream.sending.isTrailers = isTrailers
    }

    func field(_ id: Int64, _ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) {
        guard let stream = stream(id) else { return }
        stream.sending.section.add(name: name, value: value)
        // The rest of such a section must not be received.
        if stream.sending.section.isTooLarge { sectionEnded(id, endsStream: false) }
    }

    func sectionEnded(_ id: Int64, endsStream: Bool) {
        guard let stream = stream(id) else { return }
        touch(stream)
        let section = stream.sending.section.end()
        // The library reports the end of a stream by itself; trailers are always the last section.
        let violation = stream.receive(
            section, endsStream: endsStream || stream.sending.isTrailers, now: loop.now)
        if let violation { return object(to: stream, violation) }
        if !status.answers.hasAnswered, stream.exchange?.hasHead == true {
            status.answers.serverAnswered()
            pool?.serverAnswered(self)
            endpoint?.succeeded()
        }
    }

    func content(_ id: Int64, _ bytes: UnsafeRawBufferPointer) {
        guard let stream = stream(id) else { return }
        touch(stream, bytes.count)
        if let violation = stream.receive(bytes, flowControlled: bytes.count) { object(to: stream, violation) }
    }

    /// If the request is still being sent and the response is not a success, the server does not need the rest of the request.
    func responseEnded(_ id: Int64) {
        guard let stream = stream(id) else { return }
        touch(stream)
        if let violation = stream.receiveEnd(now: loop.now) { return object(to: stream, violation) }
        guard !stream.keepsSending() else { return }
        if !stream.hasSentEnd { quic.cancelSending(stream.id, .noError) }
        end(stream, isComplete: true)
    }

    /// Resets a stream on which the server violated the protocol, and fails its load.
    private func object(to stream: HTTP3Stream, _ violation: StreamViolation) {
        reset(stream, violation.fault == .malformed ? .messageError : .excessiveLoad)
        let message = "receiving the response from \(facts.peer): \(violation.message)"
        end(stream, LoadError(violation.kind, message), evidence: .streamFailed)
    }

    // MARK: Sending

    func bodySent(_ id: Int64) {
        guard let stream = streams[id] else { return }
        stream.pieceWasSent()
        stream.sendMore()
    }

    /// The server reads no more of the request; a response may still follow (RFC 9114, section 4.1).
    func stopped(_ id: Int64, _ code: HTTP3ErrorCode) {
        guard let stream = streams[id] else { return }
        stream.hasSentEnd = true
        stream.requestWasStopped()
        if stream.hasWholeResponse { end(stream, isComplete: true) }
    }

    func reset(_ id: Int64, _ code: HTTP3ErrorCode) {
        guard let stream = streams[id] else { return }
        let hasBegun = stream.exchange?.hasHead ?? false
        let evidence: RetryEvidence =
            switch code {
            case .requestRejected where !hasBegun: .notProcessed(.init(endsConnection: false))
            case .versionFallback where !hasBegun: .requires(.http1)
            default: .streamFailed
            }
        let message = "receiving the response from \(facts.peer): the server reset the stream (\(code.name))"
        let kind: LoadError.Kind = code == .messageError ? .cannotParseResponse : .connectionLost
        if !stream.hasWholeResponse { quic.cancel(id, .requestCancelled) }
        giveUp(stream, LoadError(kind, message), evidence: evidence)
    }

    func closed(_ id: Int64, _ code: HTTP3ErrorCode) {
        flood.earn()
        guard let stream = streams[id] else { return }
        let message = "receiving the response from \(facts.peer): the stream ended before the response (\(code.name))"
        giveUp(stream, LoadError(.connectionLost, message), evidence: .streamFailed)
    }

    // MARK: The connection

    /// "The client … MUST NOT initiate new requests" (RFC 9114, section 5.2).
    func goingAway(firstUnprocessed: Int64) {
        guard isOpen else { return }
        let isFirst = status.goAway == nil
        status.goAway = firstUnprocessed
        let refused = streamsInOrder.filter { $0.id >= firstUnprocessed }
        countIfFruitless(refused.count == streams.count)
        if isFirst { pool?.drains(self) }
        for stream in refused {
            quic.cancel(stream.id, .requestCancelled)
            let message = "sending the request to \(facts.peer): the server accepts no more requests on this connection"
            giveUp(stream, LoadError(.connectionLost, message), evidence: status.evidence)
        }
    }

    /// Counts a connection whose server refuses all requests before it has answered one, because the next connection may be no better.
    private func countIfFruitless(_ isRefusingAll: Bool) {
        guard let isFruitless = status.answers.count(isRefusingAll: isRefusingAll, asksForCalm: false) else { return }
        let isLast = pool?.stopsTakingRequests(self, isFruitless: isFruitless, asksForCalm: false) ?? false
        status.answers.wasLastFruitless(isLast)
        if isLast { pool?.giveUp(self) }
    }

    /// Ends the connection because of what the server does.
    private func fail(_ error: LoadError, _ code: HTTP3ErrorCode) {
        guard isOpen else { return }
        leavePool()
        failAll(error, evidence: .streamFailed)
        quic.close(code)
        ended()
    }

    func ended(_ failure: QUICFailure) {
        guard !status.isClosing else { return ended() }
        status.failure = failure
        if status.requiresHTTP1 {
            pool?.narrow(ConnectionID(id), to: .http1)
        } else if !hasAnswered, !streams.isEmpty {
            endpoint?.failed()
            if failure.end == CQUIC_CLOSED_BY_APPLICATION { countIfFruitless(true) }
        }
        for stream in touched { stream.passOnGathered() }
        leavePool()
        let isMalformed = failure.code == HTTP3ErrorCode.messageError.rawValue && failure.isViolation
        if isMalformed, let malformed = failure.stream.flatMap({ streams[$0] }) {
            let reason = PrintableFailure.printable(failure.text)
            let message = "receiving the response from \(facts.peer): the response is malformed (\(reason))"
            end(malformed, LoadError(.cannotParseResponse, message, cause: failure), evidence: .streamFailed)
        }
        if status.requiresHTTP1 {
            for stream in streamsInOrder where stream.exchange?.hasHead == false {
                giveUp(stream, status.ended, evidence: .requires(.http1))
            }
        }
        // If only one message is malformed, the other loads may be repeated.
        failAll(status.ended(isMalformed), evidence: failure.isViolation && !isMalformed ? .streamFailed : .none)
        ended()
    }

    func wasRefused(_ error: any Error) {
        // Anyone may send such a message; the server's silence decides (``LivenessMachine``).
        if isOpen { notifyLiveness(.wasRefused) }
    }

    // MARK: Liveness

    func isUnanswered() { if !streams.isEmpty { notifyLiveness(.isUnanswered) } }

    func perform(_ actions: [LivenessMachine.Action]) {
        for action in actions {
            switch action {
            case .ask: quic.ping()
            case .startTimer(let number, let delay):
                let bound = NIOLoopBound(self, eventLoop: loop)
                questionTimer = loop.scheduleTask(in: .nanoseconds(delay)) {
                    if bound.value.isOpen { bound.value.notifyLiveness(.timerFired(number)) }
                }
            case .stopTimer: questionTimer.take()?.cancel()
            case .bar(let isBarred): bar(isBarred)
            case .doubt: pool?.isDoubtful(self)
            case .giveUp:
                let message = "receiving the response from \(facts.peer): the server no longer responds on this connection"
                if !hasAnswered { endpoint?.failed() }
                lose(LoadError(.connectionLost, message))
            }
        }
    }

    func notifyLiveness(_ event: LivenessMachine.Event) { perform(liveness.handle(event, now: loop.now.nanoseconds)) }
}
