//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import NIOCore

/// Blocks of memory that large pieces of a body are read into, used again once everybody has let go of what was in them.
///
/// Memory that is new to the process is cleared by the kernel page by page, and that over and over costs as much as to read. Whoever has
/// a piece may keep it: its block is not touched meanwhile, and where all are out, pieces come in memory of their own.
//
// `@unchecked`: touched on the channel's event loop alone.
package final class ReadBlocks: @unchecked Sendable {
    package static let size = 1_048_576
    /// What a load has at its client, and what waits for that.
    private static let limit = 3
    /// How much is read at a time while all blocks are out.
    private static let ordinarySize = 262_144
    /// After so many such reads in a row whoever has the blocks is taken to keep them.
    private static let patience = 64

    /// In the order in which they were read into.
    private var blocks: [ByteBuffer] = []
    private var ordinaryReads = 0

    package init() {}

    /// An empty buffer, which nobody else has: of the blocks the one that was used last, which the processor knows best.
    package func take() -> ByteBuffer {
        for index in blocks.indices.reversed() where blocks[index].modifyIfUniquelyOwned({ $0.clear() }) != nil {
            ordinaryReads = 0
            return blocks.remove(at: index)
        }
        guard blocks.count >= Self.limit else { return ByteBufferAllocator().buffer(capacity: Self.size) }
        ordinaryReads += 1
        if ordinaryReads >= Self.patience {
            ordinaryReads = 0
            blocks = []
        }
        return ByteBufferAllocator().buffer(capacity: Self.ordinarySize)
    }

    /// Keeps none.
    package func removeAll() {
        blocks = []
        ordinaryReads = 0
    }

    /// Remembers the block that a piece lies in, if it lies in one.
    package func remember(_ piece: ByteBuffer) {
        if piece.storageCapacity == Self.size, blocks.count < Self.limit { blocks.append(piece) }
    }
}
