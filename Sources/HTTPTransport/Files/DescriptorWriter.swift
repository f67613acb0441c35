// SPDX-License-Identifier: Apache-2.0

import CLoadingSystem
import NIOCore

/// Writes several buffers with one system call.
enum DescriptorWriter {
    static let maximumPieces = 32

    /// Writes at most ``maximumPieces`` buffers; returns 0 or the negative error, and in either case the number of bytes written.
    static func write(_ buffers: [ByteBuffer], to descriptor: CInt) -> (status: CInt, count: Int64) {
        var pieces: [cls_piece] = []
        pieces.reserveCapacity(buffers.count)
        return write(buffers[...], after: &pieces, to: descriptor)
    }

    /// Writes the buffers with nested closures, because each buffer's bytes are valid only within its closure.
    private static func write(
        _ buffers: ArraySlice<ByteBuffer>,
        after pieces: inout [cls_piece],
        to descriptor: CInt
    ) -> (status: CInt, count: Int64) {
        guard let first = buffers.first else {
            var written: Int64 = 0
            let status = cls_write_all(descriptor, pieces, CInt(pieces.count), &written)
            return (status, written)
        }
        return first.withUnsafeReadableBytes { bytes in
            pieces.append(cls_piece(start: bytes.baseAddress, length: bytes.count))
            return write(buffers.dropFirst(), after: &pieces, to: descriptor)
        }
    }
}
