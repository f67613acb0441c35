// SPDX-License-Identifier: Apache-2.0

import HTTPWire
import LoadingModel

/// What the peer announces about the connection.
extension ResponseHead {
    /// How long the server keeps an idle connection open, in nanoseconds, from a field such as `Keep-Alive: timeout=5`.
    var keepAlive: Int64? {
        guard let value = headers.first(.keepAlive) else { return nil }
        for parameter in value.split(whereSeparator: { $0 == "," || $0 == " " }) where parameter.hasPrefix("timeout=") {
            guard let seconds = Int64(parameter.dropFirst("timeout=".count)), 0..<86_400 ~= seconds else { return nil }
            return seconds * 1_000_000_000
        }
        return nil
    }

    /// Whether the peer, a proxy, announces in the obsolete `Proxy-Connection` field that it closes the connection (RFC 9112,
    /// appendix C.2.2).
    ///
    /// The property has no meaning for a response through a tunnel, whose fields come from the server.
    var saysProxyCloses: Bool { headers.hasToken("close", in: .proxyConnection) }
}
