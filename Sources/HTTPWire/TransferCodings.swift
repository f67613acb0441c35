// SPDX-License-Identifier: Apache-2.0

/// The transfer codings of a response according to `Transfer-Encoding` (RFC 9112, section 7).
package struct TransferCodings: Sendable, Hashable {
    /// A compression that is a property of the message, not of the representation (RFC 9112, section 7.2).
    package enum Compression: Sendable, Hashable {
        case gzip
        case deflate
    }

    /// The compressions in the order in which they were applied.
    package private(set) var compressions: [Compression] = []
    /// Whether `chunked` was applied last.
    ///
    /// If so, the chunks determine the end of the content; otherwise the content lasts until the connection closes (section 6.3,
    /// item 4).
    package private(set) var isChunked = false

    private var isEmpty = true

    /// Reads all `Transfer-Encoding` lines as one list.
    ///
    /// Throws for an unknown coding, and for parameters, because none of the known codings defines any (sections 7.1 and 7.2). Such
    /// content cannot be delivered: unlike a content coding, a transfer coding cannot be left for the app to decode.
    package init(_ headers: HeaderBlock) throws(ResponseParser.Failure) {
        let wasRead = try headers.bytes.span.bytes.withUnsafeBytes { bytes throws(ResponseParser.Failure) in
            for line in headers.lines where line.field == .transferEncoding { try read(bytes, line.value) }
            return !isEmpty
        }
        guard wasRead else { throw .unknownTransferEncoding }
    }

    /// Skips empty list members (RFC 9110, section 5.6.1.2).
    private mutating func read(_ bytes: UnsafeRawBufferPointer, _ value: Range<Int>) throws(ResponseParser.Failure) {
        var start = value.lowerBound
        while start < value.upperBound {
            var next = start
            while next < value.upperBound, bytes[next] != UInt8(ascii: ",") { next += 1 }
            var end = next
            while start < end, ASCII.isWhitespace(bytes[start]) { start += 1 }
            while end > start, ASCII.isWhitespace(bytes[end - 1]) { end -= 1 }
            if end > start { try take(bytes, start..<end) }
            start = next + 1
        }
    }

    private mutating func take(_ bytes: UnsafeRawBufferPointer, _ name: Range<Int>) throws(ResponseParser.Failure) {
        // "A sender MUST NOT apply the chunked transfer coding more than once", nor another coding after it (sections 6.1 and
        // 7.1).
        guard !isChunked else { throw .chunkedIsNotLast }
        isEmpty = false
        func isSpelled(_ word: StaticString) -> Bool {
            name.count == word.utf8CodeUnitCount && ASCII.matches(bytes, name.lowerBound, word)
        }
        if isSpelled("chunked") {
            isChunked = true
        } else if isSpelled("gzip") || isSpelled("x-gzip") {
            compressions.append(.gzip)
        } else if isSpelled("deflate") {
            compressions.append(.deflate)
        } else if !isSpelled("identity") {
            // RFC 2616 defined `identity`, which does nothing. Old servers still send it.
            throw .unknownTransferEncoding
        }
    }
}
