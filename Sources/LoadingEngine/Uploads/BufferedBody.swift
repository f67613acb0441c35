// SPDX-License-Identifier: Apache-2.0

import HTTPTransport
import LoadingModel
import NIOCore

/// A body that is in memory.
final class BufferedBody: ResponseBody {
    private var bytes: ByteBuffer?

    init(_ bytes: ByteBuffer) { self.bytes = bytes }

    func next() async throws(LoadError) -> ByteBuffer? {
        guard let piece = bytes.take(), piece.readableBytes > 0 else { return nil }
        return piece
    }

    func cancel() { bytes = nil }
}
