// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPWire
import LoadingModel
import NIOCore

/// The destination of a request's body: accepts the body piece by piece, and frames the pieces for the request's version of HTTP.
///
/// Confined to the channel's event loop.
protocol BodyOutlet: AnyObject {
    var loop: any EventLoop { get }
    /// Whether the outlet accepts another piece.
    var isReady: Bool { get }
    /// The maximum size of a piece.
    var pieceSize: Int { get }
    /// Whether the outlet accepts parts of a file for the kernel to send.
    var takesRegions: Bool { get }

    /// Writes a piece; the promise succeeds when the bytes were handed to the kernel.
    func write(_ piece: Data, isLast: Bool, promise: EventLoopPromise<Void>)
    func write(_ piece: ByteBuffer, isLast: Bool, promise: EventLoopPromise<Void>)
    /// Writes a part of a file that the kernel may send.
    func write(_ region: FileRegion, promise: EventLoopPromise<Void>)
    /// Ends the body, if no written piece was marked as the last.
    func end(promise: EventLoopPromise<Void>)
    func flush()

    /// Called when all of the body was handed to the kernel.
    func completed(_ exchange: Exchange)
    /// Called when the body could not be read.
    func failed(_ error: LoadError, _ exchange: Exchange)
}

/// A body over HTTP/1.1: unframed if its length is known, otherwise with the chunked coding (RFC 9112, section 7.1).
final class HTTP1BodyOutlet: BodyOutlet {
    let pieceSize = 262_144
    let takesRegions = true

    private let isChunked: Bool
    private let context: ChannelHandlerContext
    private unowned let connection: HTTP1Connection

    init(_ body: OutgoingBody, _ context: ChannelHandlerContext, of connection: HTTP1Connection) {
        isChunked = (body.length ?? 0) < 0
        self.context = context
        self.connection = connection
    }

    var loop: any EventLoop { context.eventLoop }
    var isReady: Bool { context.channel.isWritable }

    func write(_ piece: Data, isLast: Bool, promise: EventLoopPromise<Void>) {
        var buffer = context.channel.allocator.buffer(capacity: piece.count + 16)
        let isFramed = isChunked && !piece.isEmpty
        if isFramed { buffer.writeBytes(ChunkedBody.frameHead(length: piece.count)) }
        piece.withUnsafeBytes { _ = buffer.writeBytes($0) }
        if isFramed { buffer.writeBytes(ChunkedBody.frameTail) }
        write(buffer, isLast: isLast, promise: promise)
    }

    func write(_ piece: ByteBuffer, isLast: Bool, promise: EventLoopPromise<Void>) {
        context.write(NIOAny(piece), promise: promise)
    }

    func write(_ region: FileRegion, promise: EventLoopPromise<Void>) { context.write(NIOAny(region), promise: promise) }

    func end(promise: EventLoopPromise<Void>) {
        var last = ByteBuffer()
        if isChunked { last.writeBytes(ChunkedBody.lastChunk) }
        context.write(NIOAny(last), promise: promise)
    }

    func flush() { context.flush() }

    func completed(_ exchange: Exchange) { connection.requestBodyCompleted(exchange) }

    func failed(_ error: LoadError, _ exchange: Exchange) { connection.requestBodyFailed(error, exchange) }
}
