// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// Queues body bytes between the socket and the load, with memory in proportion to the byte count.
///
/// A read of a few bytes arrives in a buffer of several KiB. If such buffers were kept, a slow drip would occupy a thousand times
/// its byte count, so small pieces are copied into a common buffer.
struct BodyQueue {
    private static let smallPiece = 4_096
    private static let gatheredSize = 65_536

    /// The first piece; most bodies are one piece.
    private var first: ByteBuffer?
    /// The pieces after the first; created on demand.
    private var rest: CircularBuffer<ByteBuffer>?
    /// Whether the last piece is a buffer that this queue made, to which small pieces can be appended.
    private var lastIsGathered = false
    private(set) var byteCount = 0

    var isEmpty: Bool { first == nil }
    /// The most recent piece.
    var last: ByteBuffer? { rest?.last ?? first }
    /// Whether there is at most one piece.
    var hasAtMostOnePiece: Bool { rest?.isEmpty ?? true }

    mutating func append(_ piece: ByteBuffer) {
        byteCount += piece.readableBytes
        guard piece.readableBytes < Self.smallPiece, !isEmpty else {
            push(piece)
            lastIsGathered = false
            return
        }
        if lastIsGathered, gather(piece) { return }
        var gathered = ByteBufferAllocator().buffer(capacity: Self.smallPiece * 4)
        gathered.writeImmutableBuffer(piece)
        push(gathered)
        lastIsGathered = true
    }

    mutating func popFirst() -> ByteBuffer? {
        guard let piece = first else { return nil }
        first = rest?.popFirst()
        byteCount -= piece.readableBytes
        if isEmpty { lastIsGathered = false }
        return piece
    }

    mutating func removeAll() {
        first = nil
        rest = nil
        byteCount = 0
        lastIsGathered = false
    }

    private mutating func push(_ piece: ByteBuffer) {
        guard !isEmpty else {
            first = piece
            return
        }
        if rest == nil { rest = CircularBuffer(initialCapacity: 4) }
        rest?.append(piece)
    }

    /// Appends a copy of `piece` to the last piece in the queue; returns false if the last piece is full.
    private mutating func gather(_ piece: ByteBuffer) -> Bool {
        if var pieces = rest, let last = pieces.indices.last {
            rest = nil
            defer { rest = pieces }
            guard pieces[last].readableBytes < Self.gatheredSize else { return false }
            pieces[last].writeImmutableBuffer(piece)
            return true
        }
        guard (first?.readableBytes ?? .max) < Self.gatheredSize else { return false }
        first?.writeImmutableBuffer(piece)
        return true
    }
}
