// SPDX-License-Identifier: Apache-2.0

import HTTPWire

/// A reader's events for some bytes, independent of how they were split.
struct WebSocketTranscript: Equatable, CustomStringConvertible {
    enum Item: Equatable {
        case message(WebSocketMessageKind, isCompressed: Bool)
        case frame(UInt64)
        case payload([UInt8])
        case messageEnd
        case ping([UInt8])
        case pong([UInt8])
        case close(UInt16?, String)
    }

    private(set) var items: [Item] = []
    private(set) var failure: WebSocketFailure?
    private(set) var isOver = false
    private(set) var isInMessage = false
    /// The number of bytes after a close frame that were not consumed.
    private(set) var leftOver = 0

    init(_ items: [Item], _ failure: WebSocketFailure? = nil) {
        (self.items, self.failure) = (items, failure)
    }

    /// Reads bytes in pieces of the lengths that `piece` returns.
    init(reading bytes: [UInt8], allowsCompression: Bool = false, piece: () -> Int = { Int.max }) {
        var reader = WebSocketFrameReader(allowsCompression: allowsCompression)
        var start = 0
        while start < bytes.count, failure == nil {
            // A separate copy, so that reads beyond its end are detected.
            let piece = Array(bytes[start...].prefix(piece()))
            start += piece.count
            var offset = 0
            do {
                try piece.withUnsafeBytes { piece in
                    while let event = try reader.next(piece, &offset) { note(event, piece) }
                }
                leftOver += piece.count - offset
            } catch {
                failure = error as? WebSocketFailure
            }
        }
        (isOver, isInMessage) = (reader.isOver, reader.isInMessage)
    }

    /// All messages, each with its payloads joined.
    var messages: [[UInt8]] {
        var messages: [[UInt8]] = []
        for item in items {
            if case .message = item { messages.append([]) }
            if case .payload(let bytes) = item { messages[messages.count - 1] += bytes }
        }
        return messages
    }

    var description: String { "\(items)\(failure.map { " \($0.code): \($0.message)" } ?? "")" }

    static func == (left: WebSocketTranscript, right: WebSocketTranscript) -> Bool {
        left.items == right.items && left.failure == right.failure
    }

    private mutating func note(_ event: WebSocketFrameReader.Event, _ bytes: UnsafeRawBufferPointer) {
        switch event {
        case .message(let kind, let isCompressed): items.append(.message(kind, isCompressed: isCompressed))
        case .frame(let length): items.append(.frame(length))
        case .payload(let range):
            if case .payload(let before) = items.last {
                items[items.count - 1] = .payload(before + bytes[range])
            } else {
                items.append(.payload(Array(bytes[range])))
            }
        case .messageEnd: items.append(.messageEnd)
        case .ping(let payload): items.append(.ping(payload))
        case .pong(let payload): items.append(.pong(payload))
        case .close(let close): items.append(.close(close.code, close.reason))
        }
    }
}

/// A frame as a server sends it, valid or not.
struct ServerFrame {
    var first: UInt8
    var payload: [UInt8]
    var isMasked = false
    /// The number of bytes of the extended length, 0 if the seven bits are used; nil chooses the shortest encoding.
    var lengthBytes: Int?
    var length: UInt64?

    init(_ first: UInt8, _ payload: [UInt8] = []) { (self.first, self.payload) = (first, payload) }

    init(_ opcode: WebSocketOpcode, _ payload: [UInt8] = [], isFinal: Bool = true, isCompressed: Bool = false) {
        self.init(opcode.rawValue | (isFinal ? 0x80 : 0) | (isCompressed ? 0x40 : 0), payload)
    }

    var bytes: [UInt8] {
        let length = length ?? UInt64(payload.count)
        let count = lengthBytes ?? (length < 126 ? 0 : length < 65_536 ? 2 : 8)
        let mask: UInt8 = isMasked ? 0x80 : 0
        var bytes = [first, mask | (count == 0 ? UInt8(length & 0x7F) : count == 2 ? 126 : 127)]
        for place in (0..<count).reversed() { bytes.append(UInt8(truncatingIfNeeded: length >> UInt64(8 * place))) }
        guard isMasked else { return bytes + payload }
        let key: [UInt8] = [1, 2, 3, 4]
        return bytes + key + payload.enumerated().map { $1 ^ key[$0 % 4] }
    }

    static func close(_ code: UInt16, _ reason: [UInt8] = []) -> [UInt8] {
        ServerFrame(.close, [UInt8(code >> 8), UInt8(code & 0xFF)] + reason).bytes
    }
}
