// SPDX-License-Identifier: Apache-2.0

/// A strict, incremental parser for the HTTP/1 responses of one connection (RFC 9112).
///
/// The input may be split at any byte.
///
/// The parser does no I/O and keeps no content: the caller passes the received bytes and pulls events until it gets nil.
///
///     parser.begin(.other)
///     var offset = 0
///     while let event = try parser.next(bytes, &offset) { … }
///
/// The events and the failure depend only on the bytes, not on how they were split. After a failure, every later call throws the
/// same failure until ``begin(_:)`` is called.
package struct ResponseParser: ~Copyable, Sendable {
    /// Limits on what a peer can make the parser read or keep, apart from content.
    package struct Limits: Sendable {
        /// The maximum size of one status line and its header section in bytes, including empty lines before the status line.
        ///
        /// Chromium's limit is 256 KiB, curl's is 300 KiB.
        package var headerBytes = 262_144
        /// The maximum number of field lines in one header or trailer section.
        package var headerLines = 5_000
        /// The maximum total size of chunk extensions and padding in one message, in bytes.
        ///
        /// This is the text between the chunk sizes and their line ends, and leading zeros of the sizes beyond sixteen digits. RFC
        /// 9112, section 7.1.1: "a server ought to limit the total length of chunk extensions received in a request to an amount
        /// reasonable for the services provided".
        ///
        /// The advice applies to a client as well.
        package var chunkExtensionBytes = 65_536
        /// The maximum size of one trailer section in bytes.
        package var trailerBytes = 65_536

        package init() {}
    }

    /// The kind of request; together with the status, it determines whether the response has content (RFC 9112, section 6.3).
    package enum RequestKind: Sendable {
        case head, connect, other
        /// Requests a protocol switch (RFC 9110, section 7.8): a 101 is then the final response, and all bytes after it are
        /// content.
        case upgrade
        /// Requests a protocol switch with HEAD: the response has no content unless the protocol is switched.
        case upgradeByHead

        var isHead: Bool { self == .head || self == .upgradeByHead }
        var mayUpgrade: Bool { self == .upgrade || self == .upgradeByHead }
    }

    package enum Event: Sendable {
        /// A 1xx response. Another response follows, except after a 101 that was not requested: such a 101 ends the message, and
        /// the bytes after it are not consumed.
        case informational(ResponseHead)
        case head(ResponseHead, framing: Framing)
        /// Content, as offsets into the bytes passed to this call; never empty.
        case body(Range<Int>)
        /// The message is complete and the parser is idle. Absent or empty trailers are nil.
        case end(trailers: HeaderBlock?)
    }

    /// How the end of the content is determined (RFC 9112, section 6.3).
    package enum Framing: Sendable, Hashable {
        case none
        case length(Int64)
        case chunked
        case untilClose
    }

    enum Phase: Sendable {
        /// No response is expected. Bytes are not consumed.
        case idle
        /// In or before a status line.
        case statusLine
        /// In the header section.
        case fields
        /// In content of known length; the value is the number of missing bytes.
        case sized(Int64)
        case untilClose
        case chunked
        /// Everything has been read; the end event has not been returned yet.
        case ending
        case failed(Failure)
    }

    let limits: Limits
    var kind = RequestKind.other
    var phase = Phase.idle
    var statusLine = StatusLineReader()
    var fields = FieldSectionReader()
    var chunks = ChunkedDecoder()
    /// The size of the heads before the current head.
    private var earlierHeadBytes: Int64 = 0

    /// Whether no response is expected or in progress.
    package var isIdle: Bool {
        if case .idle = phase { true } else { false }
    }

    /// Whether the connection may carry another request (RFC 9112, section 9.3).
    ///
    /// Valid after the end of a message.
    ///
    /// The parser does not know whether the peer sent more than the response, such as content after a 204. The caller can tell
    /// because bytes are left over while the parser ``isIdle``.
    package internal(set) var mayReuseConnection = false

    /// The number of content bytes received since ``begin(_:)``, without the chunk framing.
    package private(set) var bodyBytesReceived: Int64 = 0

    /// The size of the status lines and header sections received since ``begin(_:)``, including informational responses but not
    /// trailers.
    package var headerBytesReceived: Int64 {
        switch phase {
        case .statusLine, .fields: earlierHeadBytes + Int64(headBytes)
        default: earlierHeadBytes
        }
    }

    private var headBytes: Int { statusLine.received + fields.received }

    package init(limits: Limits = Limits()) {
        self.limits = limits
    }

    /// Starts reading the response to a request.
    ///
    /// Discards any message in progress.
    package mutating func begin(_ kind: RequestKind) {
        self.kind = kind
        mayReuseConnection = false
        earlierHeadBytes = 0
        bodyBytesReceived = 0
        expectHead()
    }

    /// Returns the next event in `bytes[offset...]`; `offset` moves past the consumed bytes.
    ///
    /// Returns nil if more bytes are needed; then all bytes were consumed, including partial heads. Also returns nil while
    /// ``isIdle``; then no bytes were consumed, and the remaining bytes do not belong to this response.
    package mutating func next(_ bytes: UnsafeRawBufferPointer, _ offset: inout Int) throws(Failure) -> Event? {
        do throws(Failure) {
            return try advance(bytes, &offset)
        } catch {
            phase = .failed(error)
            mayReuseConnection = false
            throw error
        }
    }

    /// Counts received content that the caller did not pass to the parser.
    ///
    /// This is only possible for content of known length. A count above the number of missing bytes is clamped to that number.
    package mutating func skip(_ count: Int64) {
        guard case .sized(let missing) = phase, count > 0 else { return }
        bodyBytesReceived += min(count, missing)
        phase = count >= missing ? .ending : .sized(missing - count)
    }

    /// Handles the end of the connection: ends close-delimited content, throws if the message is incomplete, and returns nil if the
    /// parser is idle.
    ///
    /// `isBroken` means that the connection failed instead of ending, for example with a reset. Close-delimited content is
    /// "considered complete unless an error was indicated by the underlying connection" (RFC 9112, section 8).
    package mutating func finish(isBroken: Bool = false) throws(Failure) -> Event? {
        let failure: Failure
        switch phase {
        case .idle: return nil
        case .untilClose where isBroken: failure = .brokenInBody
        case .ending, .untilClose:
            phase = .idle
            mayReuseConnection = false
            return .end(trailers: nil)
        case .statusLine: failure = statusLine.isEmpty ? .closedBeforeResponse : .closedInHead
        case .fields: failure = .closedInHead
        case .sized: failure = .closedInBody
        case .chunked: failure = .closedInChunkedBody
        case .failed(let earlier): failure = earlier
        }
        phase = .failed(failure)
        mayReuseConnection = false
        throw failure
    }

    // MARK: Phases

    private mutating func advance(_ bytes: UnsafeRawBufferPointer, _ offset: inout Int) throws(Failure) -> Event? {
        switch phase {
        case .idle: return nil
        case .statusLine:
            guard try statusLine.read(bytes, &offset, limit: limits.headerBytes) else { return nil }
            phase = .fields
            return try readFields(bytes, &offset)
        case .fields: return try readFields(bytes, &offset)
        case .sized(let missing):
            let count = Int(truncatingIfNeeded: min(missing, Int64(bytes.count - offset)))
            guard count > 0 else { return nil }
            phase = Int64(count) == missing ? .ending : .sized(missing - Int64(count))
            return content(count, &offset)
        case .untilClose:
            guard offset < bytes.count else { return nil }
            return content(bytes.count - offset, &offset)
        case .chunked:
            switch try chunks.next(bytes, &offset, limits) {
            case .incomplete: return nil
            case .data(let count): return content(count, &offset)
            case .end(let trailers):
                phase = .idle
                return .end(trailers: trailers)
            }
        case .ending:
            phase = .idle
            return .end(trailers: nil)
        case .failed(let failure): throw failure
        }
    }

    private mutating func readFields(_ bytes: UnsafeRawBufferPointer, _ offset: inout Int) throws(Failure) -> Event? {
        let allowance = limits.headerBytes - statusLine.received
        guard let headers = try fields.read(bytes, &offset, byteLimit: allowance, lineLimit: limits.headerLines) else {
            return nil
        }
        earlierHeadBytes += Int64(headBytes)
        let head = ResponseHead(
            minorVersion: statusLine.minorVersion,
            status: statusLine.status,
            reason: statusLine.reason,
            headers: headers
        )
        // "A client that receives a response with an invalid status code SHOULD process the response as if it had a 5xx (Server
        // Error) status code" (RFC 9110, section 15). Codes below 100 are therefore final, like codes above 599.
        guard !(100...199).contains(head.status) || head.status == 101 else {
            expectHead()
            return .informational(head)
        }
        let framing = try framing(of: head)
        switch framing {
        case .none, .length(0): phase = .ending
        case .length(let length): phase = .sized(length)
        case .untilClose: phase = .untilClose
        case .chunked:
            chunks = ChunkedDecoder()
            phase = .chunked
        }
        return head.status == 101 && !kind.mayUpgrade ? .informational(head) : .head(head, framing: framing)
    }

    private mutating func content(_ count: Int, _ offset: inout Int) -> Event {
        let range = offset..<offset + count
        offset += count
        bodyBytesReceived += Int64(count)
        return .body(range)
    }

    private mutating func expectHead() {
        phase = .statusLine
        statusLine.reset()
        fields.reset()
    }
}
