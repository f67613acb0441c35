// SPDX-License-Identifier: Apache-2.0

package import Foundation

#if canImport(Glibc)
import Glibc
#endif

/// An HTTP/2 server on its own loopback port that responds, and violates RFC 9113, by script.
///
/// A Python program (``HTTP2Python``) reads and writes the frames; its field blocks come from an independent HPACK implementation.
/// The program records what the client sends and checks it against the RFC: a violation makes ``close()`` throw. Without a script,
/// the program acknowledges SETTINGS and PING and returns flow control credit. After a step that waits for the client, the next
/// step runs when this server has recorded all earlier events. A connection that does not begin with HTTP/2's preface uses
/// HTTP/1.1; its requests are answered with ``HTTP2Step/write(_:)-(String)``.
///
/// Tests wait for recorded events; no wait polls or sleeps, and every wait ends when its task is cancelled (give suites a time
/// limit).
package final class HTTP2ScriptedServer: Sendable {
    package typealias Greeting = @Sendable (_ connection: Int) -> [HTTP2Step]
    package typealias Reply = @Sendable (HTTP2Request) throws -> [HTTP2Step]

    struct StreamID: Hashable {
        var connection: Int
        var stream: Int
    }

    package let port: Int
    package let isSecure: Bool
    private let directory: ServerDirectory
    private let process: ServerProcess
    private let orders: CommandPipe
    private let journal: Watched<HTTP2Journal>

    private init(
        port: Int, isSecure: Bool, directory: ServerDirectory, process: ServerProcess, orders: CommandPipe,
        journal: Watched<HTTP2Journal>
    ) {
        self.port = port
        self.isSecure = isSecure
        self.directory = directory
        self.process = process
        self.orders = orders
        self.journal = journal
    }

    // MARK: Starting and stopping

    /// Starts a server.
    ///
    /// - Parameters:
    ///   - identity: The certificate and key; if present, the server uses TLS.
    ///   - protocols: The protocols for ALPN, the preferred one first.
    ///   - greeting: The steps for a new connection, before anything is read.
    ///   - reply: The steps for a request whose head has arrived.
    /// - Returns: The listening server.
    /// - Throws: An error if the server does not start.
    package static func start(
        identity: TestCertificates.Identity? = nil,
        protocols: [String] = ["h2", "http/1.1"],
        greeting: @escaping Greeting = { _ in [.settings()] },
        reply: @escaping Reply
    ) throws -> HTTP2ScriptedServer {
        let python = try SpnegoPython.interpreter()
        let directory = try ServerDirectory()
        var arguments = [python, try directory.write(HTTP2Python.program.utf8, to: "server.py").path]
        if let identity {
            arguments.append(try directory.write(identity.chainPEM.utf8, to: "chain.pem").path)
            arguments.append(try directory.write(identity.keyPEM.utf8, to: "key.pem").path)
            arguments.append(protocols.joined(separator: ","))
        }
        let socket = try ServerProcess.listeningSocket()
        defer { Glibc.close(socket.descriptor) }
        let (orders, end) = try CommandPipe.make()
        defer { Glibc.close(end) }
        let journal = Watched(HTTP2Journal())
        let lines = LineSplitter { line in
            let event: HTTP2Event
            do { event = try JSONDecoder().decode(HTTP2Event.self, from: line) } catch {
                journal.change { $0.errors.append("'\(String(decoding: line, as: UTF8.self))': \(error)") }
                return
            }
            if event.event == .accepted {
                orders.send(HTTP2Command(do: .begin, connection: event.connection, steps: greeting(event.connection ?? 0)))
            }
            if event.event == .mark { return orders.send(HTTP2Command(do: .open, name: event.name)) }
            guard let request = journal.change({ $0.take(event) }) else { return }
            do {
                let steps = try reply(request)
                orders.send(HTTP2Command(do: .run, connection: request.connection, stream: request.stream, steps: steps))
            } catch {
                journal.change { $0.errors.append("\(error)") }
            }
        } atEnd: {
            journal.change { $0.hasEnded = true }
        }
        let process = try ServerProcess.start(
            ServerProcess.Command(
                arguments, output: .pipe { lines.take($0) }, errors: .file(directory.file("log")),
                sockets: [socket.descriptor, end]))
        return HTTP2ScriptedServer(
            port: socket.port, isSecure: identity != nil, directory: directory, process: process, orders: orders,
            journal: journal)
    }

    /// Stops the server; throws the errors of its script and the client's violations.
    package func close() async throws {
        process.stop(SIGKILL)
        try await journal.value { $0.hasEnded ? () : nil }
        let log = directory.text(of: "log")
        let errors = journal.read(\.errors) + (log.isEmpty ? [] : [log])
        if !errors.isEmpty { throw ScriptedServer.ScriptError(description: errors.joined(separator: "\n")) }
    }

    /// Stops listening; connections stay open.
    package func stopListening() { orders.send(HTTP2Command(do: .stopListening)) }

    /// Runs steps on a connection, concurrently with its other steps.
    package func run(_ steps: HTTP2Step..., on connection: Int, stream: Int? = nil) {
        orders.send(HTTP2Command(do: .run, connection: connection, stream: stream, steps: steps))
    }

    /// Opens a gate permanently.
    package func open(_ gate: String) { orders.send(HTTP2Command(do: .open, name: gate)) }

    // MARK: Addresses

    package func url(_ path: String = "/", host: String = "localhost") -> URL {
        let text = "\(isSecure ? "https" : "http")://\(host):\(port)\(path)"
        guard let url = URL(string: text) else { preconditionFailure("'\(text)' is not a URL") }
        return url
    }

    // MARK: Records

    package var requests: [HTTP2Request] { journal.read(\.requests) }
    package var connectionCount: Int { journal.read(\.connections.count) }
    package var openConnectionCount: Int { journal.read { $0.connections.filter { !$0.isClosed }.count } }
    package var errors: [String] { journal.read(\.errors) }

    /// The frames received on a connection, in order.
    package func frames(on connection: Int = 0) -> [HTTP2Frame] {
        journal.read { $0.connections.indices.contains(connection) ? $0.connections[connection].frames : [] }
    }

    package func frames(_ kind: HTTP2Frame.Kind, on connection: Int = 0) -> [HTTP2Frame] {
        frames(on: connection).filter { $0.kind == kind }
    }

    /// The protocol that ALPN selected on each connection.
    package var protocols: [String?] { journal.read { $0.connections.map(\.protocol) } }
    /// The server name that the client sent (SNI) on each connection.
    package var serverNames: [String?] { journal.read { $0.connections.map(\.serverName) } }

    private func waitForRecord<Found: Sendable>(_ pick: @escaping @Sendable (HTTP2Journal) -> Found?) async throws -> Found {
        let found = try await journal.value { journal -> Found?? in
            if let found = pick(journal) { return .some(found) }
            return journal.hasEnded ? .some(nil) : nil
        }
        guard let found else { throw ServerProcess.Failure(description: "the server has ended: \(directory.text(of: "log"))") }
        return found
    }

    /// Waits until a request, counted from 0, is complete.
    package func request(_ order: Int) async throws -> HTTP2Request {
        try await waitForRecord { journal in
            guard journal.requests.count > order, journal.requests[order].isComplete else { return nil }
            return journal.requests[order]
        }
    }

    /// Waits until the head of a request, counted from 0, has arrived.
    package func head(_ order: Int) async throws -> HTTP2Request {
        try await waitForRecord { $0.requests.count > order ? $0.requests[order] : nil }
    }

    /// Waits until `count` connections have been accepted.
    package func waitForConnections(_ count: Int) async throws {
        try await waitForRecord { $0.connections.count >= count ? () : nil }
    }

    /// Waits for the first frame that meets the condition; nil means any connection.
    @discardableResult
    package func frame(
        _ kind: HTTP2Frame.Kind, on connection: Int? = nil,
        where condition: @escaping @Sendable (HTTP2Frame) -> Bool = { _ in true }
    ) async throws -> HTTP2Frame {
        try await waitForRecord { journal -> HTTP2Frame? in
            for (number, one) in journal.connections.enumerated() where connection == nil || connection == number {
                if let frame = one.frames.first(where: { $0.kind == kind && condition($0) }) { return frame }
            }
            return nil
        }
    }

    /// Waits for the first frame with which the client resets a stream or closes the connection; nil if the client disconnects
    /// without such a frame.
    package func verdict(on stream: Int, of connection: Int) async throws -> HTTP2Frame? {
        try await waitForRecord { journal -> HTTP2Frame?? in
            guard journal.connections.indices.contains(connection) else { return nil }
            let one = journal.connections[connection]
            let frame = one.frames.first { $0.kind == .goAway || ($0.kind == .resetStream && $0.stream == stream) }
            if let frame { return .some(frame) }
            return one.isClosed || one.ending != nil ? .some(nil) : nil
        }
    }

    /// Waits until a connection, counted from 0, is closed, or the client has closed its sending side.
    package func waitForEnd(of connection: Int) async throws {
        try await waitForRecord { journal -> Void? in
            guard journal.connections.indices.contains(connection) else { return nil }
            return journal.connections[connection].isClosed || journal.connections[connection].ending != nil ? () : nil
        }
    }

    /// Waits until no accepted connection is open.
    package func waitForAllClosed() async throws {
        try await waitForRecord { $0.connections.allSatisfy(\.isClosed) ? () : nil }
    }

    /// Waits until the window of a stream or its connection is exhausted; returns the number of body bytes sent by then.
    package func blocked(stream: Int, on connection: Int = 0) async throws -> Int {
        let id = StreamID(connection: connection, stream: stream)
        return try await waitForRecord { $0.blocked[id] }
    }

    /// Waits until a gate or a point of a script has been reached `times` times.
    package func reached(_ name: String, times: Int = 1) async throws {
        try await waitForRecord { $0.reached[name, default: 0] >= times ? () : nil }
    }

    /// The number of times that a point of the script was reached.
    package func count(of name: String) -> Int { journal.read { $0.reached[name, default: 0] } }
}

/// Runs a test with a server, and stops the server; throws the errors of its script and the client's violations.
package func withHTTP2Server(
    identity: TestCertificates.Identity? = nil,
    protocols: [String] = ["h2", "http/1.1"],
    greeting: @escaping HTTP2ScriptedServer.Greeting = { _ in [.settings()] },
    reply: @escaping HTTP2ScriptedServer.Reply,
    test: (HTTP2ScriptedServer) async throws -> Void
) async throws {
    let server = try HTTP2ScriptedServer.start(identity: identity, protocols: protocols, greeting: greeting, reply: reply)
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
