// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import LoadingModel
import NIOCore
import TransportMachines

/// A body over an HTTP/3 stream: the library frames it, and sends it within the windows of the stream and the connection (RFC 9114,
/// section 4.1).
///
/// The library copies each piece, and is given the next one when nearly all of the last one was written into packets.
final class HTTP3BodyOutlet: StreamOutlet {
    let pieceSize = 262_144
    /// Content must be framed, so the kernel cannot send it from a file.
    let takesRegions = false

    // These references are strong, because a promise may complete after the stream has ended; they are released with the outlet.
    private let stream: HTTP3Stream
    private let connection: HTTP3Connection
    /// Completed when the library has sent the piece that it has.
    private var promise: EventLoopPromise<Void>?

    init(_ stream: HTTP3Stream, of connection: HTTP3Connection) {
        self.stream = stream
        self.connection = connection
    }

    var hasPiece: Bool { promise != nil }
    var loop: any EventLoop { connection.loop }
    var isReady: Bool { promise == nil && connection.isOpen && !stream.hasSentEnd }

    func write(_ piece: Data, isLast: Bool, promise: EventLoopPromise<Void>) {
        piece.withUnsafeBytes { write($0, isLast: isLast, promise: promise) }
    }

    func write(_ piece: ByteBuffer, isLast: Bool, promise: EventLoopPromise<Void>) {
        piece.withUnsafeReadableBytes { write($0, isLast: isLast, promise: promise) }
    }

    private func write(_ piece: UnsafeRawBufferPointer, isLast: Bool, promise: EventLoopPromise<Void>) {
        guard self.promise == nil, !stream.hasSentEnd, connection.quic.sendBody(stream.id, piece, isLast: isLast) else {
            return promise.fail(ChannelError.ioOnClosedChannel)
        }
        if isLast { stream.hasSentEnd = true }
        // The server acknowledges packets in datagrams that carry nothing else.
        connection.flood.earn(piece.count / 1_000 + 1)
        guard !piece.isEmpty || isLast else { return promise.succeed() }
        self.promise = promise
    }

    func write(_ region: FileRegion, promise: EventLoopPromise<Void>) { promise.fail(ChannelError.operationUnsupported) }

    func end(promise: EventLoopPromise<Void>) {
        guard self.promise == nil, !stream.hasSentEnd, connection.quic.endBody(stream.id) else {
            return promise.fail(ChannelError.ioOnClosedChannel)
        }
        stream.hasSentEnd = true
        self.promise = promise
    }

    func pieceWasSent() { promise.take()?.succeed() }

    func sendMore() {}

    func flush() { connection.quic.scheduleFlush() }

    func completed(_ exchange: Exchange) { connection.requestCompleted(stream) }

    func failed(_ error: LoadError, _ exchange: Exchange) { connection.requestFailed(error, stream) }

    func discard() { promise.take()?.fail(ChannelError.ioOnClosedChannel) }
}
