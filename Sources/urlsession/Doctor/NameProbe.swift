//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Dispatch
import Foundation

/// Looks up the IPv4 and IPv6 addresses of a name with the system's resolver.
struct NameProbe: Sendable {
    /// The addresses as text, in the resolver's order.
    var addresses: [String] = []
    /// The resolver's error message; nil if the resolver found addresses.
    var failure: String?
    var seconds = 0.0

    /// - Parameters:
    ///   - host: A name or an address.
    ///   - limit: The timeout in seconds. The resolver cannot be cancelled: its thread ends when the lookup does.
    /// - Returns: The result of the lookup.
    static func run(_ host: String, limit: Double) async -> NameProbe {
        let begin = ContinuousClock.now
        var probe =
            await BlockingCall<NameProbe>().value(within: limit) { lookUp(host) }
            ?? NameProbe(failure: "no answer within \(ByteText.rounded(limit, digits: 1)) s")
        probe.seconds = begin.duration(to: .now) / .seconds(1)
        return probe
    }

    private static func lookUp(_ host: String) -> NameProbe {
        var hints = addrinfo()
        hints.ai_family = AF_UNSPEC
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(host, nil, &hints, &list)
        guard code == 0 else { return NameProbe(failure: String(cString: gai_strerror(code))) }
        defer { freeaddrinfo(list) }
        var addresses: [String] = []
        var next = list
        while let entry = next {
            if let address = SocketAddress(entry.pointee.ai_addr, entry.pointee.ai_addrlen)?.text, !addresses.contains(address) {
                addresses.append(address)
            }
            next = entry.pointee.ai_next
        }
        return NameProbe(addresses: addresses)
    }
}

/// Runs work that blocks a thread, and waits for its result up to a timeout.
final class BlockingCall<Value: Sendable>: Sendable {
    private let continuation = OnceContinuation<Value?>()

    func value(within limit: Double, _ work: @escaping @Sendable () -> Value) async -> Value? {
        await withCheckedContinuation { waiting in
            continuation.set(waiting)
            DispatchQueue.global().async { self.continuation.resume(work()) }
            DispatchQueue.global().asyncAfter(deadline: .now() + min(limit, 1e6)) { self.continuation.resume(nil) }
        }
    }
}
