// SPDX-License-Identifier: Apache-2.0

/// The origins that speak HTTP/3 according to the app.
package struct AssumedOrigins: Sendable {
    /// The maximum number of origins; when it is exceeded, the one that was noted first is forgotten.
    package static let maximumCount = 1_000

    private var origins: Set<Origin> = []
    /// The origins in the order in which they were noted, as a ring.
    private var order: [Origin] = []
    private var next = 0

    package init() {}

    package mutating func note(_ origin: Origin) {
        guard origin.isSecure, !origins.contains(origin) else { return }
        if order.count < Self.maximumCount {
            order.append(origin)
        } else {
            origins.remove(order[next])
            order[next] = origin
            next = (next + 1) % Self.maximumCount
        }
        origins.insert(origin)
    }

    package func contains(_ origin: Origin) -> Bool { !origins.isEmpty && origins.contains(origin) }

    package mutating func removeAll() { self = AssumedOrigins() }
}
