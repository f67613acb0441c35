// SPDX-License-Identifier: Apache-2.0

package import Foundation
import NIOCore
import NIOPosix

/// An HTTP/3 server on its own loopback port that responds, and violates RFC 9000 and 9114, by script.
///
/// The program ``HTTP3Python`` speaks QUIC, and records what the client sends, checked against RFC 9114: a violation makes ``close()``
/// throw. A test decides about every byte that the server sends on a stream, beginning with those on its control stream.
///
/// Tests wait for recorded events; no wait polls or sleeps, and every wait ends when its task is cancelled (give suites a time
/// limit).
package final class HTTP3ScriptedServer: Sendable {
    package typealias Opening = @Sendable (_ connection: Int) -> HTTP3Opening
    package typealias Greeting = @Sendable (_ connection: Int) -> [HTTP3Step]
    package typealias Reply = @Sendable (HTTP3Request) throws -> [HTTP3Step]

    private static let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)

    private let identities: [TestCertificates.Identity]
    private let directory: ServerDirectory
    private let listener: any Channel
    private let journal: Watched<HTTP3Journal>
    private let children: Watched<[Int: any Channel]>
    private let scripts: HTTP3Scripts
    /// The program of this server; nil means that of all servers.
    private let own: Watched<QUICProcess?>
    private let quic: Watched<QUICPort>
    package let port: Int

    private init(
        identities: [TestCertificates.Identity], directory: ServerDirectory, listener: any Channel,
        journal: Watched<HTTP3Journal>,
        children: Watched<[Int: any Channel]>, scripts: HTTP3Scripts, own: QUICProcess?, quic: QUICPort
    ) {
        self.identities = identities
        self.directory = directory
        self.listener = listener
        self.journal = journal
        self.children = children
        self.scripts = scripts
        self.own = Watched(own)
        self.quic = Watched(quic)
        port = quic.number
    }

    // MARK: Starting and stopping

    /// Starts a server.
    ///
    /// - Parameters:
    ///   - identities: The certificates, which an opening names by their index.
    ///   - port: The port; 0 means one that the system chooses, whose TCP port refuses connections.
    ///   - isMortal: Whether the server can be killed and started again (``restart()``).
    ///   - retries: Whether the server validates the addresses of clients with a Retry packet.
    ///   - versions: The versions of QUIC that the server speaks.
    ///   - opening: The properties of a new connection.
    ///   - greeting: The steps for a connection whose handshake has begun.
    ///   - reply: The steps for a request whose head has arrived.
    /// - Returns: The listening server.
    /// - Throws: An error if the server does not start.
    package static func start(
        identities: [TestCertificates.Identity]? = nil,
        port: Int = 0,
        isMortal: Bool = false,
        retries: Bool = false,
        versions: [UInt32] = [1],
        opening: @escaping Opening = { _ in HTTP3Opening() },
        greeting: @escaping Greeting = { _ in [.settings()] },
        reply: @escaping Reply
    ) async throws -> HTTP3ScriptedServer {
        let identities = try identities ?? [TestCertificates.shared.get().valid]
        let directory = try ServerDirectory()
        let journal = Watched(HTTP3Journal())
        let children = Watched<[Int: any Channel]>([:])
        let scripts = HTTP3Scripts(journal: journal, greeting: greeting, reply: reply)
        let listener = try await ServerBootstrap(group: group)
            .serverChannelOption(.backlog, value: 1024)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let number = journal.change { journal in
                        journal.connections.append(HTTP3Journal.Connection())
                        return journal.connections.count - 1
                    }
                    children.change { $0[number] = channel }
                    channel.closeFuture.whenComplete { _ in children.change { $0[number] = nil } }
                    let handler = HTTP3RelayHandler(number: number, opening: opening(number), journal: journal, scripts: scripts)
                    try channel.pipeline.syncOperations.addHandler(handler)
                }
            }
            .bind(unixDomainSocketPath: QUICPort.socket(in: directory)).get()
        let own = isMortal ? try QUICProcess() : nil
        let process = try own ?? QUICProcess.shared.get()
        let quic = try await process.open(
            directory, address: "127.0.0.1", port: port, identities: identities, retries: retries, versions: versions)
        return HTTP3ScriptedServer(
            identities: identities, directory: directory, listener: listener, journal: journal, children: children,
            scripts: scripts, own: own, quic: quic)
    }

    /// Stops the server; throws the errors of its script and the client's violations.
    package func close() async throws {
        scripts.stop()
        quic.read { $0 }.close()
        try? await listener.close()
        for child in children.read({ Array($0.values) }) { try? await child.close() }
        let errors = journal.read(\.errors) + own.read { [$0?.errors ?? ""] }.filter { !$0.isEmpty }
        own.read { $0 }?.kill()
        if !errors.isEmpty { throw ScriptedServer.ScriptError(description: errors.joined(separator: "\n")) }
    }

    /// Refuses new connections; the others stay open.
    package func stopListening() { quic.read { $0 }.stopListening() }

    /// Kills a mortal server: its port is closed, and its connections are forgotten.
    package func kill() { own.read { $0 }?.kill() }

    /// Kills a mortal server, and starts it again on the same port, where it knows no connection.
    package func restart() async throws {
        kill()
        let process = try QUICProcess()
        let again = try await process.open(directory, address: "127.0.0.1", port: port, identities: identities)
        own.change { $0 = process }
        quic.change { $0 = again }
    }

    /// Runs steps on a connection, concurrently with its other steps.
    package func run(_ steps: HTTP3Step..., on connection: Int = 0, stream: Int? = nil) {
        guard let channel = children.read({ $0[connection] }) else { return }
        scripts.run(steps, on: channel, connection: connection, stream: stream)
    }

    /// Opens a gate permanently.
    package func open(_ gate: String) { journal.change { _ = $0.openGates.insert(gate) } }

    // MARK: Addresses

    package func url(_ path: String = "/", host: String = "localhost") -> URL {
        guard let url = URL(string: "https://\(host):\(port)\(path)") else { preconditionFailure("'\(path)' is not a path") }
        return url
    }

    // MARK: Records

    package var requests: [HTTP3Request] { journal.read(\.requests) }
    package var connectionCount: Int { journal.read(\.connections.count) }
    package var errors: [String] { journal.read(\.errors) }

    private func connection<Found: Sendable>(
        _ connection: Int, _ pick: @escaping @Sendable (HTTP3Journal.Connection) -> Found?
    ) async throws -> Found {
        try await journal.value { $0.connections.count > connection ? pick($0.connections[connection]) : nil }
    }

    /// Waits until a request, counted from 0, is complete.
    package func request(_ order: Int) async throws -> HTTP3Request {
        try await journal.value { $0.requests.count > order && $0.requests[order].isComplete ? $0.requests[order] : nil }
    }

    /// Waits until the head of a request, counted from 0, has arrived.
    package func head(_ order: Int) async throws -> HTTP3Request {
        try await journal.value { $0.requests.count > order ? $0.requests[order] : nil }
    }

    /// Waits until `count` connections have begun.
    package func waitForConnections(_ count: Int) async throws {
        try await journal.value { $0.connections.count >= count ? () : nil }
    }

    /// Waits until the handshake of a connection is complete; returns the client's certificate in DER, or nothing.
    @discardableResult
    package func waitForHandshake(of connection: Int = 0) async throws -> [UInt8] {
        try await self.connection(connection) { $0.isConfirmed ? $0.certificate : nil }
    }

    /// Waits until a connection is closed; returns nil if no side said why.
    @discardableResult
    package func waitForEnd(of connection: Int = 0) async throws -> HTTP3End? {
        try await self.connection(connection) { $0.isClosed ? .some($0.end) : nil }
    }

    /// Waits for the code with which the client resets the stream of a request, or closes the connection.
    package func waitForReset(of stream: Int = 0, on connection: Int = 0) async throws -> UInt64? {
        let id = HTTP3Journal.StreamID(connection: connection, stream: stream)
        return try await journal.value { journal -> UInt64?? in
            if let code = journal.stops[id] ?? journal.resets[id] { return .some(code) }
            guard journal.connections.count > connection, journal.connections[connection].isClosed else { return nil }
            return .some(journal.connections[connection].end?.code)
        }
    }

    /// Waits until what the client sent on its unidirectional streams meets a condition.
    package func uni(
        on connection: Int = 0, where condition: @escaping @Sendable ([Int: [UInt8]]) -> Bool
    ) async throws -> [Int: [UInt8]] {
        try await self.connection(connection) { condition($0.uni) ? $0.uni : nil }
    }

    /// The server name that the client of a connection sent.
    package func serverName(of connection: Int = 0) -> String? {
        journal.read { $0.connections.count > connection ? $0.connections[connection].serverName : nil }
    }

    /// The number of bytes of a stream that the client has acknowledged.
    package func delivered(on stream: Int = 0, of connection: Int = 0) -> Int {
        journal.read { $0.delivered[HTTP3Journal.StreamID(connection: connection, stream: stream), default: 0] }
    }

    /// Waits until a gate or a point of a script has been reached `times` times.
    package func reached(_ name: String, times: Int = 1) async throws {
        try await journal.value { $0.reached[name, default: 0] >= times ? () : nil }
    }

    /// The number of times that a point of the script was reached.
    package func count(of name: String) -> Int { journal.read { $0.reached[name, default: 0] } }
}

/// Runs a test with a server, and stops the server; throws the errors of its script and the client's violations.
package func withHTTP3Server(
    identities: [TestCertificates.Identity]? = nil,
    port: Int = 0,
    isMortal: Bool = false,
    retries: Bool = false,
    versions: [UInt32] = [1],
    opening: @escaping HTTP3ScriptedServer.Opening = { _ in HTTP3Opening() },
    greeting: @escaping HTTP3ScriptedServer.Greeting = { _ in [.settings()] },
    reply: @escaping HTTP3ScriptedServer.Reply,
    test: (HTTP3ScriptedServer) async throws -> Void
) async throws {
    let server = try await HTTP3ScriptedServer.start(
        identities: identities, port: port, isMortal: isMortal, retries: retries, versions: versions, opening: opening,
        greeting: greeting, reply: reply)
    do {
        try await test(server)
    } catch let failure {
        do { try await server.close() } catch {
            throw ScriptedServer.ScriptError(description: "\(failure); at the server: \(error)")
        }
        throw failure
    }
    try await server.close()
}
