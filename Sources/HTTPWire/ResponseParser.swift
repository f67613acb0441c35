//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// Reads HTTP/1 responses from the bytes of one connection, strictly (RFC 9112), and can stop and go on at every byte.
///
/// It does no I/O and keeps no body: the caller hands it what arrived and pulls events until there are none.
///
///     parser.begin(.other)
///     var offset = 0
///     while let event = try parser.next(bytes, &offset) { … }
///
/// What a failure means does not depend on how the bytes were cut: the same bytes give the same events and the same failure. After a
/// failure nothing can be trusted any more; every later call throws it again until ``begin(_:)``.
package struct ResponseParser: ~Copyable, Sendable {
    /// How much a peer may make us read or keep that is not content.
    package struct Limits: Sendable {
        /// One status line with its header section, empty lines before it included.
        ///
        /// Chromium stops at 256 KiB, curl at 300 KiB.
        package var headerBytes = 262_144
        /// Field lines of one header or trailer section.
        package var headerLines = 5_000
        /// Everything between chunk sizes and their line ends, and zeros before the sizes beyond sixteen digits, summed over one message (RFC 9112, section 7.1.1: "a server
        /// ought to limit the total length of chunk extensions received in a request to an amount reasonable for the services
        /// provided"; a client no less).
        package var chunkExtensionBytes = 65_536
        /// One trailer section.
        package var trailerBytes = 65_536

        package init() {}
    }

    /// What was asked, as far as it decides whether the response has content (RFC 9112, section 6.3).
    package enum RequestKind: Sendable {
        case head, connect, other
        /// Asks to switch protocols (RFC 9110, section 7.8): a 101 is the final response then, and all bytes behind it are content.
        case upgrade
        /// The same by a HEAD, whose response has no content where nothing is switched.
        case upgradeByHead

        var isHead: Bool { self == .head || self == .upgradeByHead }
        var mayUpgrade: Bool { self == .upgrade || self == .upgradeByHead }
    }

    package enum Event: Sendable {
        /// A 1xx response; another one follows, except after a 101 that was not asked for, which ends the message: the bytes after it
        /// are left alone.
        case informational(ResponseHead)
        case head(ResponseHead, framing: Framing)
        /// Content: offsets into the bytes given to this call; never empty.
        case body(Range<Int>)
        /// The message is complete; the parser is idle. Trailers that are absent or empty are nil.
        case end(trailers: HeaderBlock?)
    }

    /// How the end of the content is known (RFC 9112, section 6.3).
    package enum Framing: Sendable, Hashable {
        case none
        case length(Int64)
        case chunked
        case untilClose
    }

    enum Phase: Sendable {
        /// No response is expected. Bytes are left alone.
        case idle
        /// In or before a status line.
        case statusLine
        /// In the header section.
        case fields
        /// In content of known length; so much is missing.
        case sized(Int64)
        case untilClose
        case chunked
        /// All was read; the end was not told yet.
        case ending
        case failed(Failure)
    }

    let limits: Limits
    var kind = RequestKind.other
    var phase = Phase.idle
    var statusLine = StatusLineReader()
    var fields = FieldSectionReader()
    var chunks = ChunkedDecoder()
    /// Bytes of the heads before the one being read.
    private var earlierHeadBytes: Int64 = 0

    /// Whether no response is expected or in progress.
    package var isIdle: Bool {
        if case .idle = phase { true } else { false }
    }

    /// After the end: whether the connection may carry another request (RFC 9112, section 9.3).
    ///
    /// Not known here: whether the peer sent more than the response, as with content after a 204. The caller sees that as bytes
    /// left over while ``isIdle``.
    package internal(set) var mayReuseConnection = false

    /// Content received since ``begin(_:)``, without chunk sizes.
    package private(set) var bodyBytesReceived: Int64 = 0

    /// Bytes of status lines and header sections received since ``begin(_:)``, informational responses included, trailers not.
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

    /// A request was sent: its response is expected.
    ///
    /// Whatever was in progress is forgotten.
    package mutating func begin(_ kind: RequestKind) {
        self.kind = kind
        mayReuseConnection = false
        earlierHeadBytes = 0
        bodyBytesReceived = 0
        expectHead()
    }

    /// The next event found in `bytes[offset...]`; `offset` moves past what was taken in.
    ///
    /// Nil when more bytes are needed: then everything was taken in, partial heads included. Nil also while ``isIdle``: then nothing
    /// was touched, and bytes left over are none of this response's.
    package mutating func next(_ bytes: UnsafeRawBufferPointer, _ offset: inout Int) throws(Failure) -> Event? {
        do throws(Failure) {
            return try advance(bytes, &offset)
        } catch {
            phase = .failed(error)
            mayReuseConnection = false
            throw error
        }
    }

    /// Content of known length went past the parser: counts it as received.
    ///
    /// More than is missing counts as all.
    package mutating func skip(_ count: Int64) {
        guard case .sized(let missing) = phase, count > 0 else { return }
        bodyBytesReceived += min(count, missing)
        phase = count >= missing ? .ending : .sized(missing - count)
    }

    /// The peer closed: ends content that lasts until then, fails what is incomplete, and is nothing to an idle parser.
    ///
    /// Where it is broken, the connection did not end but broke, as by a reset. Content that lasts until the close is "considered complete
    /// unless an error was indicated by the underlying connection" (RFC 9112, section 8).
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
        // "A client that receives a response with an invalid status code SHOULD process the response as if it had a 5xx (Server Error)
        // status code" (RFC 9110, section 15): below 100 it is no less final than above 599.
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
