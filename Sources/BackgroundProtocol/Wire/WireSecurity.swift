//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import FoundationEssentials
import HTTPRules

/// App Transport Security; what cannot be read of it is never passed over, as it may be what forbids a connection.
struct WireSecurity: WireValue {
    struct Exception: Codable {
        /// A name, an address or a range of them.
        var domain: String
        var includesSubdomains: Bool?
        var allowsInsecureLoads: Bool?
        var minimumVersion: UInt16?
        var requiresForwardSecrecy: Bool?
    }

    struct Pins: Codable {
        var domain: String
        var includesSubdomains: Bool?
        var leaf: [Data]?
        var ca: [Data]?
        var fault: String?
    }

    var allowsArbitraryLoads: Bool?
    var allowsArbitraryLoadsForMedia: Bool?
    var allowsArbitraryLoadsInWebContent: Bool?
    var allowsLocalNetworking: Bool?
    var exceptions: [Exception]?
    var pins: [Pins]?
    var pinFault: String?
    var warnings: [String]?

    init(_ security: AppTransportSecurity) {
        allowsArbitraryLoads = security.allowsArbitraryLoads.unless(false)
        allowsArbitraryLoadsForMedia = security.allowsArbitraryLoadsForMedia
        allowsArbitraryLoadsInWebContent = security.allowsArbitraryLoadsInWebContent
        allowsLocalNetworking = security.allowsLocalNetworking
        let domains = security.exceptionDomains.sorted { $0.key < $1.key }.map { Exception($0.key, $0.value) }
        exceptions = (domains + security.exceptionRanges.map { Exception($0.key, $0.exception) }).unlessEmpty
        pins = security.pinnedDomains.sorted { $0.key < $1.key }.map { Pins($0.key, $0.value) }.unlessEmpty
        pinFault = security.pinFault
        warnings = security.warnings.unlessEmpty
    }

    func model() throws -> AppTransportSecurity {
        var security = AppTransportSecurity()
        security.allowsArbitraryLoads = allowsArbitraryLoads ?? false
        security.allowsArbitraryLoadsForMedia = allowsArbitraryLoadsForMedia
        security.allowsArbitraryLoadsInWebContent = allowsArbitraryLoadsInWebContent
        security.allowsLocalNetworking = allowsLocalNetworking
        let exceptions = try Wire.list(exceptions, "the exceptions")
        for entry in exceptions {
            try Wire.check(security.setException(entry.exception, for: entry.domain), "an exception is for no domain")
        }
        try Wire.check(
            security.exceptionDomains.count + security.exceptionRanges.count == exceptions.count, "a domain is excepted twice")
        let pins = try Wire.list(pins, "the pins")
        for entry in pins { try Wire.check(security.setPins(entry.pins, for: entry.domain), "pins are for no domain") }
        try Wire.check(security.pinnedDomains.count == pins.count, "a domain is pinned twice")
        security.pinFault = pinFault
        security.warnings = try Wire.list(warnings, "the warnings")
        return security
    }
}

extension WireSecurity.Exception {
    init(_ domain: String, _ exception: AppTransportSecurity.Exception) {
        let usual = AppTransportSecurity.Exception()
        self.domain = domain
        includesSubdomains = exception.includesSubdomains.unless(usual.includesSubdomains)
        allowsInsecureLoads = exception.allowsInsecureLoads.unless(usual.allowsInsecureLoads)
        minimumVersion = exception.minimumVersion.unless(usual.minimumVersion)
        requiresForwardSecrecy = exception.requiresForwardSecrecy.unless(usual.requiresForwardSecrecy)
    }

    var exception: AppTransportSecurity.Exception {
        var exception = AppTransportSecurity.Exception()
        if let includesSubdomains { exception.includesSubdomains = includesSubdomains }
        if let allowsInsecureLoads { exception.allowsInsecureLoads = allowsInsecureLoads }
        if let minimumVersion { exception.minimumVersion = minimumVersion }
        if let requiresForwardSecrecy { exception.requiresForwardSecrecy = requiresForwardSecrecy }
        return exception
    }
}

extension WireSecurity.Pins {
    init(_ domain: String, _ pins: AppTransportSecurity.Pins) {
        self.domain = domain
        includesSubdomains = pins.includesSubdomains.unless(false)
        leaf = pins.leaf.unlessEmpty
        ca = pins.ca.unlessEmpty
        fault = pins.fault
    }

    var pins: AppTransportSecurity.Pins {
        AppTransportSecurity.Pins(includesSubdomains: includesSubdomains ?? false, leaf: leaf ?? [], ca: ca ?? [], fault: fault)
    }
}
