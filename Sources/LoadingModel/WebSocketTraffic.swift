//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import FoundationEssentials

/// What becomes of a task that speaks WebSocket (RFC 6455).
package struct WebSocketOrder: Sendable {
    /// The largest message that is received, in bytes after decoding.
    package var maximumMessageSize: Int
    /// Offer permessage-deflate (RFC 7692).
    package var offersCompression: Bool
    /// Seconds between pings that find a dead peer; nil sends none.
    package var pingInterval: Double?
    /// The subprotocols that the app offers; empty where the request's own `Sec-WebSocket-Protocol` counts.
    package var protocols: [String]
    /// What the app said before the load began, in its order.
    package var queued: [WebSocketCommand] = []

    package init(
        maximumMessageSize: Int, offersCompression: Bool = false, pingInterval: Double? = nil, protocols: [String] = []
    ) {
        self.protocols = protocols
        self.maximumMessageSize = maximumMessageSize
        self.offersCompression = offersCompression
        self.pingInterval = pingInterval
    }
}

/// A message, whole.
package enum WebSocketMessage: Sendable {
    case text(String)
    case binary(Data)

    /// In bytes.
    package var size: Int {
        switch self {
        case .text(let text): text.utf8.count
        case .binary(let data): data.count
        }
    }

    /// What it counts as where messages wait for the app: an empty one takes memory, too.
    package var cost: Int { size + 128 }
}

/// What the app says on a WebSocket.
package enum WebSocketCommand: Sendable {
    case send(WebSocketMessage)
    case ping
    /// Sends a close frame behind all messages. Without a code, it has no body.
    case close(code: UInt16?, reason: Data)
    /// Sets ``WebSocketOrder/maximumMessageSize``.
    case limit(Int)
}

/// What comes of a WebSocket, in order.
package enum WebSocketEvent: Sendable {
    /// The handshake succeeded.
    case opened(subprotocol: String?)
    case message(WebSocketMessage)
    /// So many more of the app's messages were handed to the network.
    case sent(Int)
    /// So many more of the app's pings were answered.
    case ponged(Int)
    /// The peer's close frame came; no message follows. The code is 1005 where it has none.
    case closed(code: UInt16, reason: Data?)
}
