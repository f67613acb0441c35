// SPDX-License-Identifier: Apache-2.0

package import NIOCore

/// Memory for the pieces of a body; a buffer is reused after all references to its content have been released.
///
/// The kernel clears new memory page by page, and repeatedly clearing memory costs as much as reading. The receiver of a piece may
/// keep it: the buffer is not reused while the piece exists.
package struct RecycledBuffers {
    /// The number of consecutive calls of ``take(otherwise:)`` without a free buffer after which the buffers are dropped, because
    /// the receivers keep their pieces.
    private static let patience = 64

    package let size: Int
    /// The maximum number of buffers: enough for the pieces that a load's client or file still holds, and for the pieces queued for
    /// them.
    private let limit: Int
    /// The buffers, in the order in which they were handed out.
    private var buffers: [ByteBuffer] = []
    private var misses = 0

    /// `size` must be a power of two, because NIO rounds capacities up to a power of two.
    package init(size: Int, limit: Int) {
        self.size = size
        self.limit = limit
    }

    /// Returns an empty buffer without other references: the most recently used free buffer, which is most likely in the
    /// processor's cache.
    ///
    /// While the maximum number of buffers is in use, returns a new buffer of `capacity` bytes, which is not recycled.
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

    /// Remembers the buffer of a piece that is handed out, if the buffer has the recycled size.
    package mutating func remember(_ piece: ByteBuffer) {
        if piece.storageCapacity == size, buffers.count < limit { buffers.append(piece) }
    }

    /// Drops all buffers.
    package mutating func removeAll() {
        if !buffers.isEmpty { buffers = [] }
        misses = 0
    }
}
