// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// The bytes that a decoding stage has received but not decoded yet.
struct CodedInput {
    var bytes = ByteBuffer()
    /// Whether the library filled the whole output space, and may therefore have more output without more input.
    var hasMore = false
    /// The total number of bytes added.
    private(set) var count: Int64 = 0

    /// Whether nothing can be decoded without more input.
    var isExhausted: Bool { bytes.readableBytes == 0 && !hasMore }

    mutating func add(_ more: ByteBuffer) {
        count += Int64(more.readableBytes)
        if bytes.readableBytes == 0 {
            bytes = more
        } else {
            bytes.writeImmutableBuffer(more)
        }
    }

    /// Returns the size in bytes of the next output buffer, at most `limit`: small bodies get small buffers.
    func room(upTo limit: Int) -> Int { hasMore ? limit : min(limit, max(1_024, bytes.readableBytes * 6)) }
}
