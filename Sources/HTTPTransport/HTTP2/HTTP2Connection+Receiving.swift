// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import HTTPWire
import LoadingModel
import NIOCore
import TransportMachines

/// Processes the server's frames.
extension HTTP2Connection {
    func receive(_ buffer: ByteBuffer, now: NIODeadline) {
        var offset = 0
        let failure = buffer.withUnsafeReadableBytes { bytes -> HTTP2Failure? in
            do throws(HTTP2Failure) {
                while isOpen, let event = try reader.next(bytes, &offset) { try handle(event, of: bytes, now: now) }
                return nil
            } catch {
                return error
            }
        }
        if let failure, isOpen { fail(failure) }
    }

    private func handle(_ event: HTTP2FrameReader.Event, of bytes: UnsafeRawBufferPointer, now: NIODeadline) throws(HTTP2Failure)
    {
        switch event {
        case .data(let id, let range, let flowControlled, let endsStream):
            try receiveData(
                id, UnsafeRawBufferPointer(rebasing: bytes[range]), flowControlled: flowControlled, endsStream: endsStream,
                now: now)
        case .headers(let id, let section, let endsStream):
            try receiveHeaders(id, section, endsStream: endsStream, now: now)
        case .reset(let id, let code):
            // A RST_STREAM of an open stream ends one of our own requests, so the number of such frames needs no limit.
            guard let stream = try stream(id, mayBeOver: true) else { return try spend(now) }
            wasReset(stream, code)
        case .settings(let settings):
            try spend(now)
            try take(settings)
            try flood.answer(isRead: isWritable)
            send(HTTP2Frames.settingsAcknowledgementLength) { HTTP2Frames.writeSettingsAcknowledgement(into: $0) }
        case .settingsAcknowledged:
            try spend(now)
            liveness.settingsWereAcknowledged(now: now.nanoseconds)
        case .ping(let data, let isAcknowledgement):
            try spend(now)
            guard !isAcknowledgement else { return }
            try flood.answer(isRead: isWritable)
            send(HTTP2Frames.pingLength) { HTTP2Frames.writePing(data, isAcknowledgement: true, into: $0) }
        case .goAway(let lastStream, let code, let debug):
            try spend(now)
            try receive(HTTP2ConnectionStatus.GoAway(lastStream: lastStream, code: code, debug: debug))
        case .windowUpdate(let id, let increment): try widen(id, by: Int(increment), now: now)
        case .pushPromise:
            // "A client that has set this parameter to 0 … MUST treat the receipt of a PUSH_PROMISE frame as a connection error."
            throw HTTP2Failure(code: .protocolError, message: "the server sent PUSH_PROMISE although push is disabled")
        case .ignored: try spend(now)
        case .malformed(let failure):
            try spend(now)
            guard let id = failure.stream, let stream = streams[id] else { return }
            object(to: stream, violation(failure), failure.code)
        }
    }

    private func spend(_ now: NIODeadline) throws(HTTP2Failure) { try flood.spend(now: now.nanoseconds) }

    private var isWritable: Bool { context?.channel.isWritable != false }

    /// Returns the stream of a frame; nil if the stream has ended.
    private func stream(_ id: UInt32, mayBeOver: Bool) throws(HTTP2Failure) -> HTTP2Stream? {
        if let stream = streams[id], !stream.hasWholeResponse || mayBeOver { return stream }
        try numbers.accept(id, mayBeOver: mayBeOver)
        return nil
    }

    private func touch(_ stream: HTTP2Stream, now: NIODeadline) {
        if stream.touch(now: now) { touched.append(stream) }
    }

    // MARK: Messages

    private func receiveHeaders(
        _ id: UInt32, _ section: FieldSection, endsStream: Bool, now: NIODeadline
    ) throws(HTTP2Failure) {
        guard let stream = try stream(id, mayBeOver: false) else { return try spend(now) }
        flood.earn()
        touch(stream, now: now)
        if let violation = stream.receive(section, endsStream: endsStream, now: now) { return object(to: stream, violation) }
        if !status.answers.hasAnswered, stream.exchange?.hasHead == true {
            status.answers.serverAnswered()
            pool?.serverAnswered(self)
        }
        if endsStream { finish(stream, now: now) }
    }

    private func receiveData(
        _ id: UInt32, _ piece: UnsafeRawBufferPointer, flowControlled: Int, endsStream: Bool, now: NIODeadline
    ) throws(HTTP2Failure) {
        guard receiveWindow.receive(flowControlled) else {
            throw HTTP2Failure(code: .flowControlError, message: "the server sent more than the connection's window allows")
        }
        if let change = receiveWindow.update(waiting: 0) { sendWindowUpdate(change, stream: 0) }
        let isEmpty = piece.isEmpty && !endsStream
        if isEmpty { try spend(now) }
        guard let stream = try stream(id, mayBeOver: false) else { return }
        if !isEmpty { flood.earn() }
        touch(stream, now: now)
        if let violation = stream.receive(piece, flowControlled: flowControlled) { return object(to: stream, violation) }
        if endsStream { finish(stream, now: now) }
    }

    /// Handles the end of a response.
    ///
    /// If the request is still being sent and the response is not a success, the server does not need the rest of the request.
    private func finish(_ stream: HTTP2Stream, now: NIODeadline) {
        if let violation = stream.receiveEnd(now: now) { return object(to: stream, violation) }
        guard !stream.keepsSending() else { return }
        if !stream.hasSentEnd { reset(stream, .noError) }
        end(stream, isComplete: true)
    }

    /// Resets a stream on which the server violated the protocol, and fails its load.
    private func object(to stream: HTTP2Stream, _ violation: StreamViolation, _ code: HTTP2ErrorCode? = nil) {
        reset(stream, code ?? HTTP2ErrorCode(violation.fault))
        let message = "receiving the response from \(facts.peer): \(violation.message)"
        end(stream, LoadError(violation.kind, message), evidence: .streamFailed)
    }

    private func violation(_ failure: HTTP2Failure) -> StreamViolation {
        StreamViolation(failure.code == .protocolError ? .malformed : .flowControl, failure.message)
    }

    private func wasReset(_ stream: HTTP2Stream, _ code: HTTP2ErrorCode) {
        numbers.reset(stream.id)
        let hasBegun = stream.exchange?.hasHead ?? false
        let evidence: RetryEvidence =
            switch code {
            case .refusedStream where !hasBegun:
                .notProcessed(.init(endsConnection: false))
            case .http11Required where !hasBegun: .requires(.http1)
            default: .streamFailed
            }
        let message = "receiving the response from \(facts.peer): the server reset the stream (\(code.name))"
        giveUp(stream, LoadError(.connectionLost, message), evidence: evidence)
    }

    // MARK: The connection

    /// "Receivers of a GOAWAY frame MUST NOT open additional streams on the connection" (RFC 9113, section 6.8).
    private func receive(_ goAway: HTTP2ConnectionStatus.GoAway) throws(HTTP2Failure) {
        let isFirst = try status.take(goAway)
        let requiresOther = goAway.code == .http11Required
        let refused = streamsInOrder.filter { $0.id > goAway.lastStream }
        countIfFruitless(refused.count == streams.count && !requiresOther, asksForCalm: goAway.code == .enhanceYourCalm)
        if requiresOther { pool?.narrow(ConnectionID(id), to: .http1) }
        // The pool is notified before the streams end, so that it does not give their places to other loads.
        if isFirst { pool?.drains(self) }
        for stream in refused {
            numbers.reset(stream.id)
            let message =
                "sending the request to \(facts.peer): the server accepts no more requests on this connection (\(goAway.code.name))"
            giveUp(stream, LoadError(.connectionLost, message), evidence: status.evidence)
        }
    }

    /// Counts a connection whose server refuses all requests before it has answered one, because the next connection may be no
    /// better.
    func countIfFruitless(_ isRefusingAll: Bool, asksForCalm: Bool) {
        guard let isFruitless = status.answers.count(isRefusingAll: isRefusingAll, asksForCalm: asksForCalm) else { return }
        let isLast = pool?.stopsTakingRequests(self, isFruitless: isFruitless, asksForCalm: asksForCalm) ?? false
        status.answers.wasLastFruitless(isLast)
        if isLast { pool?.giveUp(self) }
    }

    private func widen(_ id: UInt32, by increment: Int, now: NIODeadline) throws(HTTP2Failure) {
        guard id != 0 else {
            guard sendWindow.widen(by: increment) else {
                throw HTTP2Failure(code: .flowControlError, message: "a WINDOW_UPDATE makes the connection's window too large")
            }
            if sendQueue.isEmpty { try flood.spend(onUpdate: increment, now: now.nanoseconds) }
            return sendMore()
        }
        guard let stream = try stream(id, mayBeOver: true) else { return try spend(now) }
        guard stream.widen(by: increment) else {
            return object(to: stream, StreamViolation(.flowControl, "a WINDOW_UPDATE makes the stream's window too large"))
        }
        if stream.outlet == nil { try flood.spend(onUpdate: increment, now: now.nanoseconds) }
        stream.sendMore()
    }

    /// Reports a protocol violation of the server, and ends the connection.
    func fail(_ failure: HTTP2Failure) {
        status.take(failure)
        leavePool()
        let message = "receiving the response from \(facts.peer): \(failure.message)"
        failAll(LoadError(.badServerResponse, message, cause: failure), evidence: .streamFailed)
        writeGoAway(failure.code, failure.message)
        shut()
    }
}

extension HTTP2ErrorCode {
    fileprivate init(_ fault: StreamViolation.Fault) {
        self =
            switch fault {
            case .malformed: .protocolError
            case .excessive: .enhanceYourCalm
            case .flowControl: .flowControlError
            }
    }
}
