// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import HTTPTransport
import LoadingModel
import LoadingTestKit
import NIOCore
import NIOPosix
import Testing

@Suite(.serialized, .timeLimit(.minutes(1))) struct SplicePumpTests {
    let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    @Test(arguments: [1, 100_000, 20_000_000])
    func `exactly the requested bytes are moved into the file, and the rest stays in the socket`(_ count: Int) async throws {
        let pair = try await ConnectedPair()
        let sink = try await FileSink.create(in: directory.path, expectedLength: Int64(count) + 4)
        try await sink.write(ByteBuffer(string: "head"))
        try await sink.flush()
        let run = try await PumpRun(pair.client, sink, Int64(count))
        let body = Self.bytes(count)
        pair.server.write(body + Array("tail".utf8))
        guard case .finished(let moved) = try await run.end else { throw Unexpected() }
        #expect(moved == Int64(count))
        #expect(try await sink.close() == Int64(count) + 4)
        #expect(try Data(contentsOf: URL(fileURLWithPath: sink.path)) == Data(Array("head".utf8) + body))
        #expect(try await pair.client.nextBytes(4) == Array("tail".utf8))
        try await pair.close()
    }

    @Test func `a peer that closes at once loses no sent bytes`() async throws {
        for _ in 0..<20 {
            let pair = try await ConnectedPair()
            let sink = try await FileSink.create(in: directory.path)
            let body = Self.bytes(3_000_000)
            let run = try await PumpRun(pair.client, sink, Int64(body.count))
            pair.server.write(body)
            pair.server.close()
            guard case .finished(let moved) = try await run.end else { throw Unexpected() }
            #expect(moved == Int64(body.count))
            _ = try await sink.close()
            #expect(try Data(contentsOf: URL(fileURLWithPath: sink.path)) == Data(body))
            try await pair.client.channel.closeFuture.get()
            #expect(try await pair.client.received == [])
        }
    }

    @Test func `a peer that closes too early is reported, and its bytes are in the file`() async throws {
        let pair = try await ConnectedPair()
        let sink = try await FileSink.create(in: directory.path)
        let body = Self.bytes(1_500_000)
        let run = try await PumpRun(pair.client, sink, 2_000_000)
        pair.server.write(body)
        pair.server.close()
        guard case .peerClosed(let moved) = try await run.end else { throw Unexpected() }
        #expect(moved == 1_500_000)
        #expect(try await sink.close() == 1_500_000)
        #expect(try Data(contentsOf: URL(fileURLWithPath: sink.path)) == Data(body))
    }

    @Test func `a reset is reported`() async throws {
        let pair = try await ConnectedPair()
        let sink = try await FileSink.create(in: directory.path)
        let run = try await PumpRun(pair.client, sink, 2_000_000)
        pair.server.reset()
        guard case .socketFailed(_, let error) = try await run.end else { throw Unexpected() }
        #expect(error.code == ECONNRESET)
        await sink.abort()
    }

    @Test func `a paused pump reads nothing, and continues when it is resumed`() async throws {
        let pair = try await ConnectedPair()
        let sink = try await FileSink.create(in: directory.path)
        let body = Self.bytes(64 << 20)
        let run = try await PumpRun(pair.client, sink, Int64(body.count))
        run.pump.pause()
        let taken = await pair.server.writeUntilStuck(body)
        #expect(taken < body.count / 2)
        #expect(try Data(contentsOf: URL(fileURLWithPath: sink.path)).count < body.count / 2)
        run.pump.resume()
        pair.server.write(Array(body[taken...]))
        guard case .finished(let total) = try await run.end else { throw Unexpected() }
        #expect(total == Int64(body.count))
        #expect(try await sink.close() == total)
        #expect(try Data(contentsOf: URL(fileURLWithPath: sink.path)) == Data(body))
        try await pair.close()
    }

    @Test func `a cancelled pump ends, even if it is paused or waits`() async throws {
        for isPaused in [false, true] {
            let pair = try await ConnectedPair()
            let sink = try await FileSink.create(in: directory.path)
            let run = try await PumpRun(pair.client, sink, 1_000)
            if isPaused { run.pump.pause() }
            run.pump.cancel()
            run.pump.resume()
            guard case .cancelled(let moved) = try await run.end else { throw Unexpected() }
            #expect(moved == 0)
            await sink.abort()
            try await pair.close()
        }
        #expect(try directory.names.isEmpty)
    }

    @Test func `progress is reported while little arrives`() async throws {
        let pair = try await ConnectedPair()
        let sink = try await FileSink.create(in: directory.path)
        let run = try await PumpRun(pair.client, sink, 20)
        pair.server.write(Self.bytes(10))
        #expect(try await run.firstProgress == 10)
        pair.server.write(Self.bytes(10))
        guard case .finished(20) = try await run.end else { throw Unexpected() }
        _ = try await sink.close()
        try await pair.close()
    }

    @Test func `a full disk fails the pump`() async throws {
        let pair = try await ConnectedPair()
        let name = try directory.write([1], to: "name")
        let sink = FileSink(path: name.path, descriptor: open("/dev/full", O_WRONLY | O_CLOEXEC), written: 0)
        let run = try await PumpRun(pair.client, sink, 5_000_000)
        pair.server.write(Self.bytes(100_000))
        guard case .fileFailed(_, let error) = try await run.end else { throw Unexpected() }
        #expect(error.kind == .cannotWriteToFile)
        await sink.abort()
        #expect(try directory.names.isEmpty)
        try await pair.close()
    }

    @Test func `a file that does not support splicing is written with ordinary calls`() async throws {
        let pair = try await ConnectedPair()
        let name = try directory.write(Array("before ".utf8), to: "name")
        // Linux does not splice into a file that is opened for appending.
        let sink = FileSink(path: name.path, descriptor: open(name.path, O_WRONLY | O_APPEND | O_CLOEXEC), written: 7)
        let body = Self.bytes(3_000_000)
        let run = try await PumpRun(pair.client, sink, Int64(body.count))
        pair.server.write(body)
        guard case .finished(let moved) = try await run.end else { throw Unexpected() }
        #expect(moved == Int64(body.count))
        #expect(try await sink.close() == Int64(body.count) + 7)
        #expect(try Data(contentsOf: name) == Data(Array("before ".utf8) + body))
        try await pair.close()
    }

    @Test func `a closed channel cannot be pumped`() async throws {
        let pair = try await ConnectedPair()
        let sink = try await FileSink.create(in: directory.path)
        try await pair.client.channel.close()
        await #expect(throws: Unexpected.self) { try await PumpRun(pair.client, sink, 10).end }
        await sink.abort()
    }

    private static func bytes(_ count: Int) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: count) { room, filled in
            for index in 0..<count { room[index] = UInt8(truncatingIfNeeded: index &* 2_654_435_761 >> 13) }
            filled = count
        }
    }
}

private struct Unexpected: Error {}

/// A pump, and what it reported.
private struct PumpRun {
    let pump: SplicePump
    private let endFuture: EventLoopFuture<SplicePump.End>
    private let progressFuture: EventLoopFuture<Int64>

    init(_ client: Client, _ sink: FileSink, _ count: Int64) async throws {
        let channel = client.channel
        (pump, endFuture, progressFuture) = try await channel.eventLoop.submit {
            let end = channel.eventLoop.makePromise(of: SplicePump.End.self)
            let progress = channel.eventLoop.makePromise(of: Int64.self)
            let pump = SplicePump.start(on: channel, into: sink, count: count) {
                progress.succeed($0)
            } ended: {
                progress.fail(Unexpected())
                end.succeed($0)
            }
            guard let pump else {
                progress.fail(Unexpected())
                end.fail(Unexpected())
                throw Unexpected()
            }
            return (pump, end.futureResult, progress.futureResult)
        }.get()
    }

    var end: SplicePump.End { get async throws { try await endFuture.get() } }
    var firstProgress: Int64 { get async throws { try await progressFuture.get() } }
}

/// A NIO channel, and a plain socket at its other end.
private struct ConnectedPair {
    let client: Client
    let server: Server

    init() async throws {
        let listener = try PlainListener()
        let collector = Collector()
        let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelOption(.autoRead, value: false)
            .channelInitializer { $0.pipeline.addHandler(collector) }
            .connect(host: "127.0.0.1", port: listener.port).get()
        client = Client(channel: channel, collector: collector)
        server = Server(descriptor: listener.accept())
    }

    func close() async throws {
        server.close()
        try? await client.channel.close()
    }
}

private struct Client {
    let channel: any Channel
    fileprivate let collector: Collector

    var received: [UInt8] {
        get async throws { try await channel.eventLoop.submit { collector.bytes }.get() }
    }

    func nextBytes(_ count: Int) async throws -> [UInt8] {
        while try await received.count < count {
            let read = try await channel.eventLoop.submit { collector.nextRead(channel) }.get()
            try await read.get()
        }
        return try await received
    }
}

/// Confined to the channel's event loop.
private final class Collector: ChannelInboundHandler, @unchecked Sendable {
    typealias InboundIn = ByteBuffer
    var bytes: [UInt8] = []
    private var promise: EventLoopPromise<Void>?

    func nextRead(_ channel: any Channel) -> EventLoopFuture<Void> {
        let promise = channel.eventLoop.makePromise(of: Void.self)
        self.promise = promise
        channel.read()
        return promise.futureResult
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        bytes += unwrapInboundIn(data).readableBytesView
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        promise?.succeed()
        promise = nil
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    func channelInactive(context: ChannelHandlerContext) {
        promise?.fail(Unexpected())
        promise = nil
    }
}

private struct PlainListener {
    private let descriptor: CInt
    let port: Int

    init() throws {
        descriptor = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let descriptor = descriptor
        let status = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(descriptor, address, length) | listen(descriptor, 1) | getsockname(descriptor, address, &length)
            }
        }
        guard status == 0 else { throw Unexpected() }
        port = Int(UInt16(bigEndian: address.sin_port))
    }

    func accept() -> CInt {
        defer { Glibc.close(descriptor) }
        return Glibc.accept(descriptor, nil, nil)
    }
}

/// The peer, whose blocking calls run one after the other on a queue of their own.
private struct Server {
    private let descriptor: CInt
    private let queue = DispatchQueue(label: "peer")

    init(descriptor: CInt) { self.descriptor = descriptor }

    func write(_ bytes: [UInt8]) {
        queue.async { [descriptor] in
            var rest = bytes[...]
            while !rest.isEmpty {
                let count = rest.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL)) }
                guard count > 0 else { return }
                rest = rest.dropFirst(count)
            }
        }
    }

    /// Writes until everything is written or the peer has read nothing for a while; returns the number of bytes written.
    func writeUntilStuck(_ bytes: [UInt8]) async -> Int {
        await withCheckedContinuation { continuation in
            queue.async { [descriptor] in
                var total = 0
                while total < bytes.count {
                    let count = bytes.withUnsafeBytes {
                        send(descriptor, $0.baseAddress?.advanced(by: total), $0.count - total, CInt(MSG_NOSIGNAL | MSG_DONTWAIT))
                    }
                    total += max(0, count)
                    var watched = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                    if count < 0, poll(&watched, 1, 200) == 0 { break }
                }
                continuation.resume(returning: total)
            }
        }
    }

    func close() {
        queue.async { [descriptor] in _ = Glibc.close(descriptor) }
    }

    func reset() {
        queue.async { [descriptor] in
            var option = linger(l_onoff: 1, l_linger: 0)
            setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
            _ = Glibc.close(descriptor)
        }
    }
}
