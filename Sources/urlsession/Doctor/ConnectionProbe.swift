// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Tests whether an address accepts a connection, which is closed at once.
struct ConnectionProbe: Sendable {
    let address: String
    /// The reason why the connection failed; nil if it was established.
    var failure: String?
    var seconds: Double?

    private static let most = 8

    /// - Parameters:
    ///   - addresses: The addresses; only the first eight are tried, all at the same time.
    ///   - port: The port for all addresses.
    ///   - limit: The timeout in seconds.
    /// - Returns: A result for each address that was tried.
    static func run(_ addresses: [String], port: Int, limit: Double) async -> [ConnectionProbe] {
        await withTaskGroup(of: (Int, ConnectionProbe?).self) { group in
            for (index, address) in addresses.prefix(most).enumerated() {
                group.addTask { (index, await blocking(within: limit + 5) { connect(to: address, port: port, limit: limit) }) }
            }
            return await group.reduce(into: []) { $0.append($1) }.sorted { $0.0 < $1.0 }.compactMap(\.1)
        }
    }

    private static func connect(to text: String, port: Int, limit: Double) -> ConnectionProbe {
        func failed(_ reason: String) -> ConnectionProbe { ConnectionProbe(address: text, failure: reason) }
        guard let address = SocketAddress(text, port: port) else { return failed("not an IP address") }
        let begin = ContinuousClock.now
        let descriptor = socket(address.family, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return failed(String(cString: strerror(errno)).lowercased()) }
        defer { close(descriptor) }
        // The timeout for sending applies to connecting, too.
        let microseconds = Int(min(max(limit, 1e-6), 1e6) * 1e6)
        var time = timeval(tv_sec: microseconds / 1_000_000, tv_usec: microseconds % 1_000_000)
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
        var code = address.connect(descriptor) == 0 ? 0 : errno
        // The call ends when the process is stopped and continued (signal(7)), but the connection is still being made.
        if code == EINTR {
            var event = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
            var count: Int32
            repeat { count = poll(&event, 1, Int32(microseconds / 1_000)) } while count < 0 && errno == EINTR
            code = EINPROGRESS
            var size = socklen_t(MemoryLayout<Int32>.size)
            if count > 0 { getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &size) }
        }
        guard code == 0 else {
            return failed(
                code == EINPROGRESS
                    ? "no answer within \(ByteText.rounded(limit, digits: 1)) s" : String(cString: strerror(code)).lowercased())
        }
        return ConnectionProbe(address: text, seconds: begin.duration(to: .now) / .seconds(1))
    }
}
