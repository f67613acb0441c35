// SPDX-License-Identifier: Apache-2.0

import CLoadingSystem
import NIOCore

/// Writes short messages directly to a channel's socket if no other data is waiting to be written.
///
/// A request usually fits into one packet, for which the kernel has space. Queuing the request in the channel and removing it again
/// would cost as much as parsing the response. Bytes that the kernel does not accept are written through the channel.
///
/// Confined to the channel's event loop.
struct SocketShortcut {
    /// The channel's socket, once it has been looked up: valid while the channel is active.
    ///
    /// Nil if the channel has no socket.
    private var socket: NIOBSDSocket.Handle?
    private var wasAsked = false
    /// The writes through the channel that the kernel has not accepted yet; no later bytes may overtake them.
    private let behind = Behind()

    private final class Behind {
        var count = 0
    }

    /// Sends as much as the kernel accepts at once, and advances the reader index past the sent bytes.
    ///
    /// The channel must be active, and all data written to it in other ways must have been handed to the kernel. If the connection
    /// is broken, the message is left unchanged; the channel finds out on the next write.
    mutating func send(_ message: inout ByteBuffer, _ context: ChannelHandlerContext) {
        guard behind.count == 0, let socket = socket(context) else { return }
        let sent = message.withUnsafeReadableBytes { cls_send(socket, $0.baseAddress, $0.count) }
        if sent > 0 { message.moveReaderIndex(forwardBy: Int(sent)) }
    }

    /// Sends through the channel.
    ///
    /// `written` is called with true when the kernel has accepted the message, and with false if the write fails.
    func write(_ message: ByteBuffer, _ context: ChannelHandlerContext, written: ((Bool) -> Void)? = nil) {
        behind.count += 1
        let promise = context.eventLoop.makePromise(of: Void.self)
        promise.futureResult.assumeIsolated().whenComplete { [behind] result in
            behind.count -= 1
            written?((try? result.get()) != nil)
        }
        context.writeAndFlush(NIOAny(message), promise: promise)
    }

    private mutating func socket(_ context: ChannelHandlerContext) -> NIOBSDSocket.Handle? {
        if !wasAsked {
            wasAsked = true
            socket = try? context.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) { $0 }
        }
        return socket
    }
}
