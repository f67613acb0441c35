// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import HTTPTransport
import HTTPWire
import LoadingModel
import NIOCore

/// Assembles messages from the bytes that a WebSocket's peer sends.
///
/// A message that arrives in one read is not copied. The pieces of any other message are joined, up to the maximum size.
struct IncomingMessages {
    enum Event {
        case message(WebSocketMessage)
        case ping([UInt8])
        case pong([UInt8])
        case close(WebSocketClose)
    }

    /// The maximum number of bytes to reserve for an announced length.
    private static let largestReservation = 1_048_576

    /// The maximum message size in bytes, after decompression.
    var maximumSize: Int
    private var reader: WebSocketFrameReader
    private let inflater: MessageInflater?
    // The state of the message that is being read:
    private var kind = WebSocketMessageKind.binary
    private var isCompressed = false
    private var content = ByteBuffer()
    /// The total announced length of the message's frames so far, in bytes on the wire.
    private var announced: UInt64 = 0
    /// Whether the message arrived in several pieces, in which case its text is validated piece by piece.
    private var isInPieces = false
    private var text = UTF8Validator()

    init(maximumSize: Int, deflate: MessageDeflateParameters?) {
        self.maximumSize = maximumSize
        reader = WebSocketFrameReader(allowsCompression: deflate != nil)
        inflater = deflate.map { MessageInflater($0) }
    }

    /// Reads `bytes` and reports their events, as long as `isWanted` and `tell` return true; returns whether `limit` frame events
    /// were processed.
    mutating func take(
        _ bytes: inout ByteBuffer, limit: Int, isWanted: () -> Bool, tell: (Event) -> Bool
    ) throws(WebSocketFailure) -> Bool {
        let piece = bytes
        var (offset, left) = (0, limit)
        defer { bytes.moveReaderIndex(forwardBy: offset) }
        let failure = piece.withUnsafeReadableBytes { raw -> WebSocketFailure? in
            do throws(WebSocketFailure) {
                while left > 0, isWanted(), let event = try reader.next(raw, &offset) {
                    left -= 1
                    if let event = try take(event, of: piece), !tell(event) { break }
                }
                return nil
            } catch {
                return error
            }
        }
        if let failure { throw failure }
        try validateText()
        return left == 0
    }

    /// Validates the text of an incomplete message, so that invalid text fails before later events are processed.
    ///
    /// A complete message is validated as a whole.
    private mutating func validateText() throws(WebSocketFailure) {
        if kind == .text, !isCompressed, !isInPieces, content.readableBytes > 0 { try beginPieces() }
    }

    /// Returns the event to report for a frame's event; nil if there is nothing to report.
    private mutating func take(
        _ event: WebSocketFrameReader.Event, of piece: ByteBuffer
    ) throws(WebSocketFailure) -> Event? {
        if case .messageEnd = event {} else { try validateText() }
        switch event {
        case .message(let kind, let isCompressed):
            self.kind = kind
            self.isCompressed = isCompressed
            announced = 0
            isInPieces = false
            if isCompressed { inflater?.begin(limit: maximumSize) }
        case .frame(let length): try begin(length)
        case .payload(let range):
            guard let slice = piece.getSlice(at: piece.readerIndex + range.lowerBound, length: range.count) else { break }
            try take(slice)
        case .messageEnd: return .message(try finish())
        case .ping(let payload): return .ping(payload)
        case .pong(let payload): return .pong(payload)
        case .close(let close): return .close(close)
        }
        return nil
    }

    private mutating func begin(_ length: UInt64) throws(WebSocketFailure) {
        announced = announced.addingReportingOverflow(length).partialValue
        // The compressed length says nothing about the size of the message.
        guard isCompressed || announced <= UInt64(maximumSize) else { throw tooBig }
    }

    private var tooBig: WebSocketFailure { .tooBig("a message is larger than \(maximumSize) bytes (maximumMessageSize)") }

    private mutating func take(_ slice: ByteBuffer) throws(WebSocketFailure) {
        if isCompressed {
            return try inflate(slice)
        }
        if content.readableBytes == 0, !isInPieces, UInt64(slice.readableBytes) == announced {
            // Another frame of the message may still follow.
            content = slice
            return
        }
        if !isInPieces { try beginPieces() }
        try append(slice)
    }

    /// Starts joining the message's pieces: those that have arrived, and those that follow.
    private mutating func beginPieces() throws(WebSocketFailure) {
        isInPieces = true
        let start = content
        content = ByteBufferAllocator().buffer(capacity: min(Int(clamping: announced), Self.largestReservation))
        try append(start)
    }

    private mutating func inflate(_ slice: ByteBuffer) throws(WebSocketFailure) {
        guard let inflater else { return }
        var content = content
        self.content = ByteBuffer()
        defer { self.content = content }
        let failure = slice.withUnsafeReadableBytes { bytes -> WebSocketFailure? in
            do throws(WebSocketFailure) {
                var offset = 0
                while try inflater.inflate(bytes, &offset, into: &content) {}
                return nil
            } catch {
                return error
            }
        }
        if let failure { throw failure }
    }

    private mutating func append(_ slice: ByteBuffer) throws(WebSocketFailure) {
        guard kind == .binary || slice.withUnsafeReadableBytes({ text.take($0) }) else {
            throw .invalidData("a text message is not UTF-8")
        }
        content.writeImmutableBuffer(slice)
    }

    private mutating func finish() throws(WebSocketFailure) -> WebSocketMessage {
        if isCompressed, let inflater {
            while try inflater.end(into: &content) {}
            inflater.releaseMemory()
        }
        let whole = content
        content = ByteBuffer()
        text = UTF8Validator()
        guard kind == .text else { return .binary(Data(sharing: whole)) }
        guard let string = whole.withUnsafeReadableBytes({ String(validating: $0, as: UTF8.self) }) else {
            throw .invalidData("a text message is not UTF-8")
        }
        return .text(string)
    }
}
