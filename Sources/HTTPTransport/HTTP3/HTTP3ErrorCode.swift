// SPDX-License-Identifier: Apache-2.0

/// An error code of HTTP/3 (RFC 9114, section 8.1) or QPACK (RFC 9204, section 6), as it resets streams and closes connections.
struct HTTP3ErrorCode: RawRepresentable, Hashable, Sendable {
    let rawValue: UInt64

    static let noError = HTTP3ErrorCode(rawValue: 0x100)
    static let internalError = HTTP3ErrorCode(rawValue: 0x102)
    static let excessiveLoad = HTTP3ErrorCode(rawValue: 0x107)
    static let requestRejected = HTTP3ErrorCode(rawValue: 0x10B)
    static let requestCancelled = HTTP3ErrorCode(rawValue: 0x10C)
    static let messageError = HTTP3ErrorCode(rawValue: 0x10E)
    static let versionFallback = HTTP3ErrorCode(rawValue: 0x110)

    private static let names = [
        "NO_ERROR", "GENERAL_PROTOCOL_ERROR", "INTERNAL_ERROR", "STREAM_CREATION_ERROR", "CLOSED_CRITICAL_STREAM",
        "FRAME_UNEXPECTED", "FRAME_ERROR", "EXCESSIVE_LOAD", "ID_ERROR", "SETTINGS_ERROR", "MISSING_SETTINGS",
        "REQUEST_REJECTED", "REQUEST_CANCELLED", "REQUEST_INCOMPLETE", "MESSAGE_ERROR", "CONNECT_ERROR", "VERSION_FALLBACK",
    ]

    /// The name in the RFC, or the number.
    var name: String {
        switch rawValue {
        case 0x100...0x110: "H3_" + Self.names[Int(rawValue - 0x100)]
        case 0x200: "QPACK_DECOMPRESSION_FAILED"
        case 0x201: "QPACK_ENCODER_STREAM_ERROR"
        case 0x202: "QPACK_DECODER_STREAM_ERROR"
        default: "0x" + String(rawValue, radix: 16)
        }
    }
}
