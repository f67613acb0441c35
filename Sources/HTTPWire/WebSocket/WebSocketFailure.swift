//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// Why a WebSocket connection fails (RFC 6455, section 7.1.7).
package struct WebSocketFailure: Error, Hashable, Sendable {
    /// What the close frame has to say (section 7.4.1).
    package var code: UInt16
    /// What was wrong, in plain English; short enough for the reason of a close frame.
    package var message: String

    package init(code: UInt16, message: String) {
        self.code = code
        self.message = message
    }

    /// The peer broke the protocol.
    package static func protocolError(_ message: String) -> WebSocketFailure { WebSocketFailure(code: 1002, message: message) }

    /// The bytes are not what the message says they are: text that is not UTF-8.
    package static func invalidData(_ message: String) -> WebSocketFailure { WebSocketFailure(code: 1007, message: message) }

    /// A message is larger than we take.
    package static func tooBig(_ message: String) -> WebSocketFailure { WebSocketFailure(code: 1009, message: message) }
}
