// SPDX-License-Identifier: Apache-2.0

import HTTPWire

extension VersionCarrier {
    static var http1: VersionCarrier {
        VersionCarrier(
            .http1,
            begin: { dialled, seed in
                let connection = HTTP1Connection(id: seed.id, facts: dialled.facts, keptChain: dialled.keptChain)
                return try seed.plant(connection, on: dialled.channel)
            })
    }
}
