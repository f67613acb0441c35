// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// Keeps NIO from reading from a socket that is lent to a ``SplicePump``.
///
/// Even without automatic reading, NIO reads everything once it learns that the peer has closed its side. With this allocator NIO
/// reads into an empty buffer, takes the empty read for the end of the stream, and closes the channel; the bytes stay in the
/// socket.
struct ClosedIntake: RecvByteBufferAllocator {
    func buffer(allocator: ByteBufferAllocator) -> ByteBuffer { ByteBuffer() }
    mutating func record(actualReadBytes: Int) -> Bool { false }

    /// Restores the previous allocator.
    struct Reopening {
        fileprivate let channel: any Channel
        fileprivate let allocator: any RecvByteBufferAllocator

        func open() {
            try? channel.syncOptions?.setOption(.recvAllocator, value: allocator)
        }
    }

    /// Keeps NIO from reading from a channel; returns nil if the channel is already closed.
    ///
    /// Call it on the channel's event loop.
    static func close(on channel: any Channel) -> Reopening? {
        guard let options = channel.syncOptions, let allocator = try? options.getOption(.recvAllocator) else { return nil }
        try? options.setOption(.recvAllocator, value: ClosedIntake())
        return Reopening(channel: channel, allocator: allocator)
    }
}
