//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import FoundationEssentials
import LoadingModel

struct WirePolicy: WireValue {
    var requestTimeout: Double?
    var resourceTimeout: Double?
    var maximumConnectionsPerHost: Int?
    /// Names and values in turn.
    var additionalHeaders: [String]?
    var omittedHeaders: [String]?
    var cachePolicy: Int?
    var cookieAcceptance: Int?
    var usesCookies: Bool?
    var cachedBodyLimit: Int64?
    var usesStrictTransportSecurity: Bool?
    var usesKerberosTickets: Bool?
    var minimumTLSVersion: UInt16?
    var maximumTLSVersion: UInt16?
    var trustRoots: [Data]?
    var connections: WireConnections?
    var needs: WireNeeds?
    var usesMultipath: Bool?
    var waitsForConnectivity: Bool?
    var maximumCollectedBytes: Int64?
    var maximumDecodingRatio: Int64?
    var temporaryDirectory: String?

    init(_ policy: SessionPolicy) throws {
        let usual = SessionPolicy()
        requestTimeout = Wire.duration(policy.requestTimeout).unless(usual.requestTimeout)
        resourceTimeout = Wire.duration(policy.resourceTimeout).unless(usual.resourceTimeout)
        maximumConnectionsPerHost = policy.maximumConnectionsPerHost.unless(usual.maximumConnectionsPerHost)
        additionalHeaders = policy.additionalHeaders.flatMap { [$0.name, $0.value] }.unlessEmpty
        omittedHeaders = policy.omittedHeaders.unlessEmpty
        cachePolicy = Int(exactly: policy.cachePolicy.rawValue)?.unless(0)
        cookieAcceptance = Int(exactly: policy.cookieAcceptance.rawValue)?.unless(2)
        usesCookies = policy.usesCookies.unless(usual.usesCookies)
        cachedBodyLimit = policy.cachedBodyLimit.unless(usual.cachedBodyLimit)
        usesStrictTransportSecurity = policy.usesStrictTransportSecurity.unless(usual.usesStrictTransportSecurity)
        usesKerberosTickets = policy.usesKerberosTickets.unless(usual.usesKerberosTickets)
        minimumTLSVersion = policy.minimumTLSVersion
        maximumTLSVersion = policy.maximumTLSVersion
        trustRoots = policy.trustRoots.unlessEmpty
        connections = policy.connections.map { WireConnections($0) }
        needs = WireNeeds(policy.needs)
        usesMultipath = policy.usesMultipath.unless(usual.usesMultipath)
        waitsForConnectivity = policy.waitsForConnectivity.unless(usual.waitsForConnectivity)
        maximumCollectedBytes = policy.maximumCollectedBytes
        maximumDecodingRatio = policy.maximumDecodingRatio.unless(usual.maximumDecodingRatio)
        temporaryDirectory = policy.temporaryDirectory.unless(usual.temporaryDirectory)
    }

    func model() throws -> SessionPolicy {
        var policy = SessionPolicy()
        if let requestTimeout { policy.requestTimeout = try Wire.finite(requestTimeout, "a timeout") }
        if let resourceTimeout { policy.resourceTimeout = try Wire.finite(resourceTimeout, "a timeout") }
        if let maximumConnectionsPerHost {
            try Wire.check(maximumConnectionsPerHost >= 1, "a session has no connections")
            policy.maximumConnectionsPerHost = maximumConnectionsPerHost
        }
        policy.additionalHeaders = try headers()
        policy.omittedHeaders = try Wire.list(omittedHeaders, "the fields that are left out").map {
            try Wire.plain($0, "a field's name")
        }
        policy.cachePolicy = WireRequest.cachePolicy(cachePolicy ?? 0)
        if let acceptance = cookieAcceptance.flatMap({ UInt(exactly: $0) }).flatMap(
            SessionPolicy.CookieAcceptance.init(rawValue:))
        {
            policy.cookieAcceptance = acceptance
        }
        if let usesCookies { policy.usesCookies = usesCookies }
        if let cachedBodyLimit { policy.cachedBodyLimit = try Self.size(cachedBodyLimit) }
        if let usesStrictTransportSecurity { policy.usesStrictTransportSecurity = usesStrictTransportSecurity }
        if let usesKerberosTickets { policy.usesKerberosTickets = usesKerberosTickets }
        policy.minimumTLSVersion = minimumTLSVersion
        policy.maximumTLSVersion = maximumTLSVersion
        policy.trustRoots = try Wire.list(trustRoots, "the trust roots")
        policy.connections = try connections?.model()
        if let needs { policy.needs = needs.needs }
        if let usesMultipath { policy.usesMultipath = usesMultipath }
        if let waitsForConnectivity { policy.waitsForConnectivity = waitsForConnectivity }
        policy.maximumCollectedBytes = try maximumCollectedBytes.map { try Self.size($0) }
        if let maximumDecodingRatio {
            try Wire.check(maximumDecodingRatio >= 1, "a decoded body may not be shorter")
            policy.maximumDecodingRatio = maximumDecodingRatio
        }
        if let temporaryDirectory { policy.temporaryDirectory = try Wire.path(temporaryDirectory, "the directory for downloads") }
        return policy
    }

    private func headers() throws -> [(name: String, value: String)] {
        let texts = try Wire.list(additionalHeaders, "a session's fields", limit: Wire.fieldLimit * 2)
        try Wire.check(texts.count.isMultiple(of: 2), "a field has no value")
        try Wire.check(texts.reduce(0) { $0 + $1.utf8.count } <= Wire.fieldBytesLimit, "a session's fields are too long")
        return stride(from: 0, to: texts.count, by: 2).map { (texts[$0], texts[$0 + 1]) }
    }

    private static func size(_ bytes: Int64) throws -> Int64 {
        try Wire.check(bytes >= 0, "a limit is less than nothing")
        return bytes
    }
}

/// Where a session's connections lead.
struct WireConnections: WireValue {
    struct Endpoint: Codable {
        var host: String?
        var port: Int?

        init(_ endpoint: ConnectionOptions.Endpoint) {
            host = endpoint.host
            port = endpoint.port
        }

        func endpoint() throws -> ConnectionOptions.Endpoint {
            let endpoint = ConnectionOptions.Endpoint(host: host, port: try port.map { try Wire.port($0, "an endpoint's port") })
            try Wire.check(endpoint.host == host, "an endpoint's host is not plain")
            return endpoint
        }
    }

    struct Addresses: Codable {
        var endpoint: Endpoint
        var addresses: [String]
    }

    struct Substitution: Codable {
        var endpoint: Endpoint
        var replacement: Endpoint
    }

    var unixSocketPath: String?
    var interfaceName: String?
    var localAddress: String?
    var addresses: [Addresses]?
    var nameServers: [String]?
    var substitutions: [Substitution]?
    var httpVersions: String?

    init(_ options: ConnectionOptions) {
        httpVersions = options.httpVersions.rawValue.unless(ConnectionOptions.HTTPVersions.negotiated.rawValue)
        unixSocketPath = options.unixSocketPath
        interfaceName = options.interfaceName
        localAddress = options.localAddress
        addresses =
            options.addresses.sorted { ($0.key.host ?? "", $0.key.port ?? -1) < ($1.key.host ?? "", $1.key.port ?? -1) }
            .map { Addresses(endpoint: Endpoint($0.key), addresses: $0.value) }.unlessEmpty
        nameServers = options.nameServers.unlessEmpty
        substitutions =
            options.substitutions.map { Substitution(endpoint: Endpoint($0.endpoint), replacement: Endpoint($0.replacement)) }
            .unlessEmpty
    }

    func model() throws -> ConnectionOptions {
        var options = ConnectionOptions()
        // One that is not absolute cannot be connected to, as a program's directory is not the daemon's.
        options.unixSocketPath = try unixSocketPath.map { try Wire.path($0, "a socket's path") }
        options.interfaceName = try interfaceName.map { try Wire.plain($0, "an interface's name") }
        options.localAddress = try localAddress.map { try Wire.plain($0, "a local address") }
        for entry in try Wire.list(addresses, "the addresses") {
            let given = try Wire.list(entry.addresses, "a host's addresses").map { try Wire.plain($0, "an address") }
            let before = options.addresses.updateValue(given, forKey: try entry.endpoint.endpoint())
            try Wire.check(before == nil, "a host's addresses are given twice")
        }
        options.nameServers = try Wire.list(nameServers, "the name servers").map { try Wire.plain($0, "a name server") }
        if let httpVersions {
            options.httpVersions = try Wire.need(ConnectionOptions.HTTPVersions(rawValue: httpVersions), "the versions of HTTP")
        }
        options.substitutions = try Wire.list(substitutions, "the substitutions").map {
            ConnectionOptions.Substitution(endpoint: try $0.endpoint.endpoint(), replacement: try $0.replacement.endpoint())
        }
        return options
    }
}
