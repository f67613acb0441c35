//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import NIOCore

/// Memory for pieces of a body that are read, copied or gathered, used again once everybody has let go of what was in it.
///
/// Memory that is new to the process is cleared by the kernel page by page, and that over and over costs as much as to read. Whoever has
/// a piece may keep it: its buffer is not touched meanwhile.
package struct RecycledBuffers {
    /// After this many requests in a row without a free buffer, the holders are assumed to keep theirs.
    private static let patience = 64

    package let size: Int
    /// What a load has at its client or on its way to the disk, and what waits for that.
    private let limit: Int
    /// In the order in which they were given away.
    private var buffers: [ByteBuffer] = []
    private var misses = 0

    /// The size is a power of two, as NIO would make one of it.
    package init(size: Int, limit: Int) {
        self.size = size
        self.limit = limit
    }

    /// An empty buffer, which nobody else has: of those that are free the one that was used last, which the processor knows best.
    ///
    /// While all are out, one in memory of its own, of another size.
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

    /// Remembers the buffer that a piece lies in, if it is one of these, on its way to somebody.
    package mutating func remember(_ piece: ByteBuffer) {
        if piece.storageCapacity == size, buffers.count < limit { buffers.append(piece) }
    }

    /// Keeps none.
    package mutating func removeAll() {
        if !buffers.isEmpty { buffers = [] }
        misses = 0
    }
}
