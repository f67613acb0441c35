// SPDX-License-Identifier: Apache-2.0

/// Decodes the chunked transfer coding (RFC 9112, section 7.1): byte by byte between chunks, without looking at the bytes inside a
/// chunk.
///
/// The decoder is as strict as llhttp's strict mode: a size ends in CRLF, and CRLF follows the data. Whitespace after a size is
/// accepted, as in browsers, because some servers pad their sizes. Such whitespace counts as an extension.
struct ChunkedDecoder: Sendable {
    enum Found {
        case incomplete
        /// This many bytes from the offset on are content. The caller advances the offset.
        case data(Int)
        case end(HeaderBlock?)
    }

    private enum State {
        case size
        /// In the extensions of a chunk, or in the whitespace before them.
        case extensions(ChunkExtensionReader)
        /// After the CR of a size line.
        case sizeLineFeed
        case data(Int64)
        /// After the data of a chunk.
        case dataCarriageReturn
        case dataLineFeed
        case trailers
    }

    /// The largest size to which another digit may be appended: 15 digits give at most 2^60 - 1, which cannot overflow and exceeds
    /// the size of any real message.
    private static let largestPrefix: Int64 = 1 << 56 - 1
    /// The number of hexadecimal digits in 64 bits.
    private static let widestNumber = 16

    private var state = State.size
    private var size: Int64 = 0
    private var hasDigits = false
    /// The number of leading zeros in the size of this chunk.
    private var zeroCount = 0
    private var extensionBytes = 0
    private var trailers = FieldSectionReader()

    mutating func next(
        _ bytes: UnsafeRawBufferPointer,
        _ offset: inout Int,
        _ limits: ResponseParser.Limits
    ) throws(ResponseParser.Failure) -> Found {
        while offset < bytes.count {
            switch state {
            case .size: try readSize(bytes, &offset, limits.chunkExtensionBytes)
            case .extensions(let reader): try skipExtensions(reader, bytes, &offset, limits.chunkExtensionBytes)
            case .sizeLineFeed:
                guard bytes[offset] == UInt8(ascii: "\n") else { throw .malformedChunkSize }
                offset += 1
                state = size == 0 ? .trailers : .data(size)
                size = 0
                hasDigits = false
                zeroCount = 0
            case .data(let missing):
                let count = min(missing, Int64(bytes.count - offset))
                state = count == missing ? .dataCarriageReturn : .data(missing - count)
                return .data(Int(truncatingIfNeeded: count))
            case .dataCarriageReturn:
                guard bytes[offset] == UInt8(ascii: "\r") else { throw .malformedChunkEnd }
                offset += 1
                state = .dataLineFeed
            case .dataLineFeed:
                guard bytes[offset] == UInt8(ascii: "\n") else { throw .malformedChunkEnd }
                offset += 1
                state = .size
            case .trailers:
                let block = try trailers.read(bytes, &offset, byteLimit: limits.trailerBytes, lineLimit: limits.headerLines)
                guard let block else { return .incomplete }
                return .end(Self.permitted(block))
            }
        }
        return .incomplete
    }

    /// Reads the size of a chunk; leading zeros are accepted, because some servers write sizes with a fixed width.
    ///
    /// Leading zeros beyond the sixteenth count as extension bytes.
    private mutating func readSize(
        _ bytes: UnsafeRawBufferPointer,
        _ offset: inout Int,
        _ limit: Int
    ) throws(ResponseParser.Failure) {
        while offset < bytes.count {
            let byte = bytes[offset]
            guard let digit = ASCII.hexadecimalValue(byte) else {
                guard hasDigits else { throw .malformedChunkSize }
                switch byte {
                case UInt8(ascii: "\r"):
                    offset += 1
                    state = .sizeLineFeed
                case UInt8(ascii: ";"), 0x20, 0x09: state = .extensions(ChunkExtensionReader())
                default: throw .malformedChunkSize
                }
                return
            }
            guard size <= Self.largestPrefix else { throw .chunkSizeTooLarge }
            if digit == 0, size == 0 {
                zeroCount += 1
                if zeroCount > Self.widestNumber {
                    extensionBytes += 1
                    guard extensionBytes <= limit else { throw .chunkExtensionsTooLarge }
                }
            }
            hasDigits = true
            size = size << 4 | Int64(digit)
            offset += 1
        }
    }

    /// Skips extensions: "A recipient MUST ignore unrecognized chunk extensions" (section 7.1.1).
    ///
    /// This decoder recognizes no extension.
    private mutating func skipExtensions(
        _ earlier: ChunkExtensionReader,
        _ bytes: UnsafeRawBufferPointer,
        _ offset: inout Int,
        _ limit: Int
    ) throws(ResponseParser.Failure) {
        var reader = earlier
        while offset < bytes.count {
            let byte = bytes[offset]
            offset += 1
            if byte == UInt8(ascii: "\r") {
                guard reader.mayEndHere else { throw .malformedChunkExtension }
                state = .sizeLineFeed
                return
            }
            guard reader.take(byte) else { throw .malformedChunkExtension }
            extensionBytes += 1
            guard extensionBytes <= limit else { throw .chunkExtensionsTooLarge }
        }
        state = .extensions(reader)
    }

    /// Removes the framing and routing fields that a trailer section must not contain (RFC 9110, section 6.5.1).
    ///
    /// Such fields are ignored rather than rejected.
    private static func permitted(_ trailers: HeaderBlock) -> HeaderBlock? {
        guard !trailers.isEmpty else { return nil }
        var trailers = trailers
        for name in ["content-length", "transfer-encoding", "connection", "host", "trailer", "upgrade"] { trailers.remove(name) }
        return trailers.isEmpty ? nil : trailers
    }
}
