// SPDX-License-Identifier: Apache-2.0

/// Why a WebSocket connection fails (RFC 6455, section 7.1.7).
package struct WebSocketFailure: Error, Hashable, Sendable {
    /// The code for the close frame (section 7.4.1).
    package var code: UInt16
    /// A description of the error in plain English, short enough for the reason of a close frame.
    package var message: String

    package init(code: UInt16, message: String) {
        self.code = code
        self.message = message
    }

    /// Creates the failure for a peer that broke the protocol.
    package static func protocolError(_ message: String) -> WebSocketFailure { WebSocketFailure(code: 1002, message: message) }

    /// Creates the failure for a payload that does not match the type of the message: text that is not UTF-8.
    package static func invalidData(_ message: String) -> WebSocketFailure { WebSocketFailure(code: 1007, message: message) }

    /// Creates the failure for a message that exceeds the size limit.
    package static func tooBig(_ message: String) -> WebSocketFailure { WebSocketFailure(code: 1009, message: message) }
}
