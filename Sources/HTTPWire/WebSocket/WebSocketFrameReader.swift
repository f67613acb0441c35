//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// Reads what a server sends on a WebSocket connection (RFC 6455, section 5), strictly, and can stop and go on at every byte.
///
/// It does no I/O and keeps no message: the caller hands it what arrived and pulls events until there are none. Only the payload of
/// a control frame is kept until it is whole, at most 125 bytes. Whether a text is UTF-8 is for the caller to see (``UTF8Validator``), as
/// it may have to be inflated first.
///
/// What a failure means does not depend on how the bytes were cut. After a failure nothing can be trusted any more; every later call
/// throws it again.
package struct WebSocketFrameReader: Sendable {
    package enum Event: Sendable, Hashable {
        /// The first frame of a message has begun. Compressed is as RFC 7692 has it.
        case message(kind: WebSocketMessageKind, isCompressed: Bool)
        /// A frame of the message has begun, the first one included, and will have so many bytes of payload.
        case frame(length: UInt64)
        /// Payload: offsets into the bytes given to this call; never empty.
        case payload(Range<Int>)
        /// The message is complete.
        case messageEnd
        case ping([UInt8])
        case pong([UInt8])
        /// Nothing is read after it.
        case close(WebSocketClose)
    }

    private enum Place: Sendable {
        /// Before the first byte of a frame.
        case start
        /// Before its second byte.
        case secondByte
        /// Within the longer form of its length.
        case length(missing: Int, isLong: Bool)
        /// The message was told, the length of its first frame was not.
        case firstFrame
        /// In the payload of a data frame, which lacks at least one byte.
        case payload
        /// A message is complete, which was not told.
        case messageEnd
        /// In the payload of a control frame, which lacks at least one byte.
        case control
        /// A close frame was read.
        case over
    }

    /// Whether permessage-deflate was agreed upon (RFC 7692).
    private let allowsCompression: Bool
    private var place = Place.start
    // Of the frame that is being read.
    private var opcode = WebSocketOpcode.continuation
    private var isFinal = false
    private var isCompressed = false
    /// What its payload lacks.
    private var missing: UInt64 = 0
    /// What came of a control frame's payload in earlier calls.
    private var pending: [UInt8] = []
    private var failure: WebSocketFailure?

    /// Whether a message has begun and is not complete.
    package private(set) var isInMessage = false

    /// Whether a close frame was read.
    package var isOver: Bool {
        if case .over = place { true } else { false }
    }

    package init(allowsCompression: Bool) {
        self.allowsCompression = allowsCompression
    }

    /// The next event found in `bytes[offset...]`; `offset` moves past what was taken in.
    ///
    /// Nil when more bytes are needed: then everything was taken in, partial frames included. Nil also when a close frame was read
    /// (``isOver``): what follows it is left alone.
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
            switch place {
            case .start:
                guard offset < bytes.count else { return nil }
                try takeFirst(bytes[offset])
                offset &+= 1
                place = .secondByte
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
                place = .start
                return .messageEnd
            case .control: return try gather(bytes, &offset)
            case .over: return nil
            }
        }
    }

    // MARK: Heads

    /// FIN, RSV1 to RSV3, and the opcode.
    @inline(__always)
    private mutating func takeFirst(_ byte: UInt8) throws(WebSocketFailure) {
        guard let opcode = WebSocketOpcode(rawValue: byte & 0x0F) else {
            throw .protocolError("a frame has the opcode \(byte & 0x0F), which is reserved")
        }
        guard byte & 0x30 == 0 else { throw .protocolError("a frame has RSV2 or RSV3 set, which no extension was to use") }
        self.opcode = opcode
        isFinal = byte & 0x80 != 0
        isCompressed = byte & 0x40 != 0
        if isCompressed {
            guard allowsCompression else { throw .protocolError("a frame has RSV1 set, which no extension was to use") }
            // RFC 7692, section 6.1.
            guard !opcode.isControl else { throw .protocolError("a control frame has RSV1 set") }
            guard opcode != .continuation else {
                throw .protocolError("a frame that is not the first of its message has RSV1 set")
            }
        }
        switch opcode {
        case .continuation:
            guard isInMessage else { throw .protocolError("a continuation frame goes on with no message") }
        case .text, .binary:
            guard !isInMessage else { throw .protocolError("a message begins inside another one") }
        case .close, .ping, .pong:
            guard isFinal else { throw .protocolError("a control frame is fragmented") }
        }
    }

    /// MASK, and the length or the form of it; whether the head is whole.
    @inline(__always)
    private mutating func takeSecond(_ byte: UInt8) throws(WebSocketFailure) -> Bool {
        // "A server MUST NOT mask any frames that it sends to the client" (section 5.1).
        guard byte & 0x80 == 0 else { throw .protocolError("the server masked a frame") }
        guard !opcode.isControl || byte <= WebSocketClose.maximumBodyLength else {
            throw .protocolError("a control frame is longer than 125 bytes")
        }
        guard opcode != .close || byte != 1 else { throw WebSocketClose.shortBody }
        switch byte {
        case 126: place = .length(missing: 2, isLong: false)
        case 127: place = .length(missing: 8, isLong: true)
        default:
            missing = UInt64(byte)
            return true
        }
        missing = 0
        return false
    }

    /// One byte of a longer form of the length; whether the head is whole.
    @inline(__always)
    private mutating func takeLength(
        _ byte: UInt8, missing count: Int, isLong: Bool
    ) throws(WebSocketFailure) -> Bool {
        // "The most significant bit MUST be 0" (section 5.2).
        guard count < 8 || byte & 0x80 == 0 else { throw .protocolError("the length of a frame has more than 63 bits") }
        missing = missing << 8 | UInt64(byte)
        guard count == 1 else {
            place = .length(missing: count &- 1, isLong: isLong)
            return false
        }
        // "The minimal number of bytes MUST be used to encode the length."
        guard missing >= (isLong ? 65_536 : 126) else {
            throw .protocolError("the length of a frame takes more bytes than it needs")
        }
        return true
    }

    /// The head is whole: what there is to tell before any payload.
    @inline(__always)
    private mutating func begin() throws(WebSocketFailure) -> Event? {
        switch opcode {
        case .text, .binary:
            isInMessage = true
            place = .firstFrame
            return .message(kind: opcode == .text ? .text : .binary, isCompressed: isCompressed)
        case .continuation: return beginPayload()
        case .close, .ping, .pong:
            guard missing > 0 else { return try control(UnsafeRawBufferPointer(start: nil, count: 0)) }
            place = .control
            return nil
        }
    }

    // MARK: Payloads

    @inline(__always)
    private mutating func beginPayload() -> Event {
        place = missing > 0 ? .payload : afterPayload
        return .frame(length: missing)
    }

    private var afterPayload: Place { isFinal ? .messageEnd : .start }

    @inline(__always)
    private mutating func takePayload(_ bytes: UnsafeRawBufferPointer, _ offset: inout Int) -> Event? {
        guard offset < bytes.count else { return nil }
        let count = Int(truncatingIfNeeded: min(missing, UInt64(bytes.count &- offset)))
        let range = offset..<offset &+ count
        offset &+= count
        missing &-= UInt64(count)
        if missing == 0 { place = afterPayload }
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

    /// A control frame is whole.
    private mutating func control(_ payload: UnsafeRawBufferPointer) throws(WebSocketFailure) -> Event {
        switch opcode {
        case .close:
            place = .over
            return .close(try WebSocketClose(body: payload))
        case .ping:
            place = .start
            return .ping(Array(payload))
        case .pong, .continuation, .text, .binary:
            place = .start
            return .pong(Array(payload))
        }
    }
}
