//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// What a request needs of its connection beyond that it leads to its server; requests with different needs share none.
package struct ConnectionNeeds: Sendable, Hashable {
    /// What traffic is for; raw values are those of `NSURLRequest.NetworkServiceType`.
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
    /// Whether it leads to addresses that DNSSEC vouches for alone.
    package var requiresDNSSEC = false
    /// What it must not lead over.
    package var prohibited: ProhibitedNetworks = []

    package init() {}

    package static let none = ConnectionNeeds()

    /// With what the session needs where a request says nothing.
    package func joined(with session: ConnectionNeeds) -> ConnectionNeeds {
        var needs = self
        if service == .ordinary { needs.service = session.service }
        needs.requiresDNSSEC = requiresDNSSEC || session.requiresDNSSEC
        needs.prohibited.formUnion(session.prohibited)
        return needs
    }
}
