// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import HTTPTransport
import HTTPWire
import LoadingModel
import NIOCore

/// Encodes the messages that an app sends on a WebSocket as masked frames, and collects the frames until they are written.
///
/// An uncompressed message is one frame, which is copied once, while it is masked. A compressed message has one frame per
/// compressed piece.
struct OutgoingMessages {
    /// The number of bytes that are compressed at a time.
    private static let compressedAtOnce = 65_536
    /// The maximum capacity in bytes that an empty ``output`` keeps.
    private static let keptCapacity = 4_096

    /// What is complete once a piece of output is written.
    struct Completion {
        /// The number of the app's messages.
        var messages = 0
        var hasPong = false
        var bytes: Int64 = 0
    }

    private var output = ByteBuffer()
    private var completion = Completion()
    private var keys = MaskKeys()
    private let deflater: MessageDeflater?
    private var current: Current?
    /// Control frames that have to wait until the current frame is complete.
    private var waiting = ByteBuffer()

    /// The message that is being written.
    private struct Current {
        let kind: WebSocketMessageKind
        let content: Content
        /// The number of bytes that have been written or compressed.
        var position = 0
        let isCompressed: Bool
        /// The masking key, if the message is a single frame.
        var key: UInt32 = 0
    }

    private enum Content {
        case text(String)
        case data(Data)

        var count: Int {
            switch self {
            case .text(let text): text.utf8.count
            case .data(let data): data.count
            }
        }

        func withBytes(_ range: Range<Int>, _ body: (UnsafeRawBufferPointer) -> Void) {
            switch self {
            case .text(var text): text.withUTF8 { body(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer($0)[range])) }
            case .data(let data): data.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[range])) }
            }
        }
    }

    init(deflate: MessageDeflateParameters?) {
        deflater = deflate.flatMap {
            $0.clientCompresses
                ? MessageDeflater(windowBits: $0.clientWindowBits, usesContextTakeover: $0.clientTakesContextOver) : nil
        }
    }

    /// Whether a message is only partly encoded.
    var isInMessage: Bool { current != nil }
    /// The number of bytes to be written.
    var count: Int { output.readableBytes }

    /// Returns what is to be written.
    mutating func take() -> (ByteBuffer, Completion) {
        completion.bytes = Int64(count)
        defer { (output, completion) = (ByteBuffer(), Completion()) }
        return (output, completion)
    }

    /// Uses the memory of written bytes again.
    mutating func reuse(_ bytes: inout ByteBuffer) {
        guard count == 0, bytes.storageCapacity <= Self.keptCapacity else { return }
        bytes.clear()
        output = bytes
    }

    /// Begins a message, which is encoded by ``encode(upTo:)``.
    mutating func begin(_ message: WebSocketMessage) {
        let (kind, content): (WebSocketMessageKind, Content) =
            switch message {
            case .text(let text): (.text, .text(text))
            case .binary(let data): (.binary, .data(data))
            }
        var begun = Current(kind: kind, content: content, isCompressed: deflater?.begin() ?? false)
        if !begun.isCompressed {
            begun.key = keys.next()
            head(kind.opcode, isFinal: true, isCompressed: false, length: content.count, begun.key)
        }
        current = begun
    }

    /// Encodes more of the message.
    mutating func encode(upTo limit: Int) {
        guard var message = current else { return }
        if message.isCompressed { compress(&message) } else { copy(&message, upTo: limit) }
        let isWhole = message.position == message.content.count
        current = isWhole ? nil : message
        if isWhole || message.isCompressed, waiting.readableBytes > 0 {
            output.writeBuffer(&waiting)
            waiting = ByteBuffer()
        }
        if isWhole { completion.messages += 1 }
    }

    private mutating func copy(_ message: inout Current, upTo limit: Int) {
        let (position, key) = (message.position, message.key)
        let count = min(limit, message.content.count - position)
        message.content.withBytes(position..<position + count) { bytes in
            _ = output.writeWithUnsafeMutableBytes(minimumWritableBytes: count) {
                WebSocketFrameWriter.copy(bytes, to: $0, key: key, at: position)
                return count
            }
        }
        message.position += count
    }

    private mutating func compress(_ message: inout Current) {
        guard let deflater else { return }
        let start = message.position
        let end = min(start + Self.compressedAtOnce, message.content.count)
        let isLast = end == message.content.count
        var compressed = ByteBuffer()
        message.content.withBytes(start..<end) { deflater.deflate($0, endsMessage: isLast, into: &compressed) }
        let key = keys.next()
        let isFirst = start == 0
        head(
            isFirst ? message.kind.opcode : .continuation, isFinal: isLast, isCompressed: isFirst,
            length: compressed.readableBytes, key)
        _ = output.writeWithUnsafeMutableBytes(minimumWritableBytes: compressed.readableBytes) { target in
            compressed.withUnsafeReadableBytes { WebSocketFrameWriter.copy($0, to: target, key: key) }
            return compressed.readableBytes
        }
        message.position = end
        if isLast { deflater.releaseMemory() }
    }

    /// Encodes a control frame: immediately, or after the frame that is being encoded.
    mutating func control(_ opcode: WebSocketOpcode, _ payload: [UInt8]) {
        if opcode == .pong { completion.hasPong = true }
        let frame = WebSocketFrameWriter.controlFrame(opcode, payload, key: keys.next())
        if let current, !current.isCompressed { waiting.writeBytes(frame) } else { output.writeBytes(frame) }
    }

    private mutating func head(_ opcode: WebSocketOpcode, isFinal: Bool, isCompressed: Bool, length: Int, _ key: UInt32) {
        _ = output.writeWithUnsafeMutableBytes(minimumWritableBytes: WebSocketFrameWriter.maximumHeadLength) {
            WebSocketFrameWriter.writeHead(
                opcode, isFinal: isFinal, isCompressed: isCompressed, length: length, key: key, into: $0)
        }
    }
}

/// Masking keys from the system's random source (RFC 6455, section 10.3), which provides many keys in one read.
private struct MaskKeys {
    private var keys: [UInt64] = []
    private var half: UInt32?

    mutating func next() -> UInt32 {
        if let half = half.take() { return half }
        if keys.isEmpty {
            var random = SystemRandomNumberGenerator()
            keys = (0..<16).map { _ in random.next() }
        }
        guard let last = keys.popLast() else { return 0 }
        half = UInt32(truncatingIfNeeded: last >> 32)
        return UInt32(truncatingIfNeeded: last)
    }
}
