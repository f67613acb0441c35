//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import NIOCore

/// The memory in which a connection has what it reads of a body.
struct BodyMemory {
    /// More than that is not copied, however much it lies in.
    private static let largestCompacted = BulkReading.blockSize / 4

    /// Pieces below this are copied into memory of their own size.
    private static let smallestRecycled = 32_768

    // NIOSSL decrypts into one buffer over and over; a slice that is kept would have it copy that buffer whole each time, however
    // little is in it. And a small slice keeps a large buffer, in whose place NIO then makes another. So both are copied.
    /// For as much as is decrypted in one go.
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

    /// A copy, where a piece takes so little of what it lies in that this had better be used again.
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

    /// The body is over, or goes another way.
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
