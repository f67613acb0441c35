// SPDX-License-Identifier: Apache-2.0

/// The type of a frame (RFC 6455, section 5.2).
package enum WebSocketOpcode: UInt8, Sendable, CaseIterable {
    /// Continues a fragmented message.
    case continuation = 0x0
    case text = 0x1
    case binary = 0x2
    case close = 0x8
    case ping = 0x9
    case pong = 0xA

    /// Whether the frame controls the connection instead of being part of a message (section 5.5).
    package var isControl: Bool { rawValue & 0x8 != 0 }
}

/// The type of a message (RFC 6455, section 5.6).
package enum WebSocketMessageKind: Sendable, Hashable, CaseIterable {
    /// Text in UTF-8.
    case text
    case binary

    /// The opcode of the message's first frame.
    package var opcode: WebSocketOpcode {
        switch self {
        case .text: .text
        case .binary: .binary
        }
    }
}
