// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// The memory for body pieces that a connection has read.
struct BodyMemory {
    /// The maximum size of a piece that ``compact(_:)`` copies, whatever the size of the piece's buffer.
    private static let largestCompacted = BulkReading.blockSize / 4

    /// Pieces smaller than this are copied into memory of their own size.
    private static let smallestRecycled = 32_768

    // NIOSSL decrypts into one buffer repeatedly. Keeping a slice of that buffer would make NIOSSL copy the whole buffer each time,
    // however small the slice is. A small slice of any other large buffer keeps that buffer alive, so that NIO allocates another.
    // Slices of both kinds are therefore copied.
    /// The reusable buffers for copies; each is large enough for the data that is decrypted at a time.
    private var copies = RecycledBuffers(size: 262_144, limit: 8)
    private var bulk: BulkReading?
    private var isInUse = false

    mutating func copy(of piece: ByteBuffer) -> ByteBuffer {
        isInUse = true
        if let bulk, bulk.noteSmall(piece) { copies.removeAll() }
        let count = piece.readableBytes
        let isRecycled = Self.smallestRecycled...copies.size ~= count
        var copy = isRecycled ? copies.take(otherwise: count) : ByteBufferAllocator().buffer(capacity: count)
        copy.writeImmutableBuffer(piece)
        if isRecycled { copies.remember(copy) }
        return copy
    }

    /// Copies a piece that takes up little of its buffer, so that the buffer can be reused.
    mutating func compact(_ piece: ByteBuffer) -> ByteBuffer {
        guard piece.readableBytes * 4 <= min(piece.storageCapacity, Self.largestCompacted * 4) else { return piece }
        return copy(of: piece)
    }

    mutating func bulk(_ make: @autoclosure () -> BulkReading) -> BulkReading {
        if let bulk { return bulk }
        let bulk = make()
        self.bulk = bulk
        isInUse = true
        return bulk
    }

    /// Releases the memory, because the body has ended or bypasses this memory.
    @inline(__always)
    mutating func removeAll() {
        if isInUse { free() }
    }

    @inline(never)
    private mutating func free() {
        isInUse = false
        copies.removeAll()
        bulk?.stop()
        bulk = nil
    }
}
