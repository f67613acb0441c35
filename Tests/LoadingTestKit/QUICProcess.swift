// SPDX-License-Identifier: Apache-2.0

import Foundation

#if canImport(Glibc)
import Glibc
#endif

/// The program that speaks QUIC for the HTTP/3 servers of a test (``HTTP3Python``).
///
/// A test process starts one, which all servers share, because a start takes long; only servers that have to die need their own.
final class QUICProcess: Sendable {
    private struct State: Sendable {
        var ports: [Int: Int] = [:]
        var failures: [Int: String] = [:]
        /// What went wrong outside a connection.
        var errors = ""
        var hasEnded = false
    }

    private struct Report: Decodable {
        var event: String
        var server: Int?
        var port: Int?
        var text: String?
    }

    /// It ends with the test process, because its orders then end.
    static let shared = Result { try QUICProcess() }

    private let process: ServerProcess
    private let orders: CommandPipe
    private let state: Watched<State>
    private let count = Watched(0)

    init() throws {
        let python = try SpnegoPython.interpreter()
        let (orders, end) = try CommandPipe.make()
        defer { Glibc.close(end) }
        let state = Watched(State())
        let lines = LineSplitter { line in
            guard let report = try? JSONDecoder().decode(Report.self, from: line) else { return }
            state.change { state in
                switch (report.event, report.server) {
                case ("listening", let server?): state.ports[server] = report.port ?? 0
                case (_, let server?): state.failures[server] = report.text ?? ""
                case (_, nil): state.errors += (report.text ?? "") + "\n"
                }
            }
        } atEnd: {
            state.change { $0.hasEnded = true }
        }
        process = try ServerProcess.start(
            ServerProcess.Command(
                [python, "-c", HTTP3Python.program], output: .pipe { lines.take($0) },
                errors: .pipe { data in state.change { $0.errors += String(decoding: data, as: UTF8.self) } }, sockets: [end]))
        self.orders = orders
        self.state = state
    }

    /// Opens a UDP port.
    ///
    /// - Parameters:
    ///   - directory: The place of the Unix domain socket for its connections, ``QUICPort/socket(in:)``, which has to listen.
    ///   - address: The address to listen on.
    ///   - port: The port; 0 means one that the system chooses, whose TCP port refuses connections.
    ///   - identities: The certificates and keys, which each connection names by their index.
    ///   - retries: Whether the server validates the addresses of clients with a Retry packet.
    ///   - versions: The versions of QUIC that the server speaks.
    /// - Returns: The open port.
    /// - Throws: An error if the port is taken, or the program has ended.
    func open(
        _ directory: ServerDirectory, address: String, port: Int = 0, identities: [TestCertificates.Identity],
        retries: Bool = false,
        versions: [UInt32] = [1]
    ) async throws -> QUICPort {
        let number = count.change { count in
            count += 1
            return count
        }
        orders.send(
            QUICOrder(
                do: .listen, server: number, address: address, port: port, path: QUICPort.socket(in: directory),
                identities: identities.map { .init(chain: $0.chainPEM, key: $0.keyPEM) }, retry: retries, versions: versions))
        let outcome = try await state.value { state -> Result<Int, ServerProcess.Failure>? in
            if let port = state.ports[number] { return .success(port) }
            guard let failure = state.failures[number] ?? (state.hasEnded ? state.errors : nil) else { return nil }
            return .failure(ServerProcess.Failure(description: "no UDP port: \(failure)"))
        }
        return QUICPort(number: try outcome.get(), server: number, process: self, directory: directory)
    }

    func send(_ order: QUICOrder) { orders.send(order) }

    /// What went wrong outside a connection.
    var errors: String { state.read { $0.errors } }

    /// Ends the program without a word to the clients.
    func kill() { process.stop(SIGKILL) }
}

/// A UDP port of a ``QUICProcess``.
final class QUICPort: Sendable {
    let number: Int
    private let server: Int
    private let process: QUICProcess
    private let directory: ServerDirectory

    fileprivate init(number: Int, server: Int, process: QUICProcess, directory: ServerDirectory) {
        self.number = number
        self.server = server
        self.process = process
        self.directory = directory
    }

    static func socket(in directory: ServerDirectory) -> String { directory.file("quic").path }

    /// Refuses new connections; the others stay open.
    func stopListening() { process.send(QUICOrder(do: .stopListening, server: server)) }

    /// Closes all connections and the port.
    func close() { process.send(QUICOrder(do: .close, server: server)) }
}

/// An order to a ``QUICProcess``.
struct QUICOrder: Encodable {
    enum Name: String, Encodable { case listen, stopListening, close }

    struct Identity: Encodable {
        var chain: String
        var key: String
    }

    var `do`: Name
    var server: Int
    var address: String?
    var port: Int?
    var path: String?
    var identities: [Identity]?
    var retry: Bool?
    var versions: [UInt32]?
}
