//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import HTTPWire
import LoadingModel

/// What the other end says of its connection.
extension ResponseHead {
    /// The nanoseconds for which the server says it keeps an idle connection, as in `Keep-Alive: timeout=5`.
    var keepAlive: Int64? {
        guard let value = headers.first(.keepAlive) else { return nil }
        for parameter in value.split(whereSeparator: { $0 == "," || $0 == " " }) where parameter.hasPrefix("timeout=") {
            guard let seconds = Int64(parameter.dropFirst("timeout=".count)), 0..<86_400 ~= seconds else { return nil }
            return seconds * 1_000_000_000
        }
        return nil
    }

    /// Whether a proxy that is the other end announces by the old field's name that it closes (RFC 9112, appendix C.2.2).
    ///
    /// What a server says in a tunnel is none of the proxy's.
    var saysProxyCloses: Bool { headers.hasToken("close", in: .proxyConnection) }
}
