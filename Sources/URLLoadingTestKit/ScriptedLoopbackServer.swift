// SPDX-License-Identifier: Apache-2.0

public import Foundation
import NIOCore
import NIOPosix
import Synchronization

/// An HTTP/1.1 server in this process that follows a script: its responses may be late, slow, truncated or wrong.
///
/// Use it to test connection failures, which stubs cannot cause because they replace the connection.
///
/// ```swift
/// let server = try await ScriptedLoopbackServer.start { request in
///     request.target == "/slow" ? .response(body: data).slow(pieces: 100, pause: .milliseconds(10)) : .response(404)
/// }
/// let (data, _) = try await session.data(from: server.url("/slow"))
/// await server.stop()
/// ```
///
/// The server listens on 127.0.0.1, at a port that the system chooses. App Transport Security permits http to this address.
public final class ScriptedLoopbackServer: Sendable {
    /// A request as received.
    public struct Request: Sendable {
        /// The method.
        public var method: String
        /// The path with the query.
        public var target: String
        /// The header fields, in order.
        public var fields: [(name: String, value: String)]
        /// The body, without the chunked coding.
        public var body: Data

        /// Returns the first value of a field; names are case-insensitive.
        ///
        /// - Parameter name: The field's name.
        /// - Returns: The value, or nil.
        public func value(of name: String) -> String? { fields.first { $0.name.lowercased() == name.lowercased() }?.value }
    }

    private typealias Connection = NIOAsyncChannel<ByteBuffer, ByteBuffer>
    private typealias Script = @Sendable (Request) async throws -> ServerScript

    /// The port.
    public let port: Int
    private let work: Task<Void, Never>
    private let journal: Journal

    private init(port: Int, work: Task<Void, Never>, journal: Journal) {
        self.port = port
        self.work = work
        self.journal = journal
    }

    deinit {
        work.cancel()
        journal.openAll()
    }

    /// Starts a server.
    ///
    /// - Parameter script: Returns the script for a request; called when the request is complete. If it throws, the connection is
    ///   closed.
    /// - Throws: An error if the server cannot listen.
    /// - Returns: The server, which is listening.
    public static func start(
        _ script: @escaping @Sendable (Request) async throws -> ServerScript
    ) async throws -> ScriptedLoopbackServer {
        let journal = Journal()
        let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.backlog, value: 256)
            .childChannelOption(.socketOption(.tcp_nodelay), value: 1)
            .bind(host: "127.0.0.1", port: 0) { channel in
                channel.eventLoop.makeCompletedFuture { try Connection(wrappingChannelSynchronously: channel) }
            }
        let port = server.channel.localAddress?.port ?? 0
        let work = Task<Void, Never> {
            try? await server.executeThenClose { connections in
                try await withThrowingDiscardingTaskGroup { group in
                    for try await connection in connections {
                        group.addTask { await serve(connection, script, journal) }
                    }
                }
            }
        }
        return ScriptedLoopbackServer(port: port, work: work, journal: journal)
    }

    /// Closes all connections, and stops listening.
    public func stop() async {
        work.cancel()
        journal.openAll()
        await work.value
    }

    /// Returns a URL of the server.
    ///
    /// - Parameter target: The path with the query, beginning with a slash.
    /// - Returns: The URL.
    public func url(_ target: String = "/") -> URL {
        let root = URL(string: "http://127.0.0.1:\(port)") ?? URL(fileURLWithPath: "/")
        return URL(string: target, relativeTo: root)?.absoluteURL ?? root
    }

    /// The complete requests received so far.
    public var requests: [Request] { journal.requests }

    /// Opens a gate, for the connections that wait at it and all later connections.
    ///
    /// - Parameter gate: The gate's name.
    public func open(_ gate: String) { journal.open(gate) }

    /// Waits until a connection has reached a gate.
    ///
    /// - Parameter gate: The gate's name.
    public func reached(_ gate: String) async { await journal.reached(gate) }

    // MARK: One connection

    private static func serve(_ connection: Connection, _ script: Script, _ journal: Journal) async {
        try? await connection.executeThenClose { inbound, outbound in
            var reader = LoopbackRequestReader()
            var bytes = inbound.makeAsyncIterator()
            while true {
                guard let request = try reader.next() else {
                    guard let more = try await bytes.next() else { return }
                    reader.feed(more)
                    continue
                }
                journal.note(request)
                for step in try await script(request).steps {
                    switch step {
                    case .send(let data): try await outbound.write(ByteBuffer(bytes: data))
                    case .pause(let time): try await Task.sleep(for: time)
                    case .gate(let name): try await journal.pass(name)
                    case .silence:
                        while try await bytes.next() != nil {}
                        return
                    case .close: return
                    case .reset:
                        let linger = linger(l_onoff: 1, l_linger: 0)
                        try await (connection.channel as? any SocketOptionProvider)?.setSoLinger(linger).get()
                        return
                    }
                }
            }
        }
    }
}
