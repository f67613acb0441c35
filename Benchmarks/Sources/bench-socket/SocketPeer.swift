// SPDX-License-Identifier: Apache-2.0

import BenchKit
import Glibc
import Synchronization

/// A lower limit, not a client; a thread writes a request of fixed bytes to a socket, and blocks until the response has arrived.
///
/// No client that waits in the kernel can be faster.
final class SocketPeer: Peer {
    private struct Connection {
        let socket: Int32
        let request: [UInt8]
        var exchange: FloorExchange
        var buffer = [UInt8](repeating: 0, count: 65_536)
    }

    private let connection = Mutex<Connection?>(nil)

    func get(_ url: String) async throws -> Int {
        try connection.withLock { kept in
            var connection = try kept.take() ?? Self.open(url)
            guard write(connection.socket, connection.request, connection.request.count) == connection.request.count else {
                throw BenchFailure("cannot send the request")
            }
            var received = 0
            repeat {
                let count = read(connection.socket, &connection.buffer, connection.buffer.count)
                guard count > 0 else { throw BenchFailure("the connection was closed") }
                received += count
                connection.exchange.measure(connection.buffer.prefix(count))
            } while received < connection.exchange.whole
            defer { kept = connection }
            return connection.exchange.body
        }
    }

    func download(_ url: String, to path: String) async throws -> Int { throw Unsupported() }
    func iterate(_ url: String) async throws -> Int { throw Unsupported() }
    func delegate(_ url: String) async throws -> Int { throw Unsupported() }
    func upload(_ path: String, to url: String) async throws { throw Unsupported() }

    private static func open(_ url: String) throws -> Connection {
        let exchange = try FloorExchange(url)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = UInt16(exchange.port).bigEndian
        guard inet_pton(AF_INET, exchange.host, &address.sin_addr) == 1 else { throw Unsupported() }
        let socket = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        let size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let done = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(socket, $0, size) }
        }
        guard done == 0 else { throw BenchFailure("cannot connect to \(exchange.host):\(exchange.port)") }
        return Connection(socket: socket, request: Array(exchange.request.utf8), exchange: exchange)
    }
}

@main
struct Main {
    static func main() async { await runBenchmark { _ in SocketPeer() } }
}
