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
/// So while this goes on, the socket counts as readable only when much has come, and what comes is read into blocks that are used again.
/// Where nothing was read for ``patience``, whatever is there is read after all.
///
/// Confined to the channel's event loop.
package final class BulkReading {
    /// What differs between a body that is handed on as it was read, and one that is copied, as it is decrypted or taken out of frames first.
    package struct Manner: Sendable {
        /// From how many bytes in a millisecond on a body comes fast.
        fileprivate let fastRate: Int64
        /// For how much is waited at most.
        fileprivate let largestMark: Int64
        /// How much is read at most in one go.
        package let readSize: Int
        /// Of what was read, so much may not be in the body yet.
        fileprivate let withheld: Int64

        /// Reads of less are for buffers of another size.
        fileprivate var smallRead: Int { readSize / 4 }

        package static let handedOn = Manner(fastRate: 524_288, largestMark: 786_432, readSize: blockSize, withheld: 0)
        /// What is read and what is copied have room in the processor's own cache; the rest of a record or frame waits for its end.
        package static let copied = Manner(fastRate: 262_144, largestMark: 196_608, readSize: 262_144, withheld: 32_768)
    }

    package static let blockSize = 1_048_576
    /// How long the rate is measured.
    private static let measuringTime = TimeAmount.milliseconds(1)
    /// A server may say anything of how much it sends.
    private static let mostMeasured: Int64 = 1 << 40
    /// How long is waited for much to come.
    private static let patience = TimeAmount.milliseconds(2)
    /// After so many of them in a row it is over.
    private static let mostSmallReads = 8

    private let channel: any Channel
    private let manner: Manner
    private let blockReads = BlockReads()
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

    package init(_ channel: any Channel, _ manner: Manner, received: Int64, now: NIODeadline) {
        self.channel = channel
        self.manner = manner
        self.received = received
        lastRead = now
        measured = (now, received)
    }

    /// So many bytes of the body were read so far, of which `piece` is the end, and so many are missing.
    ///
    /// - Returns: Whether what is read next is much, too.
    @discardableResult
    package func noteRead(_ piece: ByteBuffer?, received: Int64, missing: Int64, now: NIODeadline) -> Bool {
        let count = received - self.received
        self.received = received
        lastRead = now
        if earlier != nil {
            if let piece, count > 0 { blockReads.blocks.remember(piece) }
            if count > manner.smallRead { smallReads = 0 }
        }
        let time = (now - measured.since).nanoseconds
        if time >= Self.measuringTime.nanoseconds {
            // One bad millisecond is no other rate yet.
            rate = max(min(received - measured.received, Self.mostMeasured) * 1_000_000 / time, rate / 2)
            measured = (now, received)
            if rate >= manner.fastRate {
                begin()
            } else if count < manner.readSize - Int(manner.withheld) {
                // It is not this side that is slow.
                setMark(0)
            }
        }
        // The socket would never have that much.
        if missing < mark + manner.withheld { setMark(0) }
        return mark > 0
    }

    /// Little was read into a block, and is copied out of it.
    ///
    /// - Returns: Whether so little came so often that it is over.
    @discardableResult
    package func noteSmall(_ piece: ByteBuffer) -> Bool {
        guard earlier != nil, piece.readableBytes <= manner.smallRead else { return false }
        blockReads.blocks.remember(piece)
        smallReads += 1
        guard smallReads >= Self.mostSmallReads else { return false }
        stop()
        return true
    }

    /// The channel reads as it did before, and no block is kept.
    package func stop() {
        setMark(0)
        smallReads = 0
        blockReads.blocks.removeAll()
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
            try? options.setOption(.recvAllocator, value: manner.allocator(blockReads))
        }
        setMark(min(rate * 3 / 4 / 65_536 * 65_536, manner.largestMark))
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

extension BulkReading.Manner {
    /// What is copied is out of the way before the next read, and NIO uses the one buffer over and over.
    fileprivate func allocator(_ reads: BlockReads) -> any RecvByteBufferAllocator {
        readSize == BulkReading.blockSize ? reads : FixedSizeRecvByteBufferAllocator(capacity: readSize)
    }
}

/// Has the channel read into blocks.
///
/// Without a hint about sizes, and where sizes may grow, NIO keeps no buffers of its own but the one that it had.
//
// `@unchecked`: touched on the channel's event loop alone.
private final class BlockReads: RecvByteBufferAllocator, @unchecked Sendable {
    /// How much is read at a time while all blocks are out.
    private static let ordinarySize = 262_144

    var blocks = RecycledBuffers(size: BulkReading.blockSize, limit: 3)

    func buffer(allocator: ByteBufferAllocator) -> ByteBuffer { blocks.take(otherwise: Self.ordinarySize) }
    func record(actualReadBytes: Int) -> Bool { true }
}
