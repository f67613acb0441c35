//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import NIOCore

/// Memory in which pieces are gathered, used again once everybody has let go of what was in it.
///
/// Memory that is new to the process is cleared by the kernel page by page, which takes longer than the copy itself.
struct RecycledBuffers {
    static let size = 131_072
    /// What a download has on its way to the disk, or a load at its client, with the window that waits for that.
    private static let limit = 24

    /// The one that was given away first comes first.
    private var buffers = CircularBuffer<ByteBuffer>()

    /// An empty buffer, which nobody else writes into.
    mutating func take() -> ByteBuffer {
        // Taken out to be looked at: the subscript would hold it as well.
        if var first = buffers.popFirst() {
            if first.modifyIfUniquelyOwned({ $0.clear() }) != nil { return first }
            buffers.prepend(first)
        }
        return ByteBufferAllocator().buffer(capacity: Self.size)
    }

    /// Remembers a buffer that is on its way to somebody.
    mutating func remember(_ buffer: ByteBuffer) {
        if buffers.count < Self.limit { buffers.append(buffer) }
    }

    mutating func removeAll() {
        if !buffers.isEmpty { buffers = CircularBuffer() }
    }
}
