// SPDX-License-Identifier: Apache-2.0

extension ResponseParser {
    /// Determines how the content ends and whether the connection may be reused (RFC 9112, sections 6.3 and 9.3).
    mutating func framing(of head: ResponseHead) throws(Failure) -> Framing {
        let headers = head.headers
        let persists =
            !headers.hasToken("close", in: .connection)
            && (head.minorVersion > 0 || headers.hasToken("keep-alive", in: .connection))
        let isTunnel = head.status == 101 || (kind == .connect && head.status / 100 == 2)
        guard !isTunnel else {
            // "A client MUST ignore any Content-Length or Transfer-Encoding header fields received in such a message."
            mayReuseConnection = false
            return kind.mayUpgrade ? .untilClose : .none
        }
        let hasTransferEncoding = headers.contains(.transferEncoding)
        // Transfer-Encoding with Content-Length "might indicate an attempt to perform request smuggling or response splitting".
        mayReuseConnection =
            persists && !(hasTransferEncoding && (headers.contains(.contentLength) || head.minorVersion == 0))
        let hasContent = !kind.isHead && head.status != 204 && head.status != 304
        if hasTransferEncoding, hasContent {
            // "A client that receives an HTTP/1.0 message containing a Transfer-Encoding header field MUST treat the message as if the
            // framing is faulty" (section 6.1).
            guard head.minorVersion >= 1 else { throw .transferEncodingInHTTP10 }
            if try TransferCodings(headers).isChunked { return .chunked }
            // "If … the chunked transfer coding is not the final encoding, the message body length is determined by reading the
            // connection until it is closed by the server" (section 6.3, item 4).
            mayReuseConnection = false
            return .untilClose
        }
        guard hasContent else {
            try checkUnusedLength(headers)
            return .none
        }
        if let length = try Self.contentLength(headers) { return .length(length) }
        mayReuseConnection = false
        return .untilClose
    }

    /// Validates the Content-Length of a response without content, although such a response ends after its header section
    /// "regardless of the header fields present" (RFC 9112, section 6.3, item 1).
    ///
    /// A number that is too large is accepted here. A value that is not a number, or two different numbers, is an error in any
    /// response.
    private func checkUnusedLength(_ headers: HeaderBlock) throws(Failure) {
        do throws(Failure) {
            _ = try Self.contentLength(headers)
        } catch {
            guard error == .contentLengthTooLarge else { throw error }
        }
    }

    /// Returns the length that all Content-Length values agree on, or nil if the field is absent.
    ///
    /// A list of equal values, as some intermediaries create by joining lines, is accepted (RFC 9112, section 6.3, item 5).
    package static func contentLength(_ headers: HeaderBlock) throws(Failure) -> Int64? {
        guard headers.contains(.contentLength) else { return nil }
        var agreed: Int64?
        try headers.bytes.span.bytes.withUnsafeBytes { bytes throws(Failure) in
            for line in headers.lines where line.field == .contentLength { try readLengths(bytes, line.value, &agreed) }
        }
        guard agreed != overflowedLength else { throw .contentLengthTooLarge }
        return agreed
    }

    /// Represents a Content-Length that exceeds `Int64`.
    ///
    /// The text after such a number is still validated.
    private static let overflowedLength = Int64.min

    private static func readLengths(
        _ bytes: UnsafeRawBufferPointer,
        _ value: Range<Int>,
        _ agreed: inout Int64?
    ) throws(Failure) {
        var position = value.lowerBound
        while true {
            while position < value.upperBound, ASCII.isWhitespace(bytes[position]) { position += 1 }
            let length = try readDigits(bytes, &position, value.upperBound)
            while position < value.upperBound, ASCII.isWhitespace(bytes[position]) { position += 1 }
            guard position == value.upperBound || bytes[position] == UInt8(ascii: ",") else { throw .malformedContentLength }
            guard agreed == nil || agreed == length else { throw .differingContentLengths }
            agreed = length
            guard position < value.upperBound else { return }
            position += 1
        }
    }

    private static func readDigits(
        _ bytes: UnsafeRawBufferPointer,
        _ position: inout Int,
        _ end: Int
    ) throws(Failure) -> Int64 {
        let start = position
        var length: Int64 = 0
        while position < end {
            let digit = bytes[position] &- UInt8(ascii: "0")
            guard digit <= 9 else { break }
            position += 1
            guard length != overflowedLength else { continue }
            let (tens, overflow) = length.multipliedReportingOverflow(by: 10)
            let (sum, overflowAgain) = tens.addingReportingOverflow(Int64(digit))
            length = overflow || overflowAgain ? overflowedLength : sum
        }
        guard position > start else { throw .malformedContentLength }
        return length
    }
}
