//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
import FoundationEssentials
import HTTPWire
import LoadingModel
import NIOCore

/// Where a request's body goes, piece by piece: frames it as its version of HTTP does.
///
/// Confined to the channel's event loop.
protocol BodyOutlet: AnyObject {
    var loop: any EventLoop { get }
    /// Whether another piece is to be given.
    var isReady: Bool { get }
    /// How long a piece is at most.
    var pieceSize: Int { get }
    /// Whether parts of a file may be handed over for the kernel to send.
    var takesRegions: Bool { get }

    /// Each promise is kept when the bytes were handed to the kernel.
    func write(_ piece: Data, isLast: Bool, promise: EventLoopPromise<Void>)
    func write(_ piece: ByteBuffer, isLast: Bool, promise: EventLoopPromise<Void>)
    /// A part of a body whose file may be sent by the kernel.
    func write(_ region: FileRegion, promise: EventLoopPromise<Void>)
    /// Nothing follows what was written, of which no piece was said to be the last.
    func end(promise: EventLoopPromise<Void>)
    func flush()

    /// All of the body was handed to the kernel.
    func completed(_ exchange: Exchange)
    /// The body could not be had.
    func failed(_ error: LoadError, _ exchange: Exchange)
}

/// A body over HTTP/1.1: as it is where its length is known, otherwise with the chunked coding (RFC 9112, section 7.1).
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
