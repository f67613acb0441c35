// SPDX-License-Identifier: Apache-2.0

/// Writes the chunked coding of a request body (RFC 9112, section 7.1).
///
/// A chunk consists of ``frameHead(length:)``, the unmodified data and ``frameTail``. The body ends with ``lastChunk`` or
/// ``end(trailers:)``.
package enum ChunkedBody {
    /// The CRLF after a chunk's data.
    package static let frameTail: [UInt8] = [0x0D, 0x0A]

    /// The last chunk with an empty trailer section.
    package static let lastChunk: [UInt8] = [0x30, 0x0D, 0x0A, 0x0D, 0x0A]

    /// Returns the size line before a chunk's data.
    ///
    /// Do not write an empty chunk: a chunk size of zero would end the body.
    package static func frameHead(length: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        appendFrameHead(length: length, to: &bytes)
        return bytes
    }

    package static func appendFrameHead(length: Int, to bytes: inout [UInt8]) {
        let length = UInt64(max(0, length))
        var shift = max(0, (63 - length.leadingZeroBitCount) / 4 * 4)
        while shift >= 0 {
            let digit = UInt8(truncatingIfNeeded: length >> UInt64(shift) & 0xF)
            bytes.append(digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10)
            shift -= 4
        }
        bytes.append(contentsOf: frameTail)
    }

    /// Returns the last chunk followed by trailers.
    package static func end(trailers: HeaderBlock) throws(InvalidRequest) -> [UInt8] {
        guard !trailers.isEmpty else { return lastChunk }
        try RequestSerializer.validate(trailers)
        var bytes: [UInt8] = [0x30, 0x0D, 0x0A]
        for line in trailers.lines {
            bytes.append(contentsOf: trailers.bytes[line.name])
            bytes.append(contentsOf: [UInt8(ascii: ":"), UInt8(ascii: " ")])
            bytes.append(contentsOf: trailers.bytes[line.value])
            bytes.append(contentsOf: frameTail)
        }
        bytes.append(contentsOf: frameTail)
        return bytes
    }
}
