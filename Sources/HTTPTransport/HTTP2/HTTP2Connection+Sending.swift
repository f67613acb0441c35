// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import HTTPWire
import LoadingModel
import NIOCore
import TransportMachines

/// Writes frames, and schedules when they are passed to the socket.
extension HTTP2Connection {
    /// Writes a frame of at most `length` bytes, which is sent at the end of this turn of the loop.
    func send(_ length: Int, _ frame: (UnsafeMutableRawBufferPointer) -> Int) {
        outgoing.write(length, frame)
        scheduleFlush()
    }

    func sendWindowUpdate(_ change: Int, stream: UInt32) {
        guard isOpen else { return }
        send(HTTP2Frames.windowUpdateLength) {
            HTTP2Frames.writeWindowUpdate(stream: stream, increment: UInt32(change), into: $0)
        }
    }

    func writeGoAway(_ code: HTTP2ErrorCode, _ debug: String) {
        outgoing.write(HTTP2Frames.goAwayLength(debug: debug)) {
            HTTP2Frames.writeGoAway(lastStream: 0, code: code, debug: debug, into: $0)
        }
    }

    /// Schedules a flush for the end of this turn of the loop, after all writes of the turn.
    func scheduleFlush() {
        guard outgoing.markDue(), context != nil else { return }
        executor.callLater { [self] in if outgoing.isDue { flush() } }
    }

    func flush() {
        guard let frames = outgoing.take(), let context else { return }
        let promises = outgoing.takePromises()
        guard !promises.isEmpty || !sendQueue.isEmpty else {
            return context.writeAndFlush(wrapOutboundOut(frames), promise: nil)
        }
        let promise = context.eventLoop.makePromise(of: Void.self)
        promise.futureResult.assumeIsolated().whenComplete { [self] result in
            if case .success = result, !promises.isEmpty { liveness.sentContent(now: loop.now.nanoseconds) }
            for promise in promises { promise.completeWith(result) }
            sendMore()
        }
        context.writeAndFlush(wrapOutboundOut(frames), promise: promise)
    }

    // MARK: Content

    /// Whether content may be written: false while much content is waiting for the socket.
    var maySendContent: Bool {
        guard isOpen, let context else { return false }
        return context.channel.isWritable && outgoing.takeContent
    }

    /// Writes as much of a piece of content as the windows allow.
    func writeContent(_ piece: inout ByteBuffer, isLast: Bool, of stream: HTTP2Stream) {
        guard isOpen, !stream.hasSentEnd else { return }
        repeat {
            let allowed = min(stream.sendWindow.available, sendWindow.available, peer.frameSize, Self.frameSize)
            let count = max(0, min(piece.readableBytes, allowed))
            let ends = isLast && count == piece.readableBytes
            guard count > 0 || ends else { return }
            outgoing.write(HTTP2Frames.headerLength) { buffer in
                let flags = ends ? HTTP2Frames.Flag.endStream : 0
                HTTP2Frames.writeHeader(length: count, type: HTTP2Frames.data, flags: flags, stream: stream.id, into: buffer)
                return HTTP2Frames.headerLength
            }
            if var slice = piece.readSlice(length: count) { outgoing.write(&slice) }
            stream.sent(count, ends: ends)
            sendWindow.take(count)
            flood.sentContent(count)
        } while piece.readableBytes > 0
    }

    /// Completes a promise when everything written so far was handed to the kernel.
    func whenFlushed(_ promise: EventLoopPromise<Void>?) {
        guard let promise else { return }
        guard isOpen else { return promise.fail(ChannelError.ioOnClosedChannel) }
        outgoing.add(promise)
    }

    /// Queues a stream for its next turn after it has written as much as it could.
    func contentWasWritten(by stream: HTTP2Stream, hasPiece: Bool) {
        scheduleFlush()
        // A stream whose own window is exhausted continues when its WINDOW_UPDATE arrives.
        if !hasPiece || stream.sendWindow.available > 0 { sendQueue.append(stream) }
    }

    /// Queues a stream that has something to send.
    func queue(_ stream: HTTP2Stream) { sendQueue.append(stream) }

    /// Gives each queued stream its turn.
    func sendMore() {
        guard !sendQueue.isEmpty, sendWindow.available > 0 else { return }
        for _ in 0..<sendQueue.count {
            guard maySendContent, let stream = sendQueue.popFirst() else { break }
            if streams[stream.id] === stream { stream.sendMore() }
        }
    }

    func requestCompleted(_ stream: HTTP2Stream) {
        guard streams[stream.id] === stream else { return }
        stream.requestCompleted()
        if stream.hasWholeResponse { end(stream, isComplete: true) }
    }

    /// Resets a stream whose request body could not be read, and fails its load.
    func requestFailed(_ error: LoadError, _ stream: HTTP2Stream) {
        guard streams[stream.id] === stream else { return }
        reset(stream, .cancel)
        end(stream, error, evidence: .streamFailed)
    }

    /// Sends a changed priority to the server (RFC 9218, section 7.1).
    func priorityChanged(_ priority: Float, of stream: HTTP2Stream) {
        guard isOpen, streams[stream.id] === stream else { return }
        let field = HTTP2Priority.field(priority) ?? HTTP2Priority.ordinary
        let length = HTTP2Frames.headerLength + 4 + field.utf8CodeUnitCount
        send(length) { HTTP2Priority.writeUpdate(stream: stream.id, field, into: $0) }
    }
}
