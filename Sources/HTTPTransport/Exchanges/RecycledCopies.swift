//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import NIOCore

/// Copies pieces of a body into memory that is used again once everybody has let go of what was in it.
///
/// Memory that is new to the process is cleared by the kernel page by page, which takes longer than the copy itself.
struct RecycledCopies {
    /// Pieces below this are copied into memory of their own size.
    private static let smallestPiece = 32_768
    /// As much as is decrypted in one go.
    private static let capacity = 131_072
    /// What a download has on its way to the disk, or a load at its client.
    private static let limit = 16

    private var buffers: [ByteBuffer] = []
    /// The one that was given away first.
    private var next = 0

    mutating func copy(of piece: ByteBuffer) -> ByteBuffer {
        guard piece.readableBytes >= Self.smallestPiece else { return Self.copy(of: piece, capacity: piece.readableBytes) }
        if next < buffers.count {
            let wasFree: Void? = buffers[next].modifyIfUniquelyOwned { buffer in
                buffer.clear()
                buffer.writeImmutableBuffer(piece)
            }
            if wasFree != nil {
                defer { next = (next + 1) % buffers.count }
                return buffers[next]
            }
        }
        guard buffers.count < Self.limit else { return Self.copy(of: piece, capacity: piece.readableBytes) }
        let copy = Self.copy(of: piece, capacity: max(piece.readableBytes, Self.capacity))
        // Behind all others, as the last to come back.
        buffers.insert(copy, at: next)
        next = (next + 1) % buffers.count
        return copy
    }

    mutating func removeAll() {
        guard !buffers.isEmpty else { return }
        buffers = []
        next = 0
    }

    private static func copy(of piece: ByteBuffer, capacity: Int) -> ByteBuffer {
        var copy = ByteBufferAllocator().buffer(capacity: capacity)
        copy.writeImmutableBuffer(piece)
        return copy
    }
}
