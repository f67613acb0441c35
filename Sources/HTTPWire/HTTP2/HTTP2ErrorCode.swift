// SPDX-License-Identifier: Apache-2.0

/// Why a stream or a connection was closed (RFC 9113, section 7).
package struct HTTP2ErrorCode: RawRepresentable, Hashable, Sendable {
    package let rawValue: UInt32

    package init(rawValue: UInt32) { self.rawValue = rawValue }

    package static let noError = HTTP2ErrorCode(rawValue: 0x0)
    package static let protocolError = HTTP2ErrorCode(rawValue: 0x1)
    package static let internalError = HTTP2ErrorCode(rawValue: 0x2)
    package static let flowControlError = HTTP2ErrorCode(rawValue: 0x3)
    package static let settingsTimeout = HTTP2ErrorCode(rawValue: 0x4)
    package static let streamClosed = HTTP2ErrorCode(rawValue: 0x5)
    package static let frameSizeError = HTTP2ErrorCode(rawValue: 0x6)
    package static let refusedStream = HTTP2ErrorCode(rawValue: 0x7)
    package static let cancel = HTTP2ErrorCode(rawValue: 0x8)
    package static let compressionError = HTTP2ErrorCode(rawValue: 0x9)
    package static let connectError = HTTP2ErrorCode(rawValue: 0xA)
    package static let enhanceYourCalm = HTTP2ErrorCode(rawValue: 0xB)
    package static let inadequateSecurity = HTTP2ErrorCode(rawValue: 0xC)
    package static let http11Required = HTTP2ErrorCode(rawValue: 0xD)

    private static let names = [
        "NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT", "STREAM_CLOSED",
        "FRAME_SIZE_ERROR",
        "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR", "CONNECT_ERROR", "ENHANCE_YOUR_CALM", "INADEQUATE_SECURITY",
        "HTTP_1_1_REQUIRED",
    ]

    /// The name in the RFC, or the number of an unknown code: `PROTOCOL_ERROR`, `0x1f`.
    package var name: String {
        let index = Int(rawValue)
        return index < Self.names.count ? Self.names[index] : "0x" + String(rawValue, radix: 16)
    }
}

/// A connection error or stream error caused by the peer (RFC 9113, section 5.4).
package struct HTTP2Failure: Error, Hashable, Sendable {
    /// The code to send in GOAWAY or RST_STREAM.
    package var code: HTTP2ErrorCode
    /// The stream of a stream error; nil for a connection error.
    package var stream: UInt32?
    package var message: String

    package init(code: HTTP2ErrorCode, stream: UInt32? = nil, message: String) {
        self.code = code
        self.stream = stream
        self.message = message
    }
}
