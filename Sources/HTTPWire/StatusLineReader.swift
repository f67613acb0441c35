// SPDX-License-Identifier: Apache-2.0

/// Reads a status line (RFC 9112, section 4), skipping a few empty lines that old servers send before it.
struct StatusLineReader: Sendable {
    private typealias Failure = ResponseParser.Failure

    /// The maximum number of empty lines before a status line.
    ///
    /// RFC 9112, section 2.2, asks servers to ignore one empty line. A client sees empty lines if a server ends the content of the
    /// previous response with a CRLF that its Content-Length does not include.
    private static let emptyLineLimit = 8

    private(set) var minorVersion = 1
    private(set) var status = 0
    private(set) var reason = ""
    /// The number of bytes consumed, including empty lines.
    private(set) var received = 0

    /// The beginning of a line that is still incomplete.
    private var pending: [UInt8] = []
    private var emptyLines = 0

    /// Whether no byte of the status line itself has arrived.
    var isEmpty: Bool { received == 0 || (pending.isEmpty && emptyLines > 0) }

    mutating func reset() {
        received = 0
        emptyLines = 0
        if !pending.isEmpty { pending = [] }
    }

    /// Reads bytes of the line and returns whether the line is complete; `offset` moves past the consumed bytes.
    mutating func read(_ bytes: UnsafeRawBufferPointer, _ offset: inout Int, limit: Int) throws(ResponseParser.Failure) -> Bool {
        while offset < bytes.count {
            let start = offset
            let lineFeed = ByteScan.firstLineFeed(bytes, from: start, to: bytes.count)
            let isComplete = lineFeed < bytes.count
            let end = isComplete ? lineFeed + 1 : lineFeed
            offset = end
            received += end - start
            if pending.isEmpty, isComplete {
                if try parse(bytes, start, end, limit) { return true }
                continue
            }
            pending.append(contentsOf: UnsafeRawBufferPointer(rebasing: bytes[start..<end]))
            guard isComplete else {
                try pending.span.bytes.withUnsafeBytes { line throws(Failure) in try Self.checkStart(line, 0, line.count) }
                guard received <= limit else { throw .headTooLarge }
                return false
            }
            let line = pending
            pending = []
            if try line.span.bytes.withUnsafeBytes({ line throws(Failure) in try parse(line, 0, line.count, limit) }) {
                return true
            }
        }
        return false
    }

    /// Rejects a line at the first byte that cannot belong to a status line, so that a peer that speaks another protocol does not
    /// keep the caller waiting.
    private static func checkStart(_ line: UnsafeRawBufferPointer, _ start: Int, _ end: Int) throws(ResponseParser.Failure) {
        switch line[start] {
        case UInt8(ascii: "\n"): return
        case UInt8(ascii: "\r"):
            guard end - start < 2 || line[start + 1] == UInt8(ascii: "\n") else { throw .bareCarriageReturn }
        default:
            let expected: StaticString = "HTTP/1."
            for index in 0..<min(expected.utf8CodeUnitCount, end - start) where line[start + index] != expected.utf8Start[index] {
                throw index < 5 ? .notHTTP : .unsupportedVersion
            }
        }
    }

    /// Parses a complete line, including its LF.
    ///
    /// Returns true for a status line and false for an empty line to skip.
    private mutating func parse(
        _ line: UnsafeRawBufferPointer,
        _ start: Int,
        _ lineEnd: Int,
        _ limit: Int
    ) throws(ResponseParser.Failure) -> Bool {
        try Self.checkStart(line, start, lineEnd)
        guard received <= limit else { throw .headTooLarge }
        var end = lineEnd - 1
        if end > start, line[end - 1] == UInt8(ascii: "\r") { end -= 1 }
        guard end > start else {
            emptyLines += 1
            guard emptyLines <= Self.emptyLineLimit else { throw .tooManyEmptyLines }
            return false
        }
        try Self.checkControls(line, start, end)
        // "HTTP/1.1 200", then either nothing or a space and a reason. Some servers omit the second space together with the reason.
        guard end - start >= 12, line[start + 8] == 0x20 else { throw .malformedStatusLine }
        let minor = line[start + 7] &- UInt8(ascii: "0")
        let hundreds = line[start + 9] &- UInt8(ascii: "0")
        let tens = line[start + 10] &- UInt8(ascii: "0")
        let ones = line[start + 11] &- UInt8(ascii: "0")
        guard minor <= 9, hundreds <= 9, tens <= 9, ones <= 9 else { throw .malformedStatusLine }
        // A higher minor version is processed as HTTP/1.1, the highest known version (RFC 9110, section 2.5).
        minorVersion = Int(min(minor, 1))
        status = Int(hundreds) * 100 + Int(tens) * 10 + Int(ones)
        reason = ""
        guard end - start > 12 else { return true }
        guard line[start + 12] == 0x20 else { throw .malformedStatusLine }
        reason = Self.reason(UnsafeRawBufferPointer(rebasing: line[start + 13..<end]))
        return true
    }

    private static func checkControls(
        _ line: UnsafeRawBufferPointer,
        _ start: Int,
        _ end: Int
    ) throws(ResponseParser.Failure) {
        var position = ByteScan.firstControl(line, from: start, to: end)
        while position < end {
            switch line[position] {
            case 0: throw .nulByte
            case UInt8(ascii: "\r"): throw .bareCarriageReturn
            default: position = ByteScan.firstControl(line, from: position + 1, to: end)
            }
        }
    }

    private static func reason(_ bytes: UnsafeRawBufferPointer) -> String {
        if bytes.count == 2, bytes[0] == UInt8(ascii: "O"), bytes[1] == UInt8(ascii: "K") { return "OK" }
        if let text = String(validating: bytes, as: UTF8.self) { return text }
        return String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
    }
}
