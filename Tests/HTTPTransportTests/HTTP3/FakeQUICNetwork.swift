// SPDX-License-Identifier: Apache-2.0

import CQUIC
import HTTPWire
import LoadingModel
import NIOCore
import NIOEmbedded

@testable import HTTPTransport

/// A pool on a loop whose time the test advances; each of its connections leads to a ``FakeQUIC``.
///
/// Confined to the thread of its loop.
final class FakeQUICNetwork {
    /// A connection, its sockets, and the library behind it.
    struct Peer {
        let fake: FakeQUIC
        let quic: QUICConnection
        let connection: HTTP3Connection
    }

    let loop: EmbeddedEventLoop
    let pool: ConnectionPool
    let directory = FakeQUICDirectory()
    private(set) var peers: [Peer] = []
    /// The libraries' sides of all connections, also of those that were not used.
    private(set) var fakes: [FakeQUIC] = []
    /// What the library reports before a connection is made.
    var beginning: [FakeQUIC.Event] = [.handshakeCompleted, .requestsAllowed(100)]
    var reopens = true
    private let scratch = DatagramScratch()

    static let route = Route(isSecure: true, host: "a.test", port: 443)

    init(_ loop: EmbeddedEventLoop = EmbeddedEventLoop()) {
        // The connections read a real clock, too.
        let now = NIODeadline.now()
        if loop.now < now { loop.advanceTime(to: now) }
        self.loop = loop
        let maker = Maker()
        let carrier = VersionCarrier(.http3, candidate: { FakeQUICCandidate($0) { [maker] in try maker.network?.connect($0) } })
        let dialer = Dialer(
            loop: loop, tls: TLSSession(policy: TLSPolicy()), resolver: SystemResolver(), now: { 0 },
            quic: QUICAccess(library: FakeQUIC.library, directory: directory), carriers: [carrier])
        pool = ConnectionPool(loop: loop, dialer: dialer, maximumConnectionsPerHost: 4, budget: ConnectionBudget())
        maker.network = self
    }

    private final class Maker {
        weak var network: FakeQUICNetwork?
    }

    private func connect(_ seed: ConnectionSeed) throws -> HTTP3Connection {
        let quic = QUICConnection(FakeQUIC.library, scratch: scratch, on: loop)
        let socket = try makeSocket(of: quic)
        let made = try FakeQUIC.made { try quic.start(QUICSettings(serverName: "a.test"), on: socket) }
        guard let fake = made else { throw ChannelError.eof }
        fake.arriving = beginning
        datagram(to: socket)
        fakes.append(fake)
        // As in a real dial, such a connection is not used.
        guard quic.firstUnprocessed == nil, quic.isOpen else {
            quic.close()
            throw ChannelError.eof
        }
        quic.reopen = { [weak self, unowned quic] done in
            guard let self, reopens else { return done(nil) }
            let socket = try? makeSocket(of: quic)
            loop.execute { [bound = NIOLoopBound((done, socket), eventLoop: loop)] in bound.value.0(bound.value.1) }
        }
        let connection = HTTP3Connection(
            quic, id: seed.id, facts: .fake, keptChain: nil,
            endpoint: QUICEndpointReport(
                QUICEndpoint(host: "a.test", port: 443, source: .assumption), of: ServerName(host: "a.test", port: 443), directory
            ),
            pool: seed.pool, closed: loop.makePromise())
        peers.append(Peer(fake: fake, quic: quic, connection: connection))
        return connection
    }

    private func makeSocket(of quic: QUICConnection) throws -> QUICSocket {
        let channel = EmbeddedChannel(loop: loop)
        let socket = QUICSocket(of: quic, isV6: false, codePoint: 0)
        try channel.pipeline.syncOperations.addHandler(socket)
        channel.localAddress = try SocketAddress(ipAddress: "127.0.0.1", port: 50_000)
        channel.remoteAddress = try SocketAddress(ipAddress: "127.0.0.1", port: 443)
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 443)).wait()
        return socket
    }

    // MARK: The server's side

    /// Passes a datagram, which brings these events about, to a connection.
    func receive(_ events: [FakeQUIC.Event], at peer: Peer) {
        peer.fake.arriving = events
        if let socket = peer.quic.socket { datagram(to: socket) }
        loop.run()
    }

    private func datagram(to socket: QUICSocket) {
        guard let channel = socket.channel as? EmbeddedChannel, let address = channel.remoteAddress else { return }
        channel.pipeline.fireChannelRead(AddressedEnvelope(remoteAddress: address, data: ByteBuffer(bytes: [0])))
        channel.pipeline.fireChannelReadComplete()
    }

    /// Lets the library's timer fire.
    func expire(_ events: [FakeQUIC.Event], at peer: Peer) {
        peer.fake.expiring = events
        peer.fake.expiry = 1
        // Something must be sent before the timer is read again.
        peer.quic.scheduleFlush()
        advance(.milliseconds(1))
    }

    func advance(_ time: TimeAmount) {
        loop.advanceTime(by: time)
        loop.run()
    }

    // MARK: The loads' side

    func lease() -> (ConnectionPool.Lease, LoadControl) {
        let control = LoadControl(on: LoopDirectory.executor(of: loop), now: loop.now)
        return (pool.acquire(Self.route, priority: 0.5, control: control), control)
    }

    static func message(
        _ method: String = "GET", body: OutgoingBody = .none, expectsContinue: Bool = false, asksToSwitch: Bool = false
    ) -> OutgoingMessage {
        var message = OutgoingMessage(
            head: RequestHead(method: method, target: "/", headers: HeaderBlock([("Host", "a.test")])), body: body,
            expectsContinue: expectsContinue)
        message.asksToSwitch = asksToSwitch
        return message
    }

    /// Leases a connection, and begins a request; both must be possible at once.
    func begin(_ message: OutgoingMessage = message()) throws -> (exchange: Exchange, control: LoadControl) {
        let (lease, control) = lease()
        loop.run()
        let exchange = try pool.take(lease).begin(message, control: control)
        control.enter(.exchanging(exchange))
        loop.run()
        return (exchange, control)
    }

    /// Ends all connections, and releases them.
    func finish() {
        pool.shutDown()
        for peer in peers { peer.connection.close() }
        advance(.seconds(100))
        peers = []
    }
}

/// Notes what became of the places.
final class FakeQUICDirectory: QUICDirectory {
    private(set) var succeededCount = 0
    private(set) var failedCount = 0

    func endpoints(of origin: ServerName) -> [QUICEndpoint] { [] }
    func lookUp(_ origin: ServerName, reply: @escaping ([QUICEndpoint]) -> Void) -> (() -> Void)? { nil }
    func succeeded(_ endpoint: QUICEndpoint, of origin: ServerName) { succeededCount += 1 }
    func failed(_ endpoint: QUICEndpoint, of origin: ServerName) { failedCount += 1 }
}

/// Reaches a server without a socket.
private final class FakeQUICCandidate: DialCandidate {
    let advice: HandshakeAdvice
    let maySwitchLoads = false
    var found: DialFound?
    var holdChanged: ((Bool) -> Void)?
    private let loop: any EventLoop
    private let connect: (ConnectionSeed) throws -> HTTP3Connection?
    /// Nil once the candidate is over.
    private var completion: ((DialOutcome) -> Void)?

    init(_ order: CandidateOrder, connect: @escaping (ConnectionSeed) throws -> HTTP3Connection?) {
        advice = order.advice
        loop = order.dialer.loop
        completion = order.completion
        self.connect = connect
    }

    func start() {
        loop.assumeIsolated().execute { [self] in
            completion.take()?(
                .connected(
                    DialledConnection(facts: .fake, version: .http3, closed: loop.makeSucceededVoidFuture()) { [connect] in
                        guard let connection = try connect($0) else { throw ChannelError.eof }
                        return connection
                    }))
        }
    }

    func cancel() { completion = nil }
}

extension ConnectionFacts {
    static var fake: ConnectionFacts {
        ConnectionFacts(
            localAddress: "127.0.0.1", localPort: 50_000, remoteAddress: "127.0.0.1", remotePort: 443, tlsVersion: 0x0304,
            tlsCipherSuite: nil, domainLookupStart: nil, domainLookupEnd: nil, connectStart: nil, secureConnectionStart: nil,
            secureConnectionEnd: nil, connectEnd: nil, applicationProtocol: HTTPVersions.http3.name)
    }
}
