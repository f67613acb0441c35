//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// Reads the chunked coding (RFC 9112, section 7.1), byte by byte between chunks and not at all within them.
///
/// As strict as the strict mode of llhttp: sizes end in CRLF, data is followed by CRLF, and nothing else will do. White space after a
/// size is let pass, since servers that pad their sizes exist; it counts as an extension.
struct ChunkedDecoder: Sendable {
    enum Found {
        case incomplete
        /// So many bytes from the offset on are content; the caller moves the offset.
        case data(Int)
        case end(HeaderBlock?)
    }

    private enum State {
        case size
        /// In the extensions of a chunk, which are not looked into.
        case extensions
        /// After the CR of a size line.
        case sizeLineFeed
        case data(Int64)
        /// After the data of a chunk.
        case dataCarriageReturn
        case dataLineFeed
        case trailers
    }

    /// Fifteen digits are 2^60 - 1, more than anybody has, and cannot overflow.
    private static let digitLimit = 15

    private var state = State.size
    private var size: Int64 = 0
    private var digits = 0
    private var extensionBytes = 0
    private var trailers = FieldSectionReader()

    mutating func next(
        _ bytes: UnsafeRawBufferPointer,
        _ offset: inout Int,
        _ limits: ResponseParser.Limits
    ) throws(ResponseParser.Failure) -> Found {
        while offset < bytes.count {
            switch state {
            case .size: try readSize(bytes, &offset)
            case .extensions: try skipExtensions(bytes, &offset, limits.chunkExtensionBytes)
            case .sizeLineFeed:
                guard bytes[offset] == UInt8(ascii: "\n") else { throw .malformedChunkSize }
                offset += 1
                state = size == 0 ? .trailers : .data(size)
                size = 0
                digits = 0
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

    private mutating func readSize(_ bytes: UnsafeRawBufferPointer, _ offset: inout Int) throws(ResponseParser.Failure) {
        while offset < bytes.count {
            let byte = bytes[offset]
            guard let digit = ASCII.hexadecimalValue(byte) else {
                guard digits > 0 else { throw .malformedChunkSize }
                switch byte {
                case UInt8(ascii: "\r"):
                    offset += 1
                    state = .sizeLineFeed
                case UInt8(ascii: ";"), 0x20, 0x09: state = .extensions
                default: throw .malformedChunkSize
                }
                return
            }
            digits += 1
            guard digits <= Self.digitLimit else { throw .chunkSizeTooLarge }
            size = size << 4 | Int64(digit)
            offset += 1
        }
    }

    private mutating func skipExtensions(
        _ bytes: UnsafeRawBufferPointer,
        _ offset: inout Int,
        _ limit: Int
    ) throws(ResponseParser.Failure) {
        while offset < bytes.count {
            let byte = bytes[offset]
            offset += 1
            switch byte {
            case UInt8(ascii: "\r"):
                state = .sizeLineFeed
                return
            case UInt8(ascii: "\n"), 0: throw .malformedChunkExtension
            default:
                extensionBytes += 1
                guard extensionBytes <= limit else { throw .chunkExtensionsTooLarge }
            }
        }
    }

    /// Drops the fields for framing and routing, which a trailer section must not carry (RFC 9110, section 6.5.1).
    ///
    /// They are ignored, not refused.
    private static func permitted(_ trailers: HeaderBlock) -> HeaderBlock? {
        guard !trailers.isEmpty else { return nil }
        var trailers = trailers
        for name in ["content-length", "transfer-encoding", "connection", "host", "trailer", "upgrade"] { trailers.remove(name) }
        return trailers.isEmpty ? nil : trailers
    }
}
