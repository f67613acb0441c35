// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import HTTPWire
import LoadingModel

extension VersionCarrier {
    /// "An HTTP/2 deployment that uses TLS 1.2 SHOULD NOT use any of the prohibited cipher suites" (RFC 9113, section 9.2.2).
    static var http2: VersionCarrier {
        VersionCarrier(
            .http2, permits: { HTTP2CipherSuites.permit(version: $0.tlsVersion, suite: $0.tlsCipherSuite) },
            begin: { dialled, seed in
                let connection = HTTP2Connection(
                    id: seed.id, facts: dialled.facts, keptChain: dialled.keptChain, loop: seed.pool.loop,
                    initialCapacity: seed.capacity ?? 1)
                return try seed.plant(connection, on: dialled.channel)
            })
    }
}
