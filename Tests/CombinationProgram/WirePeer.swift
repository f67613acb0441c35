// SPDX-License-Identifier: Apache-2.0

import CombinationModel
import Foundation
import Glibc
import LoadingTestKit

/// A server for streams and FTP in another program (Python, OpenSSL), which opens a port for each row and behaves there as the
/// row requires.
///
/// Each order is a line of JSON on a connection of its own; the answer comes when the order has been executed.
final class WirePeer: Sendable {
    /// An action at a port, such as opening it with the behavior that a row requires.
    struct Order: Codable, Sendable {
        var `do`: String
        var port: Int?
        var kind: String?
        var tls: String?
        var isStrange: Bool?
        var isOpenToAll: Bool?
        var end: String?
        var gate: String?
        var content: Data?

        /// Opens a port for a row.
        static func open(_ row: WireRow) -> Order {
            Order(
                do: "open", kind: row.kind.rawValue, tls: row.tls.rawValue, isStrange: row.trust.isStrange,
                isOpenToAll: row.login == .none, end: row.end.rawValue, gate: row.moment.rawValue,
                content: Data(Body.bytes(WireModel.label)))
        }

        static func on(_ port: Int, _ action: String) -> Order { Order(do: action, port: port) }
    }

    /// What the server observed at a port.
    struct Sight: Codable, Sendable {
        var port: Int
        var told: [String]
        var leaks: [String]
        var stored: Data?
    }

    private let port: Int
    private let directory: ServerDirectory
    private let process: ServerProcess

    init(good: TestCertificates.Identity, strange: TestCertificates.Identity) async throws {
        let python = try ServerProcess.program("python3", package: "python3")
        let directory = try ServerDirectory()
        let files = try [("good", good), ("strange", strange)].map { name, identity in
            try directory.write((identity.chainPEM + identity.keyPEM).utf8, to: "\(name).pem").path
        }
        let program = try directory.write(WirePython.program.utf8, to: "server.py").path
        let (process, output) = try await ServerProcess.start([python, program] + files) { $0.contains("\n") }
        guard let port = Int(output.prefix { $0.isNumber }) else {
            process.stop()
            throw StreamPeer.Failure(description: output)
        }
        (self.process, self.port, self.directory) = (process, port, directory)
    }

    func stop() { process.stop(SIGKILL) }

    /// Sends an order and waits for its answer.
    func ask(_ order: Order) async throws -> Sight {
        let line = try JSONEncoder().encode(order) + [10]
        let answer = Watched<Data?>(nil)
        Thread.detachNewThread { [port] in
            var bytes = Data()
            if let descriptor = LoopbackSocket.connect(port) {
                _ = LoopbackSocket.send(Array(line), descriptor)
                var piece = [UInt8](repeating: 0, count: 65_536)
                while case let count = recv(descriptor, &piece, piece.count, 0), count > 0 { bytes += piece[..<count] }
                close(descriptor)
            }
            answer.change { [bytes] in $0 = bytes }
        }
        return try JSONDecoder().decode(Sight.self, from: try await answer.value { $0 })
    }
}
