// SPDX-License-Identifier: Apache-2.0

import HTTPTransport
import LoadingTestKit
import NIOCore
import NIOPosix
import Testing

@Suite struct RecycledBuffersTests {
    private static let size = 1_048_576
    private static let ordinarySize = 262_144
    private static var blocks: RecycledBuffers { RecycledBuffers(size: size, limit: 3) }

    private static func piece(of block: inout ByteBuffer, _ byte: UInt8, count: Int) -> ByteBuffer? {
        block.writeRepeatingByte(byte, count: count)
        return block.getSlice(at: 0, length: count)
    }

    @Test func `a kept piece is not overwritten by later reads`() throws {
        var blocks = Self.blocks
        var kept: [ByteBuffer] = []
        for number in 0..<300 {
            var block = blocks.take(otherwise: Self.ordinarySize)
            let piece = try #require(Self.piece(of: &block, UInt8(truncatingIfNeeded: number), count: 65_536))
            blocks.remember(piece)
            if number.isMultiple(of: 3) { kept.append(piece) }
        }
        for (index, piece) in kept.enumerated() {
            #expect(piece.readableBytesView.allSatisfy { $0 == UInt8(truncatingIfNeeded: index * 3) })
        }
    }

    @Test func `a released block is used again`() throws {
        var blocks = Self.blocks
        var places: Set<Int> = []
        for number in 0..<50 {
            var block = blocks.take(otherwise: Self.ordinarySize)
            #expect(block.readableBytes == 0 && block.capacity == Self.size)
            let piece = try #require(Self.piece(of: &block, UInt8(number), count: 1_000))
            places.insert(piece.withUnsafeReadableBytes { Int(bitPattern: $0.baseAddress) })
            blocks.remember(piece)
        }
        // The previous piece may still be referenced when the next block is taken, so that two blocks alternate.
        #expect(places.count <= 2)
    }

    @Test func `while all blocks are in use, reads allocate only what they need`() throws {
        var blocks = Self.blocks
        var kept: [ByteBuffer] = []
        for _ in 0..<40 {
            var block = blocks.take(otherwise: Self.ordinarySize)
            let piece = try #require(Self.piece(of: &block, 1, count: 100_000))
            blocks.remember(piece)
            kept.append(piece)
        }
        #expect(kept.filter { $0.storageCapacity == Self.size }.count == 3)
        #expect(kept.map(\.storageCapacity).reduce(0, +) < 16 << 20)
    }

    @Test func `blocks whose pieces are never released are replaced eventually`() throws {
        var blocks = Self.blocks
        var kept: [ByteBuffer] = []
        for _ in 0..<4 {
            var block = blocks.take(otherwise: Self.ordinarySize)
            let piece = try #require(Self.piece(of: &block, 1, count: 1_000))
            blocks.remember(piece)
            kept.append(piece)
        }
        let sizes = (0..<100).map { _ in
            let block = blocks.take(otherwise: Self.ordinarySize)
            blocks.remember(block)
            return block.capacity
        }
        #expect(sizes.first.map { $0 < Self.size } == true && sizes.last == Self.size)
        #expect(kept.count == 4)
    }
}

@Suite(.timeLimit(.minutes(1))) struct BulkReadingTests {
    /// Runs `body` with a connection to a server that sends nothing, on the connection's loop.
    private func withChannel(_ body: @Sendable @escaping (any Channel) throws -> Void) async throws {
        try await withScriptedServer(reply: { _ in [.stall] }) { (server) async throws in
            let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .connect(host: "127.0.0.1", port: server.port).get()
            try await channel.eventLoop.submit { try body(channel) }.get()
            try? await channel.close()
        }
    }

    /// The number of bytes from which the socket counts as readable.
    private static func mark(_ channel: any Channel) throws -> Int {
        let options = try #require(channel.syncOptions)
        return Int(try options.getOption(.socketOption(.init(rawValue: 18))))
    }

    private static func readSize(_ channel: any Channel) throws -> Int {
        try #require(channel.syncOptions).getOption(.recvAllocator).buffer(allocator: ByteBufferAllocator()).capacity
    }

    private static func hasBlocks(_ channel: any Channel) throws -> Bool { try readSize(channel) == BulkReading.blockSize }

    private static func reads(_ channel: any Channel, inBlocks: Bool, from least: Int) throws -> Bool {
        let now = (try hasBlocks(channel), try mark(channel))
        return now == (inBlocks, least)
    }

    private static let whole: Int64 = 1 << 30

    private static func read(
        _ reading: BulkReading, _ count: Int64, after time: TimeAmount, _ state: inout (received: Int64, now: NIODeadline)
    ) {
        state.received += count
        state.now = state.now + time
        if count <= BulkReading.blockSize / 4 { reading.noteSmall(ByteBuffer()) }
        reading.noteRead(nil, received: state.received, missing: whole - state.received, now: state.now)
    }

    @Test func `a fast body is read in large pieces, and the channel then reads as before`() async throws {
        try await withChannel { channel in
            var state = (received: Int64(0), now: NIODeadline.now())
            let reading = BulkReading(channel, .passedOn, received: 0, now: state.now)
            try #expect(Self.reads(channel, inBlocks: false, from: 1))
            Self.read(reading, 1_000_000, after: .microseconds(300), &state)
            try #expect(Self.reads(channel, inBlocks: false, from: 1))
            Self.read(reading, 1_000_000, after: .milliseconds(1), &state)
            try #expect(Self.reads(channel, inBlocks: true, from: 786_432))
            reading.stop()
            try #expect(Self.reads(channel, inBlocks: false, from: 1))
        }
    }

    @Test func `a body that is copied is read in pieces that fit the processor's cache`() async throws {
        try await withChannel { channel in
            let size = BulkReading.Manner.copied.readSize
            var state = (received: Int64(0), now: NIODeadline.now())
            let reading = BulkReading(channel, .copied, received: 0, now: state.now)
            for _ in 0..<2 { Self.read(reading, Int64(size), after: .microseconds(600), &state) }
            try #expect(Self.readSize(channel) == size && Self.mark(channel) == 196_608)
            // The last of the missing bytes may already have been read from the socket, and wait for the rest of their TLS
            // record.
            state.received = Self.whole - 500_000
            Self.read(reading, Int64(size), after: .microseconds(600), &state)
            try #expect(Self.readSize(channel) == size && Self.mark(channel) == 196_608)
            Self.read(reading, 20_000, after: .microseconds(60), &state)
            try #expect(Self.readSize(channel) == size && Self.mark(channel) == 1)
            for count in [65_000, 65_000, 1, 2, 3, 4] { reading.noteSmall(ByteBuffer(repeating: 0, count: count)) }
            try #expect(Self.readSize(channel) == size)
            #expect(reading.noteSmall(ByteBuffer()))
            try #expect(Self.readSize(channel) < size)
        }
    }

    @Test func `a slow body is read without waiting`() async throws {
        try await withChannel { channel in
            var state = (received: Int64(0), now: NIODeadline.now())
            let reading = BulkReading(channel, .passedOn, received: 0, now: state.now)
            for _ in 0..<100 { Self.read(reading, 65_536, after: .milliseconds(1), &state) }
            try #expect(Self.reads(channel, inBlocks: false, from: 1))
        }
    }

    @Test func `a fast body that becomes slow is read without blocks`() async throws {
        try await withChannel { channel in
            var state = (received: Int64(0), now: NIODeadline.now())
            let reading = BulkReading(channel, .passedOn, received: 0, now: state.now)
            for _ in 0..<10 { Self.read(reading, 1_000_000, after: .milliseconds(1), &state) }
            #expect(try Self.hasBlocks(channel))
            for _ in 0..<20 { Self.read(reading, 65_536, after: .milliseconds(1), &state) }
            try #expect(Self.reads(channel, inBlocks: false, from: 1))
        }
    }

    @Test func `a fast body that starts to drip keeps no blocks`() async throws {
        try await withChannel { channel in
            var state = (received: Int64(0), now: NIODeadline.now())
            let reading = BulkReading(channel, .passedOn, received: 0, now: state.now)
            for _ in 0..<10 { Self.read(reading, 1_000_000, after: .milliseconds(1), &state) }
            #expect(try Self.hasBlocks(channel))
            // Only bodies that are copied report reads of a few bytes.
            for _ in 0..<8 { reading.noteSmall(ByteBuffer(bytes: [0])) }
            try #expect(Self.reads(channel, inBlocks: false, from: 1))
        }
    }

    @Test func `reading never waits for more than the missing bytes`() async throws {
        try await withChannel { channel in
            var state = (received: Self.whole - 10_500_000, now: NIODeadline.now())
            let reading = BulkReading(channel, .passedOn, received: state.received, now: state.now)
            for _ in 0..<9 {
                Self.read(reading, 1_000_000, after: .milliseconds(1), &state)
                try #expect(Self.reads(channel, inBlocks: true, from: 720_896))
            }
            Self.read(reading, 1_000_000, after: .milliseconds(1), &state)
            try #expect(Self.reads(channel, inBlocks: true, from: 1))
        }
    }

    @Test func `received bytes are read even if no more arrive`() async throws {
        try await withScriptedServer(reply: { _ in [.stall] }) { (server) async throws in
            let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .connect(host: "127.0.0.1", port: server.port).get()
            try await channel.eventLoop.submit {
                var state = (received: Int64(0), now: NIODeadline.now())
                let reading = BulkReading(channel, .passedOn, received: 0, now: state.now)
                Self.read(reading, 1_000_000, after: .milliseconds(1), &state)
                try #expect(Self.reads(channel, inBlocks: true, from: 720_896))
            }.get()
            while try await channel.eventLoop.submit({ try Self.mark(channel) }).get() > 1 { await Task.yield() }
            try? await channel.close()
        }
    }
}
