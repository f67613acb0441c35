//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import NIOCore

/// Memory for pieces of a body that are read, copied or gathered, which is reused once all references to its content are released.
///
/// The kernel clears new memory page by page, and repeatedly clearing memory costs as much as reading. A holder may keep its piece:
/// the buffer is not touched as long as the piece exists.
package struct RecycledBuffers {
    /// After this many calls of ``take(otherwise:)`` in a row without a free buffer, the holders are assumed to keep their pieces.
    private static let patience = 64

    package let size: Int
    /// The maximum number of buffers: enough for the pieces that a load's client or file still holds, and for those queued for
    /// them.
    private let limit: Int
    /// The buffers, in the order in which they were handed out.
    private var buffers: [ByteBuffer] = []
    private var misses = 0

    /// `size` must be a power of two, because NIO rounds capacities up to one.
    package init(size: Int, limit: Int) {
        self.size = size
        self.limit = limit
    }

    /// Returns an empty buffer without other references: the most recently used free buffer, which is most likely in the
    /// processor's cache.
    ///
    /// While all buffers are in use, returns a new buffer of `capacity` bytes, which is not recycled.
    package mutating func take(otherwise capacity: Int) -> ByteBuffer {
        for index in buffers.indices.reversed() where buffers[index].modifyIfUniquelyOwned({ $0.clear() }) != nil {
            misses = 0
            return buffers.remove(at: index)
        }
        guard buffers.count >= limit else { return ByteBufferAllocator().buffer(capacity: size) }
        misses += 1
        if misses >= Self.patience { removeAll() }
        return ByteBufferAllocator().buffer(capacity: capacity)
    }

    /// Remembers the buffer of a piece that is handed out, if it is of the recycled size.
    package mutating func remember(_ piece: ByteBuffer) {
        if piece.storageCapacity == size, buffers.count < limit { buffers.append(piece) }
    }

    /// Drops all buffers.
    package mutating func removeAll() {
        if !buffers.isEmpty { buffers = [] }
        misses = 0
    }
}
