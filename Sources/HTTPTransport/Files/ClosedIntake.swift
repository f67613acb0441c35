//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import NIOCore

/// Keeps NIO from taking bytes out of a socket that is lent to a ``SplicePump``.
///
/// Without automatic reading NIO still reads everything once it learns that the peer has closed its side. With this in place it
/// asks the socket for no bytes, is told that it got none, takes that for the end, and closes the channel; the bytes stay where
/// they are.
struct ClosedIntake: RecvByteBufferAllocator {
    func buffer(allocator: ByteBufferAllocator) -> ByteBuffer { ByteBuffer() }
    mutating func record(actualReadBytes: Int) -> Bool { false }

    /// Reading as it was before.
    struct Reopening {
        fileprivate let channel: any Channel
        fileprivate let allocator: any RecvByteBufferAllocator

        func open() {
            try? channel.syncOptions?.setOption(.recvAllocator, value: allocator)
        }
    }

    /// Stops the intake of a channel, on its event loop; answers nil where the channel is closed already.
    static func close(on channel: any Channel) -> Reopening? {
        guard let options = channel.syncOptions, let allocator = try? options.getOption(.recvAllocator) else { return nil }
        try? options.setOption(.recvAllocator, value: ClosedIntake())
        return Reopening(channel: channel, allocator: allocator)
    }
}
