// SPDX-License-Identifier: Apache-2.0

import NIOCore
import NIOPosix

/// A relay on its own UDP port before a server on loopback, which treats datagrams as a bad network does.
///
/// What happens to a datagram depends on a seed and on its number.
package final class UDPRelay: Sendable {
    /// What happens to datagrams, with probabilities from 0 to 1.
    package struct Weather: Sendable {
        package var loss = 0.0
        package var duplication = 0.0
        /// One byte is changed.
        package var corruption = 0.0
        /// The delay of a datagram in milliseconds; a range of more than one value reorders them.
        package var delay: ClosedRange<Int> = 0...0

        package init(loss: Double = 0, duplication: Double = 0, corruption: Double = 0, delay: ClosedRange<Int> = 0...0) {
            self.loss = loss
            self.duplication = duplication
            self.corruption = corruption
            self.delay = delay
        }
    }

    package struct Counts: Sendable {
        /// Datagrams from clients, and from the server.
        package var fromClients = 0
        package var fromServer = 0
        package var lost = 0
        package var duplicated = 0
        package var corrupted = 0
        package var bytes = 0
        /// The number of addresses of clients.
        package var clients = 0
    }

    private struct State: Sendable {
        var weather: Weather
        var counts = Counts()
        var isBlackHole = false
        var random: UInt64
        /// The relay's sockets to the server, by the address of the client.
        var servers: [SocketAddress: EventLoopFuture<any Channel>] = [:]

        /// A number below 1 (SplitMix64).
        mutating func chance() -> Double {
            random &+= 0x9E37_79B9_7F4A_7C15
            var mixed = (random ^ (random >> 30)) &* 0xBF58_476D_1CE4_E5B9
            mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
            return Double((mixed ^ (mixed >> 31)) >> 11) / Double(1 << 53)
        }
    }

    /// What becomes of one datagram.
    private struct Fate {
        var copies: Int
        var corrupted: Double?
        var delay: Int64
    }

    private static let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)

    package let port: Int
    private let channel: any Channel
    private let server: Int
    private let state: Watched<State>

    private init(channel: any Channel, server: Int, state: Watched<State>) {
        self.channel = channel
        self.server = server
        self.state = state
        port = channel.localAddress?.port ?? 0
    }

    /// Starts a relay to a server's port on 127.0.0.1; its own port is one that the system chooses, unless one is given.
    package static func start(
        to server: Int, _ weather: Weather = Weather(), seed: UInt64 = 1, port: Int = 0
    ) async throws -> UDPRelay {
        let state = Watched(State(weather: weather, random: seed))
        let channel = try await bootstrap().bind(host: "127.0.0.1", port: port).get()
        let relay = UDPRelay(channel: channel, server: server, state: state)
        try await channel.pipeline.addHandler(UDPReader { relay.takeFromClient($0) }).get()
        return relay
    }

    private static func bootstrap() -> DatagramBootstrap {
        DatagramBootstrap(group: group)
            .channelOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: 65_536))
            .channelOption(.socketOption(.so_rcvbuf), value: 1 << 21)
    }

    package func close() async {
        try? await channel.close()
        for server in state.read({ Array($0.servers.values) }) { try? await server.get().close() }
    }

    // MARK: The network

    package var counts: Counts { state.read(\.counts) }

    package func change(_ weather: Weather) { state.change { $0.weather = weather } }

    /// Whether all datagrams are lost from now on, in both directions.
    package func blackHole(_ isOn: Bool) { state.change { $0.isBlackHole = isOn } }

    /// Waits until the counts meet a condition.
    @discardableResult
    package func counts(where condition: @escaping @Sendable (Counts) -> Bool) async throws -> Counts {
        try await state.value { condition($0.counts) ? $0.counts : nil }
    }

    /// Continues with new addresses towards the server, as a NAT does after a restart.
    package func rebind() {
        let old = state.change { state in
            let old = Array(state.servers.values)
            state.servers = [:]
            return old
        }
        for one in old { one.whenSuccess { $0.close(promise: nil) } }
    }

    // MARK: Datagrams

    private func takeFromClient(_ datagram: AddressedEnvelope<ByteBuffer>) {
        let client = datagram.remoteAddress
        let upstream = state.change { state in
            state.counts.fromClients += 1
            if let known = state.servers[client] { return known }
            state.counts.clients += 1
            let made = connect(for: client)
            state.servers[client] = made
            return made
        }
        pass(datagram.data) { data in
            upstream.whenSuccess { channel in
                guard let server = channel.remoteAddress else { return }
                channel.writeAndFlush(AddressedEnvelope(remoteAddress: server, data: data), promise: nil)
            }
        }
    }

    private func connect(for client: SocketAddress) -> EventLoopFuture<any Channel> {
        Self.bootstrap()
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(
                        UDPReader { datagram in
                            self.state.change { $0.counts.fromServer += 1 }
                            self.pass(datagram.data) { data in
                                self.channel.writeAndFlush(AddressedEnvelope(remoteAddress: client, data: data), promise: nil)
                            }
                        })
                }
            }
            .connect(host: "127.0.0.1", port: server)
            .map { $0 as any Channel }
    }

    private func pass(_ data: ByteBuffer, _ send: @escaping @Sendable (ByteBuffer) -> Void) {
        let fate = state.change { state -> Fate in
            state.counts.bytes += data.readableBytes
            let weather = state.weather
            // Each datagram takes the same quantity of random numbers, so that its fate depends on its number.
            let (loss, second, damage, place, delay) = (
                state.chance(), state.chance(), state.chance(), state.chance(), state.chance()
            )
            guard !state.isBlackHole, loss >= weather.loss else {
                state.counts.lost += 1
                return Fate(copies: 0, delay: 0)
            }
            let isDoubled = second < weather.duplication
            let isDamaged = damage < weather.corruption
            state.counts.duplicated += isDoubled ? 1 : 0
            state.counts.corrupted += isDamaged ? 1 : 0
            let span = Double(weather.delay.upperBound - weather.delay.lowerBound + 1)
            return Fate(
                copies: isDoubled ? 2 : 1, corrupted: isDamaged ? place : nil,
                delay: Int64(weather.delay.lowerBound) + Int64(delay * span))
        }
        guard fate.copies > 0 else { return }
        var data = data
        if let place = fate.corrupted, data.readableBytes > 0 {
            let index = data.readerIndex + Int(place * Double(data.readableBytes))
            if let byte = data.getInteger(at: index, as: UInt8.self) { data.setInteger(byte ^ 0x55, at: index) }
        }
        let (copy, copies) = (data, fate.copies)
        guard fate.delay > 0 else {
            for _ in 0..<copies { send(copy) }
            return
        }
        channel.eventLoop.scheduleTask(in: .milliseconds(fate.delay)) { for _ in 0..<copies { send(copy) } }
    }
}

/// Passes on the datagrams of a socket.
private final class UDPReader: ChannelInboundHandler, Sendable {
    typealias InboundIn = AddressedEnvelope<ByteBuffer>

    private let take: @Sendable (AddressedEnvelope<ByteBuffer>) -> Void

    init(_ take: @escaping @Sendable (AddressedEnvelope<ByteBuffer>) -> Void) { self.take = take }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) { take(unwrapInboundIn(data)) }

    /// A server that is away refuses datagrams, and may come back.
    func errorCaught(context: ChannelHandlerContext, error: any Error) {}
}
