//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import NIOCore

/// Holds body bytes between the socket and the load, so that memory stays in proportion to what is counted.
///
/// A read of a few bytes comes in a buffer of some kibibytes; kept as it is, a slow drip would hold a thousand times what it counts.
/// Small pieces are therefore copied together.
struct BodyQueue {
    private static let smallPiece = 4_096
    private static let gatheredSize = 65_536

    private var pieces = CircularBuffer<ByteBuffer>(initialCapacity: 1)
    /// Whether the last piece was gathered here, and may be appended to.
    private var lastIsGathered = false
    private(set) var byteCount = 0

    var isEmpty: Bool { pieces.isEmpty }

    mutating func append(_ piece: ByteBuffer) {
        byteCount += piece.readableBytes
        if piece.readableBytes < Self.smallPiece, !pieces.isEmpty {
            let last = pieces.index(before: pieces.endIndex)
            if lastIsGathered, pieces[last].readableBytes < Self.gatheredSize {
                pieces[last].writeImmutableBuffer(piece)
                return
            }
            var gathered = ByteBufferAllocator().buffer(capacity: Self.smallPiece * 4)
            gathered.writeImmutableBuffer(piece)
            pieces.append(gathered)
            lastIsGathered = true
            return
        }
        pieces.append(piece)
        lastIsGathered = false
    }

    mutating func popFirst() -> ByteBuffer? {
        guard let piece = pieces.popFirst() else { return nil }
        byteCount -= piece.readableBytes
        if pieces.isEmpty { lastIsGathered = false }
        return piece
    }

    mutating func removeAll() {
        pieces.removeAll()
        byteCount = 0
        lastIsGathered = false
    }
}
