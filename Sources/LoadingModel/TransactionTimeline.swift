//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import FoundationEssentials

/// The instants and counts of one request and its response, for `URLSessionTaskTransactionMetrics`.
///
/// Instants are seconds since the reference date of `Date`, taken from one wall-clock anchor per process plus a monotonic clock, so
/// that they never run backwards.
package struct TransactionTimeline: Sendable {
    package enum Source: Sendable { case unknown, network, localCache }

    package var request: LoadRequest
    package var response: LoadResponse?
    package var source: Source = .network
    package var fetchStart: Double = 0
    package var domainLookupStart: Double?
    package var domainLookupEnd: Double?
    package var connectStart: Double?
    package var secureConnectionStart: Double?
    package var secureConnectionEnd: Double?
    package var connectEnd: Double?
    package var requestStart: Double?
    package var requestEnd: Double?
    package var responseStart: Double?
    package var responseEnd: Double?
    /// The ALPN identifier, as in "http/1.1".
    package var networkProtocol: String?
    package var isReusedConnection = false
    package var isProxyConnection = false
    package var requestHeaderBytes: Int64 = 0
    package var requestBodyBytes: Int64 = 0
    package var requestBodyBytesBeforeEncoding: Int64 = 0
    package var responseHeaderBytes: Int64 = 0
    package var responseBodyBytes: Int64 = 0
    package var responseBodyBytesAfterDecoding: Int64 = 0
    package var connection: ConnectionFacts?

    package init(request: LoadRequest) { self.request = request }
}

/// What is known of a connection once it stands; every exchange on it shares one.
package final class ConnectionFacts: Sendable {
    package let localAddress: String?
    package let localPort: Int?
    package let remoteAddress: String?
    package let remotePort: Int?
    /// The TLS version as on the wire (0x0303 is TLS 1.2, 0x0304 TLS 1.3), or nil in clear.
    package let tlsVersion: UInt16?
    /// The IANA number of the cipher suite, or nil in clear.
    package let tlsCipherSuite: UInt16?
    /// The server asked who we are.
    package let wasAskedForCertificate: Bool
    /// It asked, and was shown a client certificate.
    package let hasShownCertificate: Bool
    /// The system's or the session's roots vouch for the server, and not the app alone.
    package let isVerified: Bool
    /// Nil in clear, and where the connection was another process's.
    package let trust: ConnectionTrust?
    /// The server's certificate, in DER.
    package let serverCertificate: Data?
    /// The connection leads to a proxy, or through one.
    package let isToProxy: Bool
    /// It is multipath TCP, and the other end took part.
    package let isMultipath: Bool
    /// The proxy is the other end, and not a server behind a tunnel; TLS, if there is any, is with the proxy.
    package let isForwarded: Bool
    /// What goes through the socket is TLS's, with the server or with a proxy.
    package let isInTLS: Bool
    /// The network interface that the connection goes by, where that is known.
    package let interface: NetworkPath.Interface?
    /// Name servers were asked for the host's addresses, or had been, and not the system.
    package let askedNameServers: Bool
    /// What ALPN came to (RFC 7301); nil where nothing was agreed on.
    package let applicationProtocol: String?
    package let domainLookupStart: Double?
    package let domainLookupEnd: Double?
    package let connectStart: Double?
    package let secureConnectionStart: Double?
    package let secureConnectionEnd: Double?
    package let connectEnd: Double?

    package init(
        localAddress: String?, localPort: Int?, remoteAddress: String?, remotePort: Int?, tlsVersion: UInt16?,
        tlsCipherSuite: UInt16?, domainLookupStart: Double?, domainLookupEnd: Double?, connectStart: Double?,
        secureConnectionStart: Double?, secureConnectionEnd: Double?, connectEnd: Double?,
        wasAskedForCertificate: Bool = false, hasShownCertificate: Bool = false, isVerified: Bool = false,
        serverCertificate: Data? = nil, isToProxy: Bool = false, isMultipath: Bool = false, isForwarded: Bool = false,
        interface: NetworkPath.Interface? = nil, askedNameServers: Bool = false, isInTLS: Bool? = nil,
        applicationProtocol: String? = nil, trust: ConnectionTrust? = nil
    ) {
        self.trust = trust
        self.applicationProtocol = applicationProtocol
        self.isInTLS = isInTLS ?? (tlsVersion != nil)
        self.isForwarded = isForwarded
        self.interface = interface
        self.isVerified = isVerified
        self.serverCertificate = serverCertificate
        self.wasAskedForCertificate = wasAskedForCertificate
        self.hasShownCertificate = hasShownCertificate
        self.isToProxy = isToProxy
        self.isMultipath = isMultipath
        self.askedNameServers = askedNameServers
        self.localAddress = localAddress
        self.localPort = localPort
        self.remoteAddress = remoteAddress
        self.remotePort = remotePort
        self.tlsVersion = tlsVersion
        self.tlsCipherSuite = tlsCipherSuite
        self.domainLookupStart = domainLookupStart
        self.domainLookupEnd = domainLookupEnd
        self.connectStart = connectStart
        self.secureConnectionStart = secureConnectionStart
        self.secureConnectionEnd = secureConnectionEnd
        self.connectEnd = connectEnd
    }
}
