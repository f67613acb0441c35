// SPDX-License-Identifier: Apache-2.0

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
            await blocking(within: limit) { lookUp(host) }
            ?? NameProbe(failure: "no answer within \(ByteText.rounded(limit, digits: 1)) s")
        probe.seconds = begin.duration(to: .now) / .seconds(1)
        return probe
    }

    private static func lookUp(_ host: String) -> NameProbe {
        let (found, code) = SocketAddress.all(of: host)
        guard code == 0 else { return NameProbe(failure: String(cString: gai_strerror(code))) }
        return NameProbe(addresses: found.reduce(into: []) { if !$0.contains($1.text) { $0.append($1.text) } })
    }
}

/// Runs work that blocks a thread, and returns its result, or nil after a timeout.
func blocking<Value: Sendable>(within limit: Double, _ work: @escaping @Sendable () -> Value) async -> Value? {
    let (values, result) = AsyncStream.makeStream(of: Value.self)
    Thread.detachNewThread { result.yield(work()) }
    DispatchQueue.global().asyncAfter(deadline: .now() + min(limit, 1e6)) { result.finish() }
    for await value in values { return value }
    return nil
}
