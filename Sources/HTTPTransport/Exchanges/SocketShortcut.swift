//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import CLoadingSystem
import NIOCore

/// Hands short messages straight to the socket of a channel, where nothing waits to be written before them.
///
/// A request takes one packet, which the kernel has room for. Through the channel it would cost as much to put it in the list of what is
/// to be written, and to take it out again, as to parse the response. What the kernel has no room for goes through the channel.
///
/// Confined to the channel's event loop.
struct SocketShortcut {
    /// The channel's socket, once it was asked for: valid as long as the channel is active.
    ///
    /// Nil where it has none to give.
    private var socket: NIOBSDSocket.Handle?
    private var wasAsked = false
    /// What went through the channel, until the kernel has it: nothing may pass it by.
    private let behind = Behind()

    private final class Behind {
        var count = 0
    }

    /// Sends what the kernel takes at once, which is moved past.
    ///
    /// The channel must be active, and must not have been written to in other ways since all of that was handed to the kernel. Should the
    /// connection be broken, nothing is moved past: the channel finds out when it is written to.
    mutating func send(_ message: inout ByteBuffer, _ context: ChannelHandlerContext) {
        guard behind.count == 0, let socket = socket(context) else { return }
        let sent = message.withUnsafeReadableBytes { cls_send(socket, $0.baseAddress, $0.count) }
        if sent > 0 { message.moveReaderIndex(forwardBy: Int(sent)) }
    }

    /// Sends by the channel.
    ///
    /// `written` is called when the kernel has it, with true, or will not get it.
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
