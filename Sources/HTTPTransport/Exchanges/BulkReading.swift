//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import CLoadingSystem
package import NIOCore

/// Reads a large body that comes fast in few and large pieces.
///
/// Every read costs a look at the socket, a piece, and as a rule a hop to the client; a read as soon as something has come finds little.
/// So while this goes on, the socket counts as readable only when much has come, and what comes is read into ``ReadBlocks``. Where nothing
/// was read for ``patience``, whatever is there is read after all.
///
/// Confined to the channel's event loop.
package final class BulkReading {
    /// From how many bytes in a millisecond on a body comes fast.
    private static let fastRate: Int64 = 524_288
    /// How long the rate is measured.
    private static let measuringTime = TimeAmount.milliseconds(1)
    /// A server may say anything of how much it sends.
    private static let mostMeasured: Int64 = 1 << 40
    /// For how much is waited at most.
    private static let largestMark: Int64 = 786_432
    /// For how long.
    private static let patience = TimeAmount.milliseconds(2)
    /// Reads of less are for buffers of another size.
    private static let smallRead = ReadBlocks.size / 4
    /// After so many of them in a row it is over.
    private static let mostSmallReads = 8

    private let channel: any Channel
    private let blocks = ReadBlocks()
    /// Bytes in a millisecond.
    private var rate: Int64 = 0
    /// How the channel read before; nil where it reads so still.
    private var earlier: (allocator: any RecvByteBufferAllocator, reads: UInt)?
    /// How much has to be there to be read; 0 where anything is.
    private var mark: Int64 = 0
    private var isWatching = false
    private var smallReads = 0
    private var lastRead: NIODeadline
    private var received: Int64
    private var measured: (since: NIODeadline, received: Int64)

    package init(_ channel: any Channel, received: Int64, now: NIODeadline) {
        self.channel = channel
        self.received = received
        lastRead = now
        measured = (now, received)
    }

    /// So many bytes of the body were read so far, of which `piece` is the end, and so many are missing.
    package func noteRead(_ piece: ByteBuffer?, received: Int64, missing: Int64, now: NIODeadline) {
        let count = received - self.received
        self.received = received
        lastRead = now
        if earlier != nil {
            if let piece, count > 0 { blocks.remember(piece) }
            if count > Self.smallRead { smallReads = 0 }
        }
        let time = (now - measured.since).nanoseconds
        if time >= Self.measuringTime.nanoseconds {
            // One bad millisecond is no other rate yet.
            rate = max(min(received - measured.received, Self.mostMeasured) * 1_000_000 / time, rate / 2)
            measured = (now, received)
            if rate >= Self.fastRate {
                begin()
            } else if count < ReadBlocks.size {
                // It is not this side that is slow.
                setMark(0)
            }
        }
        // The socket would never have that much.
        if missing < mark { setMark(0) }
    }

    /// Little was read into a block, and is copied out of it.
    package func noteSmall(_ piece: ByteBuffer) {
        guard earlier != nil else { return }
        blocks.remember(piece)
        smallReads += 1
        if smallReads >= Self.mostSmallReads { stop() }
    }

    /// The channel reads as it did before, and no block is kept.
    package func stop() {
        setMark(0)
        smallReads = 0
        blocks.removeAll()
        guard let earlier else { return }
        self.earlier = nil
        try? channel.syncOptions?.setOption(.maxMessagesPerRead, value: earlier.reads)
        try? channel.syncOptions?.setOption(.recvAllocator, value: earlier.allocator)
    }

    private func begin() {
        if earlier == nil {
            guard let options = channel.syncOptions, let allocator = try? options.getOption(.recvAllocator),
                let reads = try? options.getOption(.maxMessagesPerRead)
            else { return }
            earlier = (allocator, reads)
            try? options.setOption(.maxMessagesPerRead, value: 1)
            try? options.setOption(.recvAllocator, value: BlockReads(blocks: blocks))
        }
        setMark(min(rate * 3 / 4 / 65_536 * 65_536, Self.largestMark))
    }

    private func setMark(_ new: Int64) {
        guard mark != new else { return }
        mark = new
        _ = try? channel.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) {
            cls_set_low_water($0, CInt(max(new, 1)))
        }
        if new > 0 { watch() }
    }

    /// Sees to it that little is read, too, where no more comes.
    private func watch() {
        guard !isWatching else { return }
        isWatching = true
        channel.eventLoop.assumeIsolated().scheduleTask(deadline: lastRead + Self.patience) { [self] in
            isWatching = false
            guard mark > 0 else { return }
            if NIODeadline.now() - lastRead >= Self.patience { setMark(0) } else { watch() }
        }
    }
}

/// Has the channel read into blocks.
///
/// Without a hint about sizes, and where sizes may grow, NIO keeps no buffers of its own but the one that it had.
private struct BlockReads: RecvByteBufferAllocator {
    let blocks: ReadBlocks

    func buffer(allocator: ByteBufferAllocator) -> ByteBuffer { blocks.take() }
    mutating func record(actualReadBytes: Int) -> Bool { true }
}
