// SPDX-License-Identifier: Apache-2.0

import CLoadingSystem
package import HTTPRules
package import HTTPWire
package import LoadingModel
package import NIOCore

/// The behavior in which HTTP/1.1 differs from connections with several exchanges at a time.
extension HTTP1Connection {
    /// Returns the head, with the chunked coding added for a body of unknown length (RFC 9112, section 6.1).
    package func framedHead(of message: OutgoingMessage) -> RequestHead {
        guard !isFramed(message) else { return message.head }
        var head = message.head
        head.headers.append("Transfer-Encoding", "chunked")
        return head
    }

    package func noteLargeRead(of exchange: Exchange, endingIn piece: ByteBuffer?) -> Bool {
        guard let context, case .length(let length) = exchange.framing else { return false }
        let received = exchange.record.responseBodyBytes
        let now = exchange.control.lastProgress
        return memory.bulk(BulkReading(context.channel, isSecure ? .copied : .passedOn, received: received, now: now))
            .noteRead(isSecure ? nil : piece, received: received, missing: length - received, now: now)
    }

    static func kind(of message: OutgoingMessage) -> ResponseParser.RequestKind {
        switch message.head.method {
        case "HEAD": message.asksToSwitch ? .upgradeByHead : .head
        case "CONNECT": .connect
        default: message.asksToSwitch ? .upgrade : .other
        }
    }

    /// Whether the head already frames the message.
    func isFramed(_ message: OutgoingMessage) -> Bool { (message.body.length ?? 0) >= 0 }

    /// Replaces the content of the buffer with a head, and returns the head's length in bytes.
    func write(_ head: RequestHead, to buffer: inout ByteBuffer) throws(LoadError) -> Int {
        let length = RequestSerializer.encodedLength(of: head)
        buffer.clear(minimumCapacity: length)
        do {
            return try buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: length) {
                try RequestSerializer.encode(head, into: $0)
            }
        } catch {
            let reason = (error as? InvalidRequest)?.message ?? "its head cannot be written"
            throw LoadError(.badURL, "the request cannot be sent: \(reason)", cause: error)
        }
    }

    /// Has no effect on a connection with one exchange at a time.
    package func priorityChanged(_ priority: Float, of exchange: Exchange) {}

    package var mayBypass: Bool { true }

    package var unacknowledgedBytes: Int64 {
        let count = try? context?.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) {
            cls_unacknowledged($0)
        }
        return max(0, count.flatMap { $0 } ?? 0)
    }

    package var isWritable: Bool { context?.channel.isWritable ?? false }

    private func send(_ bytes: ByteBuffer, written: @escaping (Bool) -> Void) {
        guard let context, channelIsActive else { return written(false) }
        var bytes = bytes
        if !isSecure { shortcut.send(&bytes, context) }
        if bytes.readableBytes == 0 { written(true) } else { shortcut.write(bytes, context, written: written) }
    }

    package func write(_ bytes: ByteBuffer, for exchange: Exchange, written: @escaping (Bool) -> Void) {
        guard self.exchange === exchange else { return written(false) }
        send(bytes, written: written)
    }

    /// Hands the connection over as a byte stream, which starts with the bytes that were read ahead.
    package func handOver(_ exchange: Exchange) -> ByteStreamConnection? {
        // The rest of the request's body must not be sent in the other protocol.
        guard self.exchange === exchange, requestIsComplete, let context else { return nil }
        var received = exchange.takeAll()
        for var piece in backlog { received.writeBuffer(&piece) }
        let stream = ByteStreamConnection(id: id, facts: facts, received: received)
        stream.pool = pool
        pool?.replace(self, by: stream)
        pool = nil
        tearDown(of: exchange)
        let pipeline = context.pipeline.syncOperations
        do {
            try pipeline.addHandler(stream, position: .after(self))
        } catch {
            stream.pool?.connectionClosed(stream)
            return stream
        }
        setReading(true)
        pipeline.removeHandler(context: context, promise: nil)
        return stream
    }

    package var allowsExtendedConnect: Bool { false }

    package func giveUp() { close() }

    package var evidenceBeforeRequest: RetryEvidence { .none }

    package var isIdle: Bool { exchange == nil }

    package func networkIsLost(_ error: LoadError) {
        guard let exchange else { return close() }
        // The pump that bypasses the connection is cancelled through its load.
        if isBypassed { exchange.control.abort(error) } else { lose(exchange, error) }
    }

    /// Whether the connection cannot carry another request.
    ///
    /// Readable bytes on a reused connection count as its end: in cleartext they are unsolicited; over TLS they may be a
    /// `close_notify` alert. If they are only a session ticket, the connection is replaced needlessly.
    package var isGone: Bool {
        guard let context, channelIsActive else { return true }
        let state = SocketState(of: context)
        return state.contains(.hasEnded) || exchangesServed > 0 && state.contains(.isReadable)
    }
}
