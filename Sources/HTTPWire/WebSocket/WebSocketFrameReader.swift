// SPDX-License-Identifier: Apache-2.0

/// A strict, incremental parser for the frames that a server sends on a WebSocket connection (RFC 6455, section 5).
///
/// The input may be split at any byte.
///
/// The parser does no I/O and keeps no messages: the caller passes the received bytes and pulls events until it gets nil. Only the
/// payload of a control frame is buffered, at most 125 bytes. The caller validates the UTF-8 of text messages (``UTF8Validator``),
/// because the messages may have to be inflated first.
///
/// A failure depends only on the bytes, not on how they were split. After a failure, every later call throws the same failure.
package struct WebSocketFrameReader: Sendable {
    package enum Event: Sendable, Hashable {
        /// The first frame of a message has begun. `isCompressed` is set according to RFC 7692.
        case message(kind: WebSocketMessageKind, isCompressed: Bool)
        /// A frame of the message has begun; also returned for the first frame. `length` is the size of the frame's payload in
        /// bytes.
        case frame(length: UInt64)
        /// Payload, as offsets into the bytes passed to this call; never empty.
        case payload(Range<Int>)
        /// The message is complete.
        case messageEnd
        case ping([UInt8])
        case pong([UInt8])
        /// A close frame. No bytes are read after it.
        case close(WebSocketClose)
    }

    private enum State: Sendable {
        /// Before the first byte of a frame.
        case start
        /// Before the second byte of a frame.
        case secondByte
        /// In the extended payload length.
        case length(missing: Int, isLong: Bool)
        /// The message event has been returned; the event for the message's first frame has not been returned yet.
        case firstFrame
        /// In the payload of a data frame; at least one byte is missing.
        case payload
        /// A message is complete; the event has not been returned yet.
        case messageEnd
        /// In the payload of a control frame; at least one byte is missing.
        case control
        /// A close frame has been read.
        case over
    }

    /// Whether permessage-deflate was negotiated (RFC 7692).
    private let allowsCompression: Bool
    private var state = State.start
    // The current frame.
    private var opcode = WebSocketOpcode.continuation
    private var isFinal = false
    private var isCompressed = false
    /// The number of missing payload bytes.
    private var missing: UInt64 = 0
    /// The payload bytes of a control frame from earlier calls.
    private var pending: [UInt8] = []
    private var failure: WebSocketFailure?

    /// Whether a message has begun and is incomplete.
    package private(set) var isInMessage = false

    /// Whether a close frame has been read.
    package var isOver: Bool {
        if case .over = state { true } else { false }
    }

    package init(allowsCompression: Bool) {
        self.allowsCompression = allowsCompression
    }

    /// Returns the next event in `bytes[offset...]`; `offset` moves past the consumed bytes.
    ///
    /// Returns nil if more bytes are needed; then all bytes were consumed, including partial frames. Also returns nil after a close
    /// frame (``isOver``): bytes after it are not consumed.
    package mutating func next(_ bytes: UnsafeRawBufferPointer, _ offset: inout Int) throws(WebSocketFailure) -> Event? {
        if let failure { throw failure }
        do throws(WebSocketFailure) {
            return try advance(bytes, &offset)
        } catch {
            failure = error
            pending = []
            throw error
        }
    }

    private mutating func advance(_ bytes: UnsafeRawBufferPointer, _ offset: inout Int) throws(WebSocketFailure) -> Event? {
        while true {
            switch state {
            case .start:
                guard offset < bytes.count else { return nil }
                try takeFirst(bytes[offset])
                offset &+= 1
                state = .secondByte
            case .secondByte:
                guard offset < bytes.count else { return nil }
                let isWhole = try takeSecond(bytes[offset])
                offset &+= 1
                if isWhole, let event = try begin() { return event }
            case .length(let count, let isLong):
                guard offset < bytes.count else { return nil }
                let isWhole = try takeLength(bytes[offset], missing: count, isLong: isLong)
                offset &+= 1
                if isWhole, let event = try begin() { return event }
            case .firstFrame: return beginPayload()
            case .payload: return takePayload(bytes, &offset)
            case .messageEnd:
                isInMessage = false
                state = .start
                return .messageEnd
            case .control: return try gather(bytes, &offset)
            case .over: return nil
            }
        }
    }

    // MARK: Frame headers

    /// Reads FIN, RSV1 to RSV3, and the opcode.
    @inline(__always)
    private mutating func takeFirst(_ byte: UInt8) throws(WebSocketFailure) {
        guard let opcode = WebSocketOpcode(rawValue: byte & 0x0F) else {
            throw .protocolError("a frame has the opcode \(byte & 0x0F), which is reserved")
        }
        guard byte & 0x30 == 0 else { throw .protocolError("a frame has RSV2 or RSV3 set, which no extension uses") }
        self.opcode = opcode
        isFinal = byte & 0x80 != 0
        isCompressed = byte & 0x40 != 0
        if isCompressed {
            guard allowsCompression else { throw .protocolError("a frame has RSV1 set, but compression was not negotiated") }
            // RFC 7692, section 6.1.
            guard !opcode.isControl else { throw .protocolError("a control frame has RSV1 set") }
            guard opcode != .continuation else {
                throw .protocolError("a frame that is not the first of its message has RSV1 set")
            }
        }
        switch opcode {
        case .continuation:
            guard isInMessage else { throw .protocolError("a continuation frame has no message to continue") }
        case .text, .binary:
            guard !isInMessage else { throw .protocolError("a message begins inside another one") }
        case .close, .ping, .pong:
            guard isFinal else { throw .protocolError("a control frame is fragmented") }
        }
    }

    /// Reads MASK and the 7-bit payload length.
    ///
    /// Returns whether the frame header is complete.
    @inline(__always)
    private mutating func takeSecond(_ byte: UInt8) throws(WebSocketFailure) -> Bool {
        // "A server MUST NOT mask any frames that it sends to the client" (section 5.1).
        guard byte & 0x80 == 0 else { throw .protocolError("the server masked a frame") }
        guard !opcode.isControl || byte <= WebSocketClose.maximumBodyLength else {
            throw .protocolError("a control frame is longer than 125 bytes")
        }
        guard opcode != .close || byte != 1 else { throw WebSocketClose.shortBody }
        switch byte {
        case 126: state = .length(missing: 2, isLong: false)
        case 127: state = .length(missing: 8, isLong: true)
        default:
            missing = UInt64(byte)
            return true
        }
        missing = 0
        return false
    }

    /// Reads one byte of the extended payload length.
    ///
    /// Returns whether the frame header is complete.
    @inline(__always)
    private mutating func takeLength(
        _ byte: UInt8, missing count: Int, isLong: Bool
    ) throws(WebSocketFailure) -> Bool {
        // "The most significant bit MUST be 0" (section 5.2).
        guard count < 8 || byte & 0x80 == 0 else { throw .protocolError("the length of a frame has more than 63 bits") }
        missing = missing << 8 | UInt64(byte)
        guard count == 1 else {
            state = .length(missing: count &- 1, isLong: isLong)
            return false
        }
        // "The minimal number of bytes MUST be used to encode the length."
        guard missing >= (isLong ? 65_536 : 126) else {
            throw .protocolError("the length of a frame is encoded in more bytes than necessary")
        }
        return true
    }

    /// Begins a frame whose header is complete, and returns the event that precedes any payload.
    @inline(__always)
    private mutating func begin() throws(WebSocketFailure) -> Event? {
        switch opcode {
        case .text, .binary:
            isInMessage = true
            state = .firstFrame
            return .message(kind: opcode == .text ? .text : .binary, isCompressed: isCompressed)
        case .continuation: return beginPayload()
        case .close, .ping, .pong:
            guard missing > 0 else { return try control(UnsafeRawBufferPointer(start: nil, count: 0)) }
            state = .control
            return nil
        }
    }

    // MARK: Payloads

    @inline(__always)
    private mutating func beginPayload() -> Event {
        state = missing > 0 ? .payload : afterPayload
        return .frame(length: missing)
    }

    private var afterPayload: State { isFinal ? .messageEnd : .start }

    @inline(__always)
    private mutating func takePayload(_ bytes: UnsafeRawBufferPointer, _ offset: inout Int) -> Event? {
        guard offset < bytes.count else { return nil }
        let count = Int(truncatingIfNeeded: min(missing, UInt64(bytes.count &- offset)))
        let range = offset..<offset &+ count
        offset &+= count
        missing &-= UInt64(count)
        if missing == 0 { state = afterPayload }
        return .payload(range)
    }

    private mutating func gather(_ bytes: UnsafeRawBufferPointer, _ offset: inout Int) throws(WebSocketFailure) -> Event? {
        let count = Int(truncatingIfNeeded: min(missing, UInt64(bytes.count - offset)))
        let piece = UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + count])
        offset += count
        missing -= UInt64(count)
        if missing == 0, pending.isEmpty { return try control(piece) }
        pending.append(contentsOf: piece)
        guard missing == 0 else { return nil }
        let payload = pending
        pending = []
        return try payload.span.bytes.withUnsafeBytes { payload throws(WebSocketFailure) in try control(payload) }
    }

    /// Processes a complete control frame.
    private mutating func control(_ payload: UnsafeRawBufferPointer) throws(WebSocketFailure) -> Event {
        switch opcode {
        case .close:
            state = .over
            return .close(try WebSocketClose(body: payload))
        case .ping:
            state = .start
            return .ping(Array(payload))
        case .pong, .continuation, .text, .binary:
            state = .start
            return .pong(Array(payload))
        }
    }
}
