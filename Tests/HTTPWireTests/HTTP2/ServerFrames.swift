// SPDX-License-Identifier: Apache-2.0

import HTTPWire

/// Frames as a server may send them.
enum ServerFrames {
    static let settings = frame(4, 0, 0, [])
    static let acknowledgement = frame(4, 1, 0, [])

    static func frame(_ type: UInt8, _ flags: UInt8, _ stream: UInt32, _ payload: [UInt8], length: Int? = nil) -> [UInt8] {
        var header = [UInt8](repeating: 0, count: HTTP2Frames.headerLength)
        header.withUnsafeMutableBytes {
            HTTP2Frames.writeHeader(length: length ?? payload.count, type: type, flags: flags, stream: stream, into: $0)
        }
        return header + payload
    }

    static func headers(_ block: [UInt8], stream: UInt32 = 1, flags: UInt8 = HTTP2Frames.Flag.endHeaders) -> [UInt8] {
        frame(HTTP2Frames.headers, flags, stream, block)
    }

    /// Bytes from hexadecimal digits; white space is ignored.
    static func hexadecimal(_ text: String) -> [UInt8] {
        let digits = text.compactMap(\.hexDigitValue)
        return stride(from: 0, to: digits.count - 1, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
    }
}
