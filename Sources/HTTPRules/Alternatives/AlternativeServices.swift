// SPDX-License-Identifier: Apache-2.0

package import HTTPWire

/// The known alternative services of origins (RFC 7838), for clients that support protocols other than HTTP/1.1.
package struct AlternativeServices: Sendable {
    /// The maximum number of origins.
    ///
    /// When the number is exceeded, the origin whose alternatives expire first is removed.
    package static let maximumOriginCount = 1_000
    /// The maximum number of alternatives per origin; the first alternatives are kept.
    package static let maximumPerOrigin = 8
    /// The maximum lifetime: 30 days, in seconds.
    package static let longestLifetime = 2_592_000

    private struct Entry {
        let service: AlternativeService
        let expires: Double
        let persists: Bool
    }

    private var origins: [Origin: [Entry]] = [:]

    package init() {}

    /// Stores the alternatives in the `Alt-Svc` fields of a response, replacing all earlier alternatives of the origin (section 3).
    ///
    /// - Parameters:
    ///   - headers: The response's header fields. The value of `Age` is subtracted from the lifetimes (section 3.1).
    ///   - origin: The origin that sent the response.
    ///   - isVerified: Whether the server presented a valid certificate for the origin. A valid certificate is required for the
    ///     alternatives to be trusted: "Clients MUST have reasonable assurances that the alternative service is under control of
    ///     and valid for the whole origin" (section 2.1).
    ///   - now: The time of the response.
    package mutating func note(_ headers: HeaderBlock, origin: Origin, isVerified: Bool, now: Double) {
        guard origin.isSecure, isVerified, let field = headers.joined("Alt-Svc").flatMap(AlternativeServiceField.init) else {
            return
        }
        guard case .services(let members) = field else {
            origins[origin] = nil
            return
        }
        let age = Freshness.ageValue(headers)
        var entries: [Entry] = []
        for member in members where entries.count < Self.maximumPerOrigin {
            let lifetime = min(member.maxAge - age, Self.longestLifetime)
            guard lifetime > 0, !entries.contains(where: { $0.service == member.service }) else { continue }
            entries.append(Entry(service: member.service, expires: now + Double(lifetime), persists: member.persists))
        }
        if !entries.isEmpty, origins[origin] == nil { makeRoom(now: now) }
        origins[origin] = entries.isEmpty ? nil : entries
    }

    /// Returns the valid alternatives of an origin, in the order of the server's preference.
    package func services(of origin: Origin, now: Double) -> [AlternativeService] {
        origins[origin, default: []].filter { $0.expires > now }.map(\.service)
    }

    /// Removes the alternatives that are only valid for the current network (section 2.2).
    package mutating func networkChanged() {
        origins = origins.compactMapValues { entries in
            let left = entries.filter(\.persists)
            return left.isEmpty ? nil : left
        }
    }

    package mutating func removeAll() { origins = [:] }

    private mutating func makeRoom(now: Double) {
        guard origins.count >= Self.maximumOriginCount else { return }
        origins = origins.filter { $0.value.contains { $0.expires > now } }
        guard origins.count >= Self.maximumOriginCount else { return }
        let ends = origins.mapValues { $0.map(\.expires).max() ?? now }
        if let first = ends.min(by: { ($0.value, $0.key.host, $0.key.port) < ($1.value, $1.key.host, $1.key.port) }) {
            origins[first.key] = nil
        }
    }
}
