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

struct WireTimeline: WireValue {
    enum Source: String { case unknown, localCache }

    var request: WireRequest
    var response: WireResponse?
    /// Nil for the network.
    var source: String?
    var fetchStart: Double?
    var domainLookupStart: Double?
    var domainLookupEnd: Double?
    var connectStart: Double?
    var secureConnectionStart: Double?
    var secureConnectionEnd: Double?
    var connectEnd: Double?
    var requestStart: Double?
    var requestEnd: Double?
    var responseStart: Double?
    var responseEnd: Double?
    var networkProtocol: String?
    var isReusedConnection: Bool?
    var isProxyConnection: Bool?
    var requestHeaderBytes: Int64?
    var requestBodyBytes: Int64?
    var requestBodyBytesBeforeEncoding: Int64?
    var responseHeaderBytes: Int64?
    var responseBodyBytes: Int64?
    var responseBodyBytesAfterDecoding: Int64?
    var connection: WireConnection?

    init(_ timeline: TransactionTimeline) throws {
        request = try WireRequest(timeline.request)
        response = try timeline.response.map { try WireResponse($0) }
        switch timeline.source {
        case .network: source = nil
        case .unknown: source = Source.unknown.rawValue
        case .localCache: source = Source.localCache.rawValue
        }
        fetchStart = timeline.fetchStart.unless(0)
        domainLookupStart = timeline.domainLookupStart
        domainLookupEnd = timeline.domainLookupEnd
        connectStart = timeline.connectStart
        secureConnectionStart = timeline.secureConnectionStart
        secureConnectionEnd = timeline.secureConnectionEnd
        connectEnd = timeline.connectEnd
        requestStart = timeline.requestStart
        requestEnd = timeline.requestEnd
        responseStart = timeline.responseStart
        responseEnd = timeline.responseEnd
        networkProtocol = timeline.networkProtocol
        isReusedConnection = timeline.isReusedConnection.unless(false)
        isProxyConnection = timeline.isProxyConnection.unless(false)
        requestHeaderBytes = timeline.requestHeaderBytes.unless(0)
        requestBodyBytes = timeline.requestBodyBytes.unless(0)
        requestBodyBytesBeforeEncoding = timeline.requestBodyBytesBeforeEncoding.unless(0)
        responseHeaderBytes = timeline.responseHeaderBytes.unless(0)
        responseBodyBytes = timeline.responseBodyBytes.unless(0)
        responseBodyBytesAfterDecoding = timeline.responseBodyBytesAfterDecoding.unless(0)
        connection = timeline.connection.map { WireConnection($0) }
    }

    func model() throws -> TransactionTimeline {
        var timeline = TransactionTimeline(request: try request.model())
        timeline.response = try response?.model()
        switch source.map({ Source(rawValue: $0) }) {
        case nil: timeline.source = .network
        case .localCache: timeline.source = .localCache
        default: timeline.source = .unknown
        }
        timeline.fetchStart = try Wire.finite(fetchStart ?? 0, "a time")
        timeline.domainLookupStart = domainLookupStart
        timeline.domainLookupEnd = domainLookupEnd
        timeline.connectStart = connectStart
        timeline.secureConnectionStart = secureConnectionStart
        timeline.secureConnectionEnd = secureConnectionEnd
        timeline.connectEnd = connectEnd
        timeline.requestStart = requestStart
        timeline.requestEnd = requestEnd
        timeline.responseStart = responseStart
        timeline.responseEnd = responseEnd
        try WireTimeline.check([
            domainLookupStart, domainLookupEnd, connectStart, secureConnectionStart, secureConnectionEnd, connectEnd,
            requestStart,
            requestEnd, responseStart, responseEnd,
        ])
        timeline.networkProtocol = networkProtocol
        timeline.isReusedConnection = isReusedConnection ?? false
        timeline.isProxyConnection = isProxyConnection ?? false
        timeline.requestHeaderBytes = requestHeaderBytes ?? 0
        timeline.requestBodyBytes = requestBodyBytes ?? 0
        timeline.requestBodyBytesBeforeEncoding = requestBodyBytesBeforeEncoding ?? 0
        timeline.responseHeaderBytes = responseHeaderBytes ?? 0
        timeline.responseBodyBytes = responseBodyBytes ?? 0
        timeline.responseBodyBytesAfterDecoding = responseBodyBytesAfterDecoding ?? 0
        timeline.connection = try connection?.model()
        return timeline
    }

    static func check(_ times: [Double?]) throws {
        for time in times { _ = try Wire.finite(time ?? 0, "a time") }
    }
}

/// What is known of a connection that a request went over.
struct WireConnection: WireValue {
    struct Interface: Codable {
        var name: String
        var index: Int
        var kind: String?
        var isExpensive: Bool?
        var isConstrained: Bool?
        var isUltraConstrained: Bool?
        var addresses: [String]?

        init(_ interface: NetworkPath.Interface) {
            name = interface.name
            index = interface.index
            kind = interface.kind.rawValue
            isExpensive = interface.isExpensive.unless(false)
            isConstrained = interface.isConstrained.unless(false)
            isUltraConstrained = interface.isUltraConstrained.unless(false)
            addresses = interface.addresses.unlessEmpty
        }

        var interface: NetworkPath.Interface {
            NetworkPath.Interface(
                name: name, index: index, kind: kind.flatMap { NetworkPath.Interface.Kind(rawValue: $0) } ?? .other,
                isExpensive: isExpensive ?? false, isConstrained: isConstrained ?? false,
                isUltraConstrained: isUltraConstrained ?? false, addresses: addresses ?? [])
        }
    }

    var localAddress: String?
    var localPort: Int?
    var remoteAddress: String?
    var remotePort: Int?
    var tlsVersion: UInt16?
    var tlsCipherSuite: UInt16?
    var wasAskedForCertificate: Bool?
    var hasShownCertificate: Bool?
    var isVerified: Bool?
    var serverCertificate: Data?
    var isToProxy: Bool?
    var isMultipath: Bool?
    var isForwarded: Bool?
    /// Nil where it is what the version says.
    var isInTLS: Bool?
    var applicationProtocol: String?
    var interface: Interface?
    var askedNameServers: Bool?
    var domainLookupStart: Double?
    var domainLookupEnd: Double?
    var connectStart: Double?
    var secureConnectionStart: Double?
    var secureConnectionEnd: Double?
    var connectEnd: Double?

    init(_ facts: ConnectionFacts) {
        localAddress = facts.localAddress
        localPort = facts.localPort
        remoteAddress = facts.remoteAddress
        remotePort = facts.remotePort
        tlsVersion = facts.tlsVersion
        tlsCipherSuite = facts.tlsCipherSuite
        wasAskedForCertificate = facts.wasAskedForCertificate.unless(false)
        hasShownCertificate = facts.hasShownCertificate.unless(false)
        isVerified = facts.isVerified.unless(false)
        serverCertificate = facts.serverCertificate
        isToProxy = facts.isToProxy.unless(false)
        isMultipath = facts.isMultipath.unless(false)
        isForwarded = facts.isForwarded.unless(false)
        isInTLS = facts.isInTLS.unless(facts.tlsVersion != nil)
        applicationProtocol = facts.applicationProtocol
        interface = facts.interface.map { Interface($0) }
        askedNameServers = facts.askedNameServers.unless(false)
        domainLookupStart = facts.domainLookupStart
        domainLookupEnd = facts.domainLookupEnd
        connectStart = facts.connectStart
        secureConnectionStart = facts.secureConnectionStart
        secureConnectionEnd = facts.secureConnectionEnd
        connectEnd = facts.connectEnd
    }

    func model() throws -> ConnectionFacts {
        try WireTimeline.check([
            domainLookupStart, domainLookupEnd, connectStart, secureConnectionStart, secureConnectionEnd, connectEnd,
        ])
        return ConnectionFacts(
            localAddress: localAddress, localPort: localPort, remoteAddress: remoteAddress, remotePort: remotePort,
            tlsVersion: tlsVersion, tlsCipherSuite: tlsCipherSuite, domainLookupStart: domainLookupStart,
            domainLookupEnd: domainLookupEnd, connectStart: connectStart, secureConnectionStart: secureConnectionStart,
            secureConnectionEnd: secureConnectionEnd, connectEnd: connectEnd,
            wasAskedForCertificate: wasAskedForCertificate ?? false, hasShownCertificate: hasShownCertificate ?? false,
            isVerified: isVerified ?? false, serverCertificate: serverCertificate, isToProxy: isToProxy ?? false,
            isMultipath: isMultipath ?? false, isForwarded: isForwarded ?? false, interface: interface?.interface,
            askedNameServers: askedNameServers ?? false, isInTLS: isInTLS,
            applicationProtocol: try applicationProtocol.map { try Wire.plain($0, "a protocol") })
    }
}
