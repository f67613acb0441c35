// SPDX-License-Identifier: Apache-2.0

import CLoadingSystem
package import NIOCore

/// Reads a large, fast body in few and large pieces.
///
/// Every read costs a system call, a buffer, and usually a thread switch to the client. A read right after the first bytes have
/// arrived finds little data. While the body is fast, the socket therefore becomes readable only when many bytes have arrived
/// (SO_RCVLOWAT), and is read into reusable blocks. After ``patience`` without a read, all bytes that have arrived are read.
///
/// Confined to the channel's event loop.
package final class BulkReading {
    /// The parameters for reading: ``passedOn`` for bodies that are delivered as read, and ``copied`` for bodies that are decrypted
    /// or unframed first.
    package struct Manner: Sendable {
        /// The minimum rate of a fast body, in bytes per millisecond.
        fileprivate let fastRate: Int64
        /// The maximum low-water mark, in bytes.
        fileprivate let largestMark: Int64
        /// The maximum size of a read.
        package let readSize: Int
        /// The maximum number of bytes that were read but not delivered yet.
        fileprivate let withheld: Int64

        /// Reads smaller than this do not justify a large buffer.
        fileprivate var smallRead: Int { readSize / 4 }

        package static let passedOn = Manner(fastRate: 524_288, largestMark: 786_432, readSize: blockSize, withheld: 0)
        /// The parameters for copied bodies: the data of a read and their copy together fit into the processor's cache.
        ///
        /// An incomplete record or frame stays in the buffer until its end arrives.
        package static let copied = Manner(fastRate: 262_144, largestMark: 196_608, readSize: 262_144, withheld: 32_768)
    }

    package static let blockSize = 1_048_576
    /// The minimum interval over which the rate is measured.
    private static let measuringTime = TimeAmount.milliseconds(1)
    /// Limits the measured byte count, so that the computation of the rate does not overflow.
    private static let maximumMeasured: Int64 = 1 << 40
    /// How long to wait for the low-water mark.
    private static let patience = TimeAmount.milliseconds(2)
    /// The number of consecutive small reads after which the large buffers are released.
    private static let maximumSmallReads = 8

    private let channel: any Channel
    private let manner: Manner
    private let blockReads = BlockReads()
    /// The rate in bytes per millisecond.
    private var rate: Int64 = 0
    /// The channel's previous settings; nil while they are unchanged.
    private var earlier: (allocator: any RecvByteBufferAllocator, reads: UInt)?
    /// The low-water mark; 0 for none.
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

    /// Notes a read: `piece` contains the latest body bytes, `received` have arrived so far, and `missing` are still to come.
    ///
    /// - Returns: Whether the next read will be large, too.
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
            // A single slow millisecond at most halves the rate.
            rate = max(min(received - measured.received, Self.maximumMeasured) * 1_000_000 / time, rate / 2)
            measured = (now, received)
            if rate >= manner.fastRate {
                begin()
            } else if count < manner.readSize - Int(manner.withheld) {
                // The reader keeps up, so the sender is slow.
                setMark(0)
            }
        }
        // If fewer bytes than the mark are missing, the socket would never become readable.
        if missing < mark + manner.withheld { setMark(0) }
        return mark > 0
    }

    /// Notes a small read into a block; the caller copies the bytes.
    ///
    /// - Returns: Whether the blocks were released because small reads are frequent.
    @discardableResult
    package func noteSmall(_ piece: ByteBuffer) -> Bool {
        guard earlier != nil, piece.readableBytes <= manner.smallRead else { return false }
        blockReads.blocks.remember(piece)
        smallReads += 1
        guard smallReads >= Self.maximumSmallReads else { return false }
        stop()
        return true
    }

    /// Restores the channel's settings, and releases the blocks.
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

    /// Lowers the mark if no more bytes arrive, so that the rest is read.
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
    /// Returns the allocator of blocks, or, for copied data, an allocator of buffers of a fixed size.
    ///
    /// Copied data have left the buffer before the next read, so NIO needs only one buffer.
    fileprivate func allocator(_ reads: BlockReads) -> any RecvByteBufferAllocator {
        readSize == BulkReading.blockSize ? reads : FixedSizeRecvByteBufferAllocator(capacity: readSize)
    }
}

/// Makes the channel read into blocks.
///
/// The allocator does not predict the next size, and tells NIO that sizes may grow, so NIO keeps only the last buffer.
//
// `@unchecked`: only accessed on the channel's event loop.
private final class BlockReads: RecvByteBufferAllocator, @unchecked Sendable {
    /// The size of reads while all blocks are in use.
    private static let ordinarySize = 262_144

    var blocks = RecycledBuffers(size: BulkReading.blockSize, limit: 3)

    func buffer(allocator: ByteBufferAllocator) -> ByteBuffer { blocks.take(otherwise: Self.ordinarySize) }
    func record(actualReadBytes: Int) -> Bool { true }
}
