//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import HTTPRules
import HTTPWire
import LoadingModel
import NIOCore
import TransportMachines

/// What the server's frames come to.
extension HTTP2Connection {
    func receive(_ buffer: ByteBuffer, now: NIODeadline) {
        var offset = 0
        let failure = buffer.withUnsafeReadableBytes { bytes -> HTTP2Failure? in
            do throws(HTTP2Failure) {
                while isOpen, let event = try reader.next(bytes, &offset) { try handle(event, of: buffer, now: now) }
                return nil
            } catch {
                return error
            }
        }
        if let failure, isOpen { fail(failure) }
    }

    private func handle(_ event: HTTP2FrameReader.Event, of buffer: ByteBuffer, now: NIODeadline) throws(HTTP2Failure) {
        switch event {
        case .data(let id, let range, let flowControlled, let endsStream):
            try receiveData(id, range, of: buffer, flowControlled: flowControlled, endsStream: endsStream, now: now)
        case .headers(let id, let section, let endsStream):
            try receiveHeaders(id, section, endsStream: endsStream, now: now)
        case .reset(let id, let code):
            // Those of streams that are open are no more than our own requests.
            guard let stream = try stream(id, closedIsError: false) else { return try spend(now) }
            wasReset(stream, code)
        case .settings(let settings):
            try spend(now)
            try take(settings, now: now)
            try countAnswer()
            write(HTTP2Frames.settingsAcknowledgementLength) { HTTP2Frames.writeSettingsAcknowledgement(into: $0) }
            scheduleFlush()
        case .settingsAcknowledged:
            try spend(now)
            settingsWereAcknowledged(now)
        case .ping(let data, let isAcknowledgement):
            try spend(now)
            guard !isAcknowledgement else { return }
            try countAnswer()
            write(HTTP2Frames.pingLength) { HTTP2Frames.writePing(data, isAcknowledgement: true, into: $0) }
            scheduleFlush()
        case .goAway(let lastStream, let code, let debug):
            try spend(now)
            try receiveGoAway(lastStream, code, debug)
        case .windowUpdate(let id, let increment): try widen(id, by: Int(increment), now: now)
        case .pushPromise:
            // "A client that has set this parameter to 0 … MUST treat the receipt of a PUSH_PROMISE frame as a connection error."
            throw HTTP2Failure(code: .protocolError, message: "the server pushes, which was forbidden to it")
        case .ignored: try spend(now)
        case .malformed(let failure):
            try spend(now)
            guard let id = failure.stream, let stream = streams[id] else { return }
            object(to: stream, Objection(failure.code, failure.message))
        }
    }

    private func spend(_ now: NIODeadline) throws(HTTP2Failure) {
        guard allowance.spend(now: Int64(now.uptimeNanoseconds)) else {
            throw HTTP2Failure(code: .enhanceYourCalm, message: "too many frames that carry nothing")
        }
    }

    /// How many answers may wait for a server that does not read.
    private static let mostUnreadAnswers = 10_000

    private func countAnswer() throws(HTTP2Failure) {
        guard context?.channel.isWritable == false else { return }
        unreadAnswers += 1
        guard unreadAnswers <= Self.mostUnreadAnswers else {
            throw HTTP2Failure(code: .enhanceYourCalm, message: "frames ask for answers that are not read")
        }
    }

    /// The stream that a frame is for; nil where it is over.
    private func stream(_ id: UInt32, closedIsError: Bool) throws(HTTP2Failure) -> HTTP2Stream? {
        if let stream = streams[id], !stream.hasAnswer || !closedIsError { return stream }
        guard id % 2 == 1, id < nextStream else {
            throw HTTP2Failure(code: .protocolError, message: "a frame is for a stream that was not opened (\(id))")
        }
        // What was on its way when we reset a stream is nobody's fault; after END_STREAM nothing may come.
        if closedIsError, !resets.mayContain(id) {
            throw HTTP2Failure(code: .streamClosed, message: "a frame is for a stream that the server had ended (\(id))")
        }
        return nil
    }

    private func touch(_ stream: HTTP2Stream, now: NIODeadline) {
        guard let exchange = stream.exchange else { return }
        exchange.control.markProgress(now)
        if exchange.record.responseStart == nil { exchange.record.responseStart = now }
        guard !stream.isTouched else { return }
        stream.isTouched = true
        touched.append(stream)
    }

    // MARK: Messages

    private func receiveHeaders(
        _ id: UInt32, _ section: HTTP2FieldSection, endsStream: Bool, now: NIODeadline
    ) throws(HTTP2Failure) {
        guard let stream = try stream(id, closedIsError: true) else { return try spend(now) }
        allowance.earn()
        hasWorked = true
        touch(stream, now: now)
        if let objection = stream.receive(section, endsStream: endsStream, now: now) { return object(to: stream, objection) }
        if endsStream { finish(stream, now: now) }
    }

    private func receiveData(
        _ id: UInt32, _ range: Range<Int>, of buffer: ByteBuffer, flowControlled: Int, endsStream: Bool, now: NIODeadline
    ) throws(HTTP2Failure) {
        guard receiveWindow.receive(flowControlled) else {
            throw HTTP2Failure(code: .flowControlError, message: "the server sent more than the connection's window allows")
        }
        if let change = receiveWindow.update(waiting: 0) { writeWindowUpdate(change, stream: 0) }
        let isEmpty = range.isEmpty && !endsStream
        if isEmpty { try spend(now) }
        guard let stream = try stream(id, closedIsError: true) else { return }
        if !isEmpty { allowance.earn() }
        guard
            let piece = buffer.getSlice(at: buffer.readerIndex + range.lowerBound, length: range.count)
        else { return }
        touch(stream, now: now)
        if let objection = stream.receive(piece, flowControlled: flowControlled) { return object(to: stream, objection) }
        if endsStream { finish(stream, now: now) }
    }

    /// The whole answer is here.
    ///
    /// Should the request still be on its way, and the answer be no success, the server does without the rest of it.
    private func finish(_ stream: HTTP2Stream, now: NIODeadline) {
        if let objection = stream.receiveEnd(now: now) { return object(to: stream, objection) }
        guard !stream.sendsOn() else { return }
        if !stream.hasSentEnd { reset(stream, .noError) }
        end(stream, isComplete: true)
    }

    /// What came for a stream is wrong: it is reset, and its load fails.
    private func object(to stream: HTTP2Stream, _ objection: Objection) {
        reset(stream, objection.code)
        let message = "receiving the response from \(facts.peer): \(objection.message)"
        end(stream, LoadError(objection.kind, message), evidence: .failedAlone)
    }

    private func wasReset(_ stream: HTTP2Stream, _ code: HTTP2ErrorCode) {
        resets.insert(stream.id)
        let hasBegun = stream.exchange?.hasHead ?? false
        let evidence: RetryEvidence =
            switch code {
            case .refusedStream where !hasBegun:
                .notProcessed(.init(endsConnection: false, connectionWorks: hasWorked || streams.count > 1))
            case .http11Required where !hasBegun: .wantsHTTP1
            default: .failedAlone
            }
        let message = "receiving the response from \(facts.peer): the server reset the stream (\(code.name))"
        giveUp(stream, LoadError(.connectionLost, message), evidence: evidence)
    }

    // MARK: The connection

    /// "Receivers of a GOAWAY frame MUST NOT open additional streams on the connection" (RFC 9113, section 6.8).
    private func receiveGoAway(_ lastStream: UInt32, _ code: HTTP2ErrorCode, _ debug: String) throws(HTTP2Failure) {
        guard lastStream <= goAway?.lastStream ?? .max else {
            throw HTTP2Failure(code: .protocolError, message: "a GOAWAY names a later stream than the one before")
        }
        let isFirst = goAway == nil
        goAway = (lastStream, code, debug)
        if code == .enhanceYourCalm { pool?.calmDown(self) }
        // Before streams end: none of their places is for others.
        if isFirst { pool?.drains(self) }
        let refused = streams.values.filter { $0.id > lastStream }.sorted { $0.id < $1.id }
        let refusal = RetryEvidence.Refusal(
            endsConnection: true, connectionWorks: hasWorked || refused.count < streams.count,
            asksForCalm: code == .enhanceYourCalm)
        for stream in refused {
            resets.insert(stream.id)
            let message = "sending the request to \(facts.peer): the server takes no more on this connection (\(code.name))"
            giveUp(
                stream, LoadError(.connectionLost, message),
                evidence: code == .http11Required ? .wantsHTTP1 : .notProcessed(refusal))
        }
    }

    private func widen(_ id: UInt32, by increment: Int, now: NIODeadline) throws(HTTP2Failure) {
        guard id != 0 else {
            guard sendWindow.widen(by: increment) else {
                throw HTTP2Failure(code: .flowControlError, message: "a WINDOW_UPDATE makes the connection's window too large")
            }
            if sendLine.isEmpty, !answersContent(increment) { try spend(now) }
            return sendMore()
        }
        guard let stream = try stream(id, closedIsError: false) else { return try spend(now) }
        guard stream.sendWindow.widen(by: increment) else {
            return object(to: stream, Objection(.flowControlError, "a WINDOW_UPDATE makes the stream's window too large"))
        }
        if stream.outlet == nil, !answersContent(increment) { try spend(now) }
        stream.sendMore()
    }

    /// Servers may say piece by piece that they took what was sent, also when all of it was.
    private func answersContent(_ increment: Int) -> Bool {
        guard increment >= 256, increment <= unansweredContent else { return false }
        unansweredContent -= increment
        return true
    }

    /// Says what is wrong with what the server sent, and ends the connection.
    func fail(_ failure: HTTP2Failure) {
        violation = failure
        leavePool()
        let message = "receiving the response from \(facts.peer): \(failure.message)"
        failAll(LoadError(.badServerResponse, message, cause: failure), evidence: .failedAlone)
        writeGoAway(failure.code, failure.message)
        shut()
    }
}
