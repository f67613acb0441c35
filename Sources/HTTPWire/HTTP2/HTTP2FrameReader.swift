// SPDX-License-Identifier: Apache-2.0

/// An incremental parser for the frames that a server sends on an HTTP/2 connection (RFC 9113, sections 4 to 6).
///
/// The parser checks everything that does not depend on the state of streams. The parser never copies content: events contain
/// offsets into the given bytes. Payloads that must be complete are buffered up to ``Limits/maximumFrameSize``, and field blocks up
/// to ``Limits/blockBytes``.
package struct HTTP2FrameReader: Sendable {
    /// Limits on what a peer can make the reader process or keep.
    package struct Limits: Sendable {
        /// The value announced as SETTINGS_MAX_FRAME_SIZE; at least 16,384 (section 4.2).
        package var maximumFrameSize = 16_384
        /// The maximum size of the names and values of one field section, plus 32 bytes for each field: the same limit as for a
        /// head in ``ResponseParser/Limits``.
        package var headerListBytes = 262_144
        /// The maximum number of fields in one section.
        package var headerLines = 5_000
        /// The maximum size of one compressed field block in bytes.
        ///
        /// A block up to this size is decoded even if its section exceeds the limits for sections, so that only its own stream
        /// fails.
        package var blockBytes = 1_048_576
        /// The maximum number of CONTINUATION frames of one field block; the frames may be empty (CVE-2024-27316).
        ///
        /// nghttp2 allows eight. Servers fill their frames, and 64 full frames of 16,384 bytes make up a block of the maximum size.
        package var continuationFrames = 64
        /// The value announced as SETTINGS_HEADER_TABLE_SIZE.
        package var headerTableBytes = 4_096

        package init() {}
    }

    package enum Event: Sendable {
        /// A part of a DATA frame, as offsets into the bytes passed to this call; it may be empty.
        ///
        /// `flowControlled` is the number of bytes that count against both flow-control windows, including the padding and its
        /// length (section 6.1). `endsStream` is only set for the last part of a frame.
        case data(stream: UInt32, Range<Int>, flowControlled: Int, endsStream: Bool)
        /// A HEADERS frame together with its CONTINUATION frames.
        case headers(stream: UInt32, FieldSection, endsStream: Bool)
        case reset(stream: UInt32, HTTP2ErrorCode)
        case settings(HTTP2Settings)
        case settingsAcknowledged
        case ping(UInt64, isAcknowledgement: Bool)
        /// A GOAWAY frame. The debug data is truncated and printable.
        case goAway(lastStream: UInt32, HTTP2ErrorCode, debug: String)
        /// A WINDOW_UPDATE frame; stream 0 stands for the connection.
        case windowUpdate(stream: UInt32, increment: UInt32)
        case pushPromise(stream: UInt32, promised: UInt32)
        /// A frame that has no effect: PRIORITY, or an unknown type (section 5.5). Its payload is skipped as it arrives.
        case ignored(type: UInt8, stream: UInt32)
        /// A stream error. The connection is still usable.
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

    enum State: Sendable {
        /// In or before a frame header.
        case header
        /// In a DATA frame, before the padding length.
        case padLength
        /// In content: the number of missing bytes, and the length of the padding after them.
        case data(missing: Int, padding: Int)
        /// In a payload that is buffered until it is complete.
        case payload
        /// In a payload that is skipped; the value is the number of missing bytes.
        case skipped(Int)
    }

    /// A field block that is continued in CONTINUATION frames.
    struct OpenBlock: Sendable {
        var stream: UInt32
        /// The promised stream of a PUSH_PROMISE frame; zero for a HEADERS frame.
        var promised: UInt32
        var endsStream: Bool
        var frames = 0
    }

    let limits: Limits
    var state = State.header
    var frame = Frame()
    /// The bytes of a header or payload from earlier calls.
    private var pending: [UInt8] = []
    /// Flow-controlled bytes that have not been reported yet.
    private var unreported = 0
    var openBlock: OpenBlock?
    /// The received part of the open block.
    var block: [UInt8] = []
    var decoder: HPACKDecoder
    private var failure: HTTP2Failure?

    /// Whether the peer's first SETTINGS frame has arrived.
    package internal(set) var hasSettings = false

    package init(limits: Limits = Limits()) {
        self.limits = limits
        decoder = HPACKDecoder(
            limits: HPACKDecoder.Limits(listBytes: limits.headerListBytes, lines: limits.headerLines),
            announcedTableSize: limits.headerTableBytes)
    }

    /// Returns the next event in `bytes[offset...]`; `offset` moves past the consumed bytes.
    ///
    /// Returns nil if more bytes are needed; then all bytes were consumed, including partial frames. A thrown error is a connection
    /// error; every later call throws it again.
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
            switch state {
            case .header:
                guard try readHeader(bytes, &offset) else { return nil }
                if let event = try begin(offset) { return event }
            case .padLength:
                guard offset < bytes.count else { return nil }
                let padding = Int(bytes[offset])
                offset &+= 1
                unreported = 1
                // "If the length of the padding is the length of the frame payload or greater" (section 6.1).
                guard padding < frame.length else { throw Self.malformed("the padding of a DATA frame is as long as the frame") }
                state = .data(missing: frame.length &- 1 &- padding, padding: padding)
            case .data(let missing, let padding): return readData(bytes, &offset, missing, padding)
            case .payload:
                guard bytes.count &- offset >= frame.length, pending.isEmpty else {
                    guard gather(bytes, &offset, upTo: frame.length) else { return nil }
                    if let event = try takePending() { return event }
                    continue
                }
                let payload = UnsafeRawBufferPointer(rebasing: bytes[offset..<offset &+ frame.length])
                offset &+= frame.length
                state = .header
                if let event = try take(payload) { return event }
            case .skipped(let missing):
                let count = min(missing, bytes.count &- offset)
                offset &+= count
                guard count == missing else {
                    state = .skipped(missing &- count)
                    return nil
                }
                state = .header
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
        let header = detachBuffer()
        try header.span.bytes.withUnsafeBytes { header throws(HTTP2Failure) in try parseHeader(header) }
        reuseBuffer(header)
        return true
    }

    /// Collects bytes and returns whether `wanted` bytes are pending.
    private mutating func gather(_ bytes: UnsafeRawBufferPointer, _ offset: inout Int, upTo wanted: Int) -> Bool {
        let count = min(wanted - pending.count, bytes.count - offset)
        pending.append(contentsOf: UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + count]))
        offset += count
        return pending.count == wanted
    }

    private mutating func takePending() throws(HTTP2Failure) -> Event? {
        let payload = detachBuffer()
        state = .header
        let event = try payload.span.bytes.withUnsafeBytes { payload throws(HTTP2Failure) in try take(payload) }
        reuseBuffer(payload)
        return event
    }

    private mutating func detachBuffer() -> [UInt8] {
        let bytes = pending
        pending = []
        return bytes
    }

    /// Keeps the buffer's allocation for the next frame.
    private mutating func reuseBuffer(_ bytes: consuming [UInt8]) {
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
        unreported &+= count
        let isWhole = count == missing && paddingCount == padding
        state = isWhole ? .header : .data(missing: missing &- count, padding: padding &- paddingCount)
        let told = isWhole ? unreported &+ paddingCount : unreported
        // Padding without content is reported with the end of the frame.
        guard isWhole || count > 0 else {
            unreported &+= paddingCount
            return nil
        }
        unreported = isWhole ? 0 : paddingCount
        return .data(
            stream: frame.stream, range, flowControlled: told, endsStream: isWhole && frame.has(HTTP2Frames.Flag.endStream))
    }

    static func malformed(_ message: String) -> HTTP2Failure { HTTP2Failure(code: .protocolError, message: message) }

    static func wrongSize(_ message: String) -> HTTP2Failure { HTTP2Failure(code: .frameSizeError, message: message) }
}
