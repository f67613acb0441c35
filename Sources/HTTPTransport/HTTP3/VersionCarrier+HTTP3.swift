// SPDX-License-Identifier: Apache-2.0

import HTTPWire

extension VersionCarrier {
    /// HTTP/3 has a way of its own, which races with the channel.
    static func http3(_ access: QUICAccess) -> VersionCarrier {
        let scratch = DatagramScratch()
        return VersionCarrier(
            .http3,
            candidate: { order in
                guard order.route.obstacleToHTTP3 == nil else { return nil }
                let candidate = QUICCandidate(order, access, scratch)
                return candidate.hasHope ? candidate : nil
            })
    }
}
