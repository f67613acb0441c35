//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// Reads what a server sends on an HTTP/2 connection (RFC 9113, sections 4 to 6), as it arrives.
///
/// It holds the peer to what can be known without the state of streams. Content is never copied: events name offsets into the bytes given.
/// Of frames whose payload has to be whole, at most ``Limits/maximumFrameSize`` is kept; of field blocks,
/// ``Limits/blockBytes``.
package struct HTTP2FrameReader: Sendable {
    /// How much a peer may make us read or keep.
    package struct Limits: Sendable {
        /// What we announce as SETTINGS_MAX_FRAME_SIZE; no less than 16,384 (section 4.2).
        package var maximumFrameSize = 16_384
        /// Names and values of one field section, and 32 for each: the same as a head may have in ``ResponseParser/Limits``.
        package var headerListBytes = 262_144
        /// Fields of one section.
        package var headerLines = 5_000
        /// One field block, compressed.
        ///
        /// What is larger than a section may be is read all the same, up to here, so that it fails its own stream and no other.
        package var blockBytes = 1_048_576
        /// CONTINUATION frames of one field block, which may be empty (CVE-2024-27316).
        ///
        /// nghttp2 stops at eight; servers fill their frames, of which 16 make a block at its limit.
        package var continuationFrames = 64
        /// What we announce as SETTINGS_HEADER_TABLE_SIZE.
        package var headerTableBytes = 4_096

        package init() {}
    }

    package enum Event: Sendable {
        /// A piece of a DATA frame: offsets into the bytes given to this call, which may be empty.
        ///
        /// So many bytes of both windows it takes, padding and its length included (section 6.1). The stream ends only with the last piece
        /// of a frame.
        case data(stream: UInt32, Range<Int>, flowControlled: Int, endsStream: Bool)
        /// A HEADERS frame with its CONTINUATION frames.
        case headers(stream: UInt32, HTTP2FieldSection, endsStream: Bool)
        case reset(stream: UInt32, HTTP2ErrorCode)
        case settings(HTTP2Settings)
        case settingsAcknowledged
        case ping(UInt64, isAcknowledgement: Bool)
        /// Debug data is cut, and printable.
        case goAway(lastStream: UInt32, HTTP2ErrorCode, debug: String)
        /// Stream 0 is the connection.
        case windowUpdate(stream: UInt32, increment: UInt32)
        case pushPromise(stream: UInt32, promised: UInt32)
        /// A frame of no consequence: PRIORITY, or of a type that is not known (section 5.5). Its payload is skipped as it arrives.
        case ignored(type: UInt8, stream: UInt32)
        /// An error of one stream; reading goes on.
        case malformed(HTTP2Failure)
    }

    struct Frame: Sendable {
        var length = 0
        var type: UInt8 = 0
        var flags: UInt8 = 0
        var stream: UInt32 = 0

        @inline(__always)
        func has(_ flag: UInt8) -> Bool { flags & flag != 0 }
    }

    enum Place: Sendable {
        /// In or before a frame's header.
        case header
        /// In a DATA frame: before the length of the padding.
        case padLength
        /// In content; so much is missing, and so much padding follows.
        case data(missing: Int, padding: Int)
        /// In a payload that is needed whole.
        case payload
        /// In a payload that is not needed; so much is missing.
        case skipped(Int)
    }

    /// A field block that CONTINUATION frames go on with.
    struct OpenBlock: Sendable {
        var stream: UInt32
        /// Zero for HEADERS.
        var promised: UInt32
        var endsStream: Bool
        var frames = 0
    }

    let limits: Limits
    var place = Place.header
    var frame = Frame()
    /// What came of a header or payload in earlier calls.
    private var pending: [UInt8] = []
    /// Bytes that count against the windows and were not told yet.
    private var untold = 0
    var openBlock: OpenBlock?
    /// What came of the open block.
    var block: [UInt8] = []
    var decoder: HPACKDecoder
    private var failure: HTTP2Failure?

    /// Whether the peer's first SETTINGS has come.
    package internal(set) var hasSettings = false

    package init(limits: Limits = Limits()) {
        self.limits = limits
        decoder = HPACKDecoder(
            limits: HPACKDecoder.Limits(listBytes: limits.headerListBytes, lines: limits.headerLines),
            announcedTableSize: limits.headerTableBytes)
    }

    /// The next event found in `bytes[offset...]`; `offset` moves past what was taken in.
    ///
    /// Nil when more bytes are needed: then everything was taken in, partial frames included. What it throws is an error of the connection,
    /// and it throws the same from then on.
    package mutating func next(_ bytes: UnsafeRawBufferPointer, _ offset: inout Int) throws(HTTP2Failure) -> Event? {
        if let failure { throw failure }
        do throws(HTTP2Failure) {
            return try advance(bytes, &offset)
        } catch {
            failure = error
            pending = []
            block = []
            throw error
        }
    }

    // MARK: Frames

    private mutating func advance(_ bytes: UnsafeRawBufferPointer, _ offset: inout Int) throws(HTTP2Failure) -> Event? {
        while true {
            switch place {
            case .header:
                guard try readHeader(bytes, &offset) else { return nil }
                if let event = try begin(offset) { return event }
            case .padLength:
                guard offset < bytes.count else { return nil }
                let padding = Int(bytes[offset])
                offset &+= 1
                untold = 1
                // "If the length of the padding is the length of the frame payload or greater" (section 6.1).
                guard padding < frame.length else { throw Self.malformed("the padding of a DATA frame is as long as the frame") }
                place = .data(missing: frame.length &- 1 &- padding, padding: padding)
            case .data(let missing, let padding): return readData(bytes, &offset, missing, padding)
            case .payload:
                guard bytes.count &- offset >= frame.length, pending.isEmpty else {
                    guard gather(bytes, &offset, upTo: frame.length) else { return nil }
                    if let event = try takePending() { return event }
                    continue
                }
                let payload = UnsafeRawBufferPointer(rebasing: bytes[offset..<offset &+ frame.length])
                offset &+= frame.length
                place = .header
                if let event = try take(payload) { return event }
            case .skipped(let missing):
                let count = min(missing, bytes.count &- offset)
                offset &+= count
                guard count == missing else {
                    place = .skipped(missing &- count)
                    return nil
                }
                place = .header
            }
        }
    }

    @inline(__always)
    private mutating func readHeader(_ bytes: UnsafeRawBufferPointer, _ offset: inout Int) throws(HTTP2Failure) -> Bool {
        if pending.isEmpty, bytes.count &- offset >= HTTP2Frames.headerLength {
            try parseHeader(UnsafeRawBufferPointer(rebasing: bytes[offset..<offset &+ HTTP2Frames.headerLength]))
            offset &+= HTTP2Frames.headerLength
            return true
        }
        guard gather(bytes, &offset, upTo: HTTP2Frames.headerLength) else { return false }
        let header = takeOver()
        try header.span.bytes.withUnsafeBytes { header throws(HTTP2Failure) in try parseHeader(header) }
        giveBack(header)
        return true
    }

    /// Whether so many bytes are pending.
    private mutating func gather(_ bytes: UnsafeRawBufferPointer, _ offset: inout Int, upTo wanted: Int) -> Bool {
        let count = min(wanted - pending.count, bytes.count - offset)
        pending.append(contentsOf: UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + count]))
        offset += count
        return pending.count == wanted
    }

    private mutating func takePending() throws(HTTP2Failure) -> Event? {
        let payload = takeOver()
        place = .header
        let event = try payload.span.bytes.withUnsafeBytes { payload throws(HTTP2Failure) in try take(payload) }
        giveBack(payload)
        return event
    }

    private mutating func takeOver() -> [UInt8] {
        let bytes = pending
        pending = []
        return bytes
    }

    /// Keeps the memory for the next frame.
    private mutating func giveBack(_ bytes: consuming [UInt8]) {
        bytes.removeAll(keepingCapacity: true)
        pending = bytes
    }

    // MARK: Content

    private mutating func readData(
        _ bytes: UnsafeRawBufferPointer,
        _ offset: inout Int,
        _ missing: Int,
        _ padding: Int
    ) -> Event? {
        let count = min(missing, bytes.count &- offset)
        let range = offset..<offset &+ count
        offset &+= count
        let paddingCount = count == missing ? min(padding, bytes.count &- offset) : 0
        offset &+= paddingCount
        untold &+= count
        let isWhole = count == missing && paddingCount == padding
        place = isWhole ? .header : .data(missing: missing &- count, padding: padding &- paddingCount)
        let told = isWhole ? untold &+ paddingCount : untold
        // Padding is told with the end of the frame, however it comes.
        guard isWhole || count > 0 else {
            untold &+= paddingCount
            return nil
        }
        untold = isWhole ? 0 : paddingCount
        return .data(
            stream: frame.stream, range, flowControlled: told, endsStream: isWhole && frame.has(HTTP2Frames.Flag.endStream))
    }

    static func malformed(_ message: String) -> HTTP2Failure { HTTP2Failure(code: .protocolError, message: message) }

    static func wrongSize(_ message: String) -> HTTP2Failure { HTTP2Failure(code: .frameSizeError, message: message) }
}
