//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import NIOCore

/// The input of a decoding stage that has not been decoded yet.
struct CodedInput {
    var bytes = ByteBuffer()
    /// Whether the library filled the whole output space, so that there may be more output without more input.
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

    /// Returns the output space for the next piece: small bodies get small buffers.
    func room(upTo limit: Int) -> Int { hasMore ? limit : min(limit, max(1_024, bytes.readableBytes * 6)) }
}
