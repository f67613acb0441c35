//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

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
        let addresses = Array(addresses.prefix(most))
        return await BlockingCall<[ConnectionProbe]>().value(within: limit + 5) { tryAll(addresses, port: port, limit: limit) }
            ?? []
    }

    private static func tryAll(_ addresses: [String], port: Int, limit: Double) -> [ConnectionProbe] {
        let begin = ContinuousClock.now
        func elapsed() -> Double { begin.duration(to: .now) / .seconds(1) }
        var probes = addresses.map { ConnectionProbe(address: $0) }
        var sockets: [Int32: Int] = [:]
        defer { for descriptor in sockets.keys { close(descriptor) } }
        for (index, text) in addresses.enumerated() {
            guard let address = SocketAddress(text, port: port) else {
                probes[index].failure = "not an IP address"
                continue
            }
            let kind = SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue
            let descriptor = socket(address.family, Int32(kind), 0)
            guard descriptor >= 0 else {
                probes[index].failure = reason(errno)
                continue
            }
            if address.connect(descriptor) == 0 {
                probes[index].seconds = elapsed()
                close(descriptor)
            } else if errno == EINPROGRESS {
                sockets[descriptor] = index
            } else {
                probes[index].failure = reason(errno)
                close(descriptor)
            }
        }
        while !sockets.isEmpty, elapsed() < limit {
            var events = sockets.keys.map { pollfd(fd: $0, events: Int16(POLLOUT), revents: 0) }
            guard poll(&events, nfds_t(events.count), Int32(min(1000, max(1, (limit - elapsed()) * 1000)))) > 0 else { continue }
            for event in events where event.revents != 0 {
                guard let index = sockets.removeValue(forKey: event.fd) else { continue }
                var code: Int32 = 0
                var size = socklen_t(MemoryLayout<Int32>.size)
                getsockopt(event.fd, SOL_SOCKET, SO_ERROR, &code, &size)
                if code == 0 { probes[index].seconds = elapsed() } else { probes[index].failure = reason(code) }
                close(event.fd)
            }
        }
        for index in sockets.values { probes[index].failure = "no answer within \(ByteText.rounded(limit, digits: 1)) s" }
        return probes
    }

    private static func reason(_ code: Int32) -> String { String(cString: strerror(code)).lowercased() }
}
