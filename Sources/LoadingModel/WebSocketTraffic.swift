// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials

/// The parameters of a WebSocket task (RFC 6455).
package struct WebSocketOrder: Sendable {
    /// The largest message accepted, in bytes after decoding.
    package var maximumMessageSize: Int
    /// Whether to offer permessage-deflate (RFC 7692).
    package var offersCompression: Bool
    /// Seconds between the pings that detect a dead peer; nil sends no pings.
    package var pingInterval: Double?
    /// The subprotocols that the app offers; if empty, the request's own `Sec-WebSocket-Protocol` applies.
    package var protocols: [String]
    /// The app's commands from before the load began, in order.
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

/// A complete message.
package enum WebSocketMessage: Sendable {
    case text(String)
    case binary(Data)

    /// The size in bytes.
    package var size: Int {
        switch self {
        case .text(let text): text.utf8.count
        case .binary(let data): data.count
        }
    }

    /// The size that counts toward the receive window: an empty message uses memory, too.
    package var cost: Int { size + 128 }
}

/// The app's commands for a WebSocket.
package enum WebSocketCommand: Sendable {
    case send(WebSocketMessage)
    case ping
    /// Sends a close frame after all messages. Without a code, the frame has no body.
    case close(code: UInt16?, reason: Data)
    /// Sets ``WebSocketOrder/maximumMessageSize``.
    case limit(Int)
}

/// The events of a WebSocket, in order.
package enum WebSocketEvent: Sendable {
    /// The handshake succeeded.
    case opened(subprotocol: String?)
    case message(WebSocketMessage)
    /// The number of messages that were handed to the network since the last such event.
    case sent(Int)
    /// The number of pings that were answered since the last such event.
    case ponged(Int)
    /// The peer's close frame arrived; no message follows. The code is 1005 if the frame has no code.
    case closed(code: UInt16, reason: Data?)
}
