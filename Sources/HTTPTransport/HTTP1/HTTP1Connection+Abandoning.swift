// SPDX-License-Identifier: Apache-2.0

import LibC
import NIOCore
import NIOSSL

/// The end of a connection whose request another request continues.
extension HTTP1Connection {
    /// Makes the end of the connection a reset (SO_LINGER), also if the process dies: the system then drops what it has not sent.
    package func dropUnsent(_ drops: Bool, of exchange: Exchange) {
        guard let socket = context?.channel as? any SocketOptionProvider else { return }
        // Best effort: without the option, the connection ends as any other.
        _ = socket.setSoLinger(option(drops))
    }

    func closeChannel(after exchange: Exchange) {
        guard exchange.isContinued, !exchange.hasHead, let context else {
            context?.close(promise: nil)
            return
        }
        // TLS would first send its backlog, and wait for the peer's close_notify.
        let security = try? context.pipeline.syncOperations.context(handlerType: NIOSSLClientHandler.self)
        (security ?? context).close(promise: nil)
    }
}

/// SO_LINGER with a patience of zero seconds, or no SO_LINGER; within the class, `linger` is a method.
private func option(_ drops: Bool) -> linger { linger(l_onoff: drops ? 1 : 0, l_linger: 0) }
