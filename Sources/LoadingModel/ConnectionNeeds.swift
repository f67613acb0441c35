// SPDX-License-Identifier: Apache-2.0

/// The properties that a request requires of its connection; requests with different needs share no connection.
package struct ConnectionNeeds: Sendable, Hashable {
    /// The kind of traffic; raw values as in `NSURLRequest.NetworkServiceType`.
    package enum Service: UInt8, Sendable {
        case ordinary = 0
        case voip = 1
        case video = 2
        case background = 3
        case voice = 4
        case responsiveData = 6
        case streaming = 8
        case responsiveMedia = 9
        case callSignaling = 11
    }

    package var service: Service = .ordinary
    /// Whether the connection may only lead to addresses that DNSSEC validates.
    package var requiresDNSSEC = false
    /// The networks that the connection must not use.
    package var prohibited: ProhibitedNetworks = []
    /// Set if the connection may only lead to global addresses and addresses of this kind, because a stranger chose its host.
    package var reach: AddressKind?

    package init() {}

    package static let none = ConnectionNeeds()

    /// Returns these needs, combined with the session's defaults.
    package func joined(with session: ConnectionNeeds) -> ConnectionNeeds {
        var needs = self
        if service == .ordinary { needs.service = session.service }
        needs.requiresDNSSEC = requiresDNSSEC || session.requiresDNSSEC
        needs.prohibited.formUnion(session.prohibited)
        return needs
    }
}
