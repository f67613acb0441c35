// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPWire
import LoadingModel
import NIOCore

/// A body over an HTTP/2 stream, sent in DATA frames within the windows of the stream and the connection (RFC 9113, section 6.1).
///
/// The outlet holds at most one piece, so that a stream with an exhausted window occupies little memory.
final class HTTP2BodyOutlet: StreamOutlet {
    let pieceSize = 65_536
    /// Content must be framed, so the kernel cannot send it from a file.
    let takesRegions = false

    // These references are strong, because a promise may complete after the stream has ended; they are released with the outlet.
    private let stream: HTTP2Stream
    private let connection: HTTP2Connection
    private var piece: ByteBuffer?
    private var isLast = false
    private var promise: EventLoopPromise<Void>?

    init(_ stream: HTTP2Stream, of connection: HTTP2Connection) {
        self.stream = stream
        self.connection = connection
    }

    var hasPiece: Bool { piece != nil }
    var loop: any EventLoop { connection.loop }
    var isReady: Bool { piece == nil && connection.maySendContent }

    func write(_ piece: Data, isLast: Bool, promise: EventLoopPromise<Void>) {
        var buffer = ByteBufferAllocator().buffer(capacity: piece.count)
        piece.withUnsafeBytes { _ = buffer.writeBytes($0) }
        write(buffer, isLast: isLast, promise: promise)
    }

    func write(_ piece: ByteBuffer, isLast: Bool, promise: EventLoopPromise<Void>) {
        self.piece = piece
        self.isLast = isLast
        self.promise = promise
        sendMore()
    }

    func write(_ region: FileRegion, promise: EventLoopPromise<Void>) { promise.fail(ChannelError.operationUnsupported) }

    func end(promise: EventLoopPromise<Void>) { write(ByteBuffer(), isLast: true, promise: promise) }

    func sendMore() {
        guard var piece else { return }
        connection.writeContent(&piece, isLast: isLast, of: stream)
        guard piece.readableBytes == 0, !isLast || stream.hasSentEnd else {
            self.piece = piece
            return
        }
        self.piece = nil
        connection.whenFlushed(promise.take())
    }

    func flush() { connection.contentWasWritten(by: stream, hasPiece: piece != nil) }

    func completed(_ exchange: Exchange) { connection.requestCompleted(stream) }

    func failed(_ error: LoadError, _ exchange: Exchange) { connection.requestFailed(error, stream) }

    func discard() {
        piece = nil
        promise.take()?.fail(ChannelError.ioOnClosedChannel)
    }
}
