// SPDX-License-Identifier: Apache-2.0

package import Foundation
import NIOCore
import NIOPosix
import NIOSSL

/// A server in this process, on its own loopback port, that responds and fails by script, over any ``ScriptedVersion``.
///
/// It parses requests leniently, records them, and performs the effects of each reply in order. Tests wait for recorded events;
/// no wait polls or sleeps, and every wait ends when its task is cancelled (give suites a time limit).
package final class ScriptedServer: Sendable {
    package struct ScriptError: Error, CustomStringConvertible {
        package var description: String
    }

    private static let group = MultiThreadedEventLoopGroup(numberOfThreads: 2)

    package let address: String
    package let port: Int
    package let isSecure: Bool
    private let channel: any Channel
    /// The UDP port, if the server's version is HTTP/3.
    private let quic: QUICPort?
    private let children: Watched<[ObjectIdentifier: any Channel]>
    private let journal: Watched<ServerJournal>

    private init(
        address: String, isSecure: Bool, channel: any Channel, quic: QUICPort?,
        children: Watched<[ObjectIdentifier: any Channel]>, journal: Watched<ServerJournal>
    ) {
        self.address = address
        self.isSecure = isSecure
        self.channel = channel
        self.quic = quic
        self.children = children
        self.journal = journal
        port = quic?.number ?? channel.localAddress?.port ?? 0
    }

    // MARK: Starting and stopping

    /// Starts a server.
    ///
    /// - Parameters:
    ///   - address: The address to listen on, at a port that the system chooses.
    ///   - path: The path of a Unix domain socket to listen on instead.
    ///   - isMultipath: Whether the server supports multipath TCP.
    ///   - version: The version of HTTP; nil means HTTP/1.1, without ALPN.
    ///   - identity: The certificate and key; if present, the server uses TLS. A secure version has a valid one by default.
    ///   - laterIdentities: The identities for the connections after the first one; the last identity also applies to all further
    ///     connections.
    ///   - choice: Returns the index of the identity for the connection with a number, counted from 0; nil means that the number is
    ///     the index.
    ///   - isClear: Whether the connection with a number, counted from 0, does not use TLS although there is an identity.
    ///   - tls: The accepted TLS versions.
    ///   - clientRoot: A root in PEM; if present, the server requests a client certificate and verifies it.
    ///   - sendBuffer: The size of the sockets' send buffer, for tests of back-pressure.
    ///   - greeting: The effects for a new connection before anything is read.
    ///   - early: The reply when only the head has arrived; nil leaves the request to `reply`. Without an early reply, `Expect:
    ///     100-continue` gets a 100 response.
    ///   - reply: The reply to a complete request.
    /// - Returns: The listening server.
    /// - Throws: An error if the server cannot listen or use its certificate.
    package static func start(
        address: String = "127.0.0.1",
        path: String? = nil,
        isMultipath: Bool = false,
        version: ScriptedVersion? = ScriptedVersion.current,
        identity: TestCertificates.Identity? = nil,
        laterIdentities: [TestCertificates.Identity] = [],
        choice: @escaping @Sendable (_ connection: Int) -> Int? = { _ in nil },
        isClear: @escaping @Sendable (_ connection: Int) -> Bool = { _ in false },
        tls: ClosedRange<TestCertificates.Version> = .v1_2 ... .v1_3,
        clientRoot: String? = nil,
        sendBuffer: Int? = nil,
        greeting: @escaping @Sendable (_ connection: Int) -> [SocketEffect] = { _ in [] },
        early: @escaping @Sendable (RecordedRequest) throws -> ScriptedReply? = { _ in nil },
        reply: @escaping @Sendable (RecordedRequest) throws -> ScriptedReply
    ) async throws -> ScriptedServer {
        let run = ScriptedRun.current
        if run?.version == version { run?.countServer() }
        let script = ServerScript(greeting: greeting, early: early, reply: reply, run: run?.version == version ? run : nil)
        let identity = version?.isSecure == true ? try identity ?? TestCertificates.shared.get().valid : identity
        let journal = Watched(ServerJournal())
        let children = Watched<[ObjectIdentifier: any Channel]>([:])
        let isQUIC = version == .http3
        let identities = [identity].compactMap { $0 } + laterIdentities
        let secure = try (isQUIC ? [] : identities).map {
            var configuration = try $0.serverConfiguration(versions: tls)
            if let clientRoot {
                configuration.certificateVerification = .optionalVerification
                configuration.trustRoots = .certificates(try NIOSSLCertificate.fromPEMBytes(Array(clientRoot.utf8)))
            }
            if let version, version.isSecure { configuration.applicationProtocols = [version.protocolName] }
            return try NIOSSLContext(configuration: configuration)
        }
        var bootstrap = ServerBootstrap(group: group)
            .enableMPTCP(isMultipath)
            .serverChannelOption(.backlog, value: 1024)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelOption(.socketOption(.tcp_nodelay), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let number = journal.change { journal in
                        journal.connections.append(ServerJournal.Connection())
                        return journal.connections.count - 1
                    }
                    let id = ObjectIdentifier(channel)
                    children.change { $0[id] = channel }
                    channel.closeFuture.whenComplete { _ in children.change { $0[id] = nil } }
                    if let last = secure.last, !isClear(number) {
                        let chosen = choice(number) ?? number
                        let context = secure.indices.contains(chosen) ? secure[chosen] : last
                        try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: context))
                    }
                    let opening = HTTP3Opening {
                        $0.identity = min(choice(number) ?? number, max(identities.count - 1, 0))
                        $0.asks = clientRoot != nil
                    }
                    let connection = (version ?? .http1).connection(script, journal, number, opening, window: sendBuffer)
                    try channel.pipeline.syncOperations.addHandler(connection)
                }
            }
        if let sendBuffer, !isQUIC {
            bootstrap = bootstrap.childChannelOption(.socketOption(.so_sndbuf), value: .init(sendBuffer))
        }
        // The connections of HTTP/3 arrive over a Unix domain socket, from a program that speaks QUIC.
        let relays = isQUIC ? try ServerDirectory() : nil
        let bound =
            (relays.map(QUICPort.socket) ?? path).map { bootstrap.bind(unixDomainSocketPath: $0) }
            ?? bootstrap.bind(host: address, port: 0)
        let channel = try await bound.get()
        var quic: QUICPort?
        if let relays { quic = try await QUICProcess.shared.get().open(relays, address: address, identities: identities) }
        return ScriptedServer(
            address: address, isSecure: !identities.isEmpty, channel: channel, quic: quic, children: children, journal: journal
        )
    }

    /// Stops the server; throws the errors of its script.
    package func close() async throws {
        quic?.close()
        try? await channel.close()
        for child in children.read({ Array($0.values) }) { try? await child.close() }
        let errors = journal.read(\.errors)
        if !errors.isEmpty { throw ScriptError(description: errors.joined(separator: "\n")) }
    }

    /// Stops listening; connections stay open.
    package func stopListening() async {
        quic?.stopListening()
        try? await channel.close()
    }

    // MARK: Addresses

    /// A URL of this server, with another host name if `host` is set.
    package func url(_ path: String = "/", host: String? = nil, user: String? = nil) -> URL {
        let host = host ?? (address.contains(":") ? "[\(address)]" : address)
        let text = "\(isSecure ? "https" : "http")://\(user.map { $0 + "@" } ?? "")\(host):\(port)\(path)"
        guard let url = URL(string: text) else { preconditionFailure("'\(text)' is not a URL") }
        return url
    }

    // MARK: Records

    package var requests: [RecordedRequest] { journal.read(\.requests) }
    package var connectionCount: Int { journal.read(\.connections.count) }
    package var errors: [String] { journal.read(\.errors) }

    /// Waits until a request, counted from 0, is complete or was cut off.
    package func request(_ order: Int) async throws -> RecordedRequest {
        try await journal.value { journal in
            guard journal.requests.count > order else { return nil }
            let request = journal.requests[order]
            return request.isComplete || journal.isAbandoned(request) ? request : nil
        }
    }

    /// Waits until the client gives up a request, counted from 0: it closes the connection, or resets the stream.
    package func waitForAbandoning(_ order: Int) async throws {
        try await journal.value { $0.requests.count > order && $0.isAbandoned($0.requests[order]) ? () : nil }
    }

    /// Waits until the head of a request, counted from 0, has arrived.
    package func head(_ order: Int) async throws -> RecordedRequest {
        try await journal.value { $0.requests.count > order ? $0.requests[order] : nil }
    }

    /// Waits until `count` requests are complete; returns all requests.
    @discardableResult
    package func waitForRequests(_ count: Int) async throws -> [RecordedRequest] {
        try await journal.value { $0.requests.filter(\.isComplete).count >= count ? $0.requests : nil }
    }

    /// Waits until `count` connections have been accepted.
    package func waitForConnections(_ count: Int) async throws {
        try await journal.value { $0.connections.count >= count ? () : nil }
    }

    /// Waits until a connection, counted from 0, was closed by either side.
    package func waitForClose(_ connection: Int) async throws {
        try await journal.value { journal in
            journal.connections.count > connection && journal.connections[connection].isClosed ? () : nil
        }
    }

    /// Waits until no accepted connection is open.
    package func waitForAllClosed() async throws {
        try await journal.value { $0.connections.allSatisfy(\.isClosed) ? () : nil }
    }

    package var openConnectionCount: Int { journal.read { $0.connections.filter { !$0.isClosed }.count } }

    /// The bytes that a client sent on a connection (decrypted), up to 1 MiB.
    package func received(on connection: Int) -> [UInt8] {
        journal.read { $0.connections.count > connection ? $0.connections[connection].received : [] }
    }

    /// The WebSocket frames that a client sent on a connection whose script reads them.
    package func frames(on connection: Int) -> [ClientFrame] {
        journal.read { $0.connections.count > connection ? $0.connections[connection].frames : [] }
    }

    /// The number of response bytes that the socket of a connection accepted.
    package func bytesWritten(on connection: Int) -> Int {
        journal.read { $0.connections.count > connection ? $0.connections[connection].bytesWritten : 0 }
    }

    package func bytesReceived(on connection: Int) -> Int {
        journal.read { $0.connections.count > connection ? $0.connections[connection].bytesReceived : 0 }
    }

    /// Waits until the socket of a connection has accepted `count` bytes.
    package func waitForBytesWritten(_ count: Int, on connection: Int) async throws {
        try await journal.value { journal in
            journal.connections.count > connection && journal.connections[connection].bytesWritten >= count ? () : nil
        }
    }

    // MARK: Gates

    /// Waits until a gate or a point of the script has been reached `times` times.
    package func reached(_ name: String, times: Int = 1) async throws {
        try await journal.value { $0.reached[name, default: 0] >= times ? () : nil }
    }

    /// The number of times that a point of the script was reached.
    package func count(of name: String) -> Int { journal.read { $0.reached[name, default: 0] } }

    /// Opens a gate permanently.
    package func open(_ gate: String) {
        let blocked = journal.change { journal in
            journal.openGates.insert(gate)
            return journal.blocked.removeValue(forKey: gate) ?? []
        }
        for resume in blocked { resume() }
    }
}

/// Runs a test with a server, and stops the server; throws the errors of its script.
package func withScriptedServer(
    version: ScriptedVersion? = ScriptedVersion.current,
    identity: TestCertificates.Identity? = nil,
    isClear: @escaping @Sendable (_ connection: Int) -> Bool = { _ in false },
    sendBuffer: Int? = nil,
    greeting: @escaping @Sendable (_ connection: Int) -> [SocketEffect] = { _ in [] },
    early: @escaping @Sendable (RecordedRequest) throws -> ScriptedReply? = { _ in nil },
    reply: @escaping @Sendable (RecordedRequest) throws -> ScriptedReply,
    test: (ScriptedServer) async throws -> Void
) async throws {
    let server = try await ScriptedServer.start(
        version: version, identity: identity, isClear: isClear, sendBuffer: sendBuffer, greeting: greeting, early: early,
        reply: reply
    )
    do {
        try await test(server)
    } catch {
        try? await server.close()
        throw error
    }
    try await server.close()
}
