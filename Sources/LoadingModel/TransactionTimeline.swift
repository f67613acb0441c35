// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials

/// The instants and counts of one request and its response, for `URLSessionTaskTransactionMetrics`.
///
/// Instants are seconds since the reference date of `Date`, computed from one wall-clock anchor per process and a monotonic
/// clock, so that they never decrease.
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
    /// The ALPN protocol name, such as "http/1.1".
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

/// The facts of an established connection, shared by all its exchanges.
package final class ConnectionFacts: Sendable {
    package let localAddress: String?
    package let localPort: Int?
    package let remoteAddress: String?
    package let remotePort: Int?
    /// The TLS version as on the wire (0x0303 is TLS 1.2, 0x0304 TLS 1.3); nil for cleartext.
    package let tlsVersion: UInt16?
    /// The IANA number of the cipher suite; nil for cleartext.
    package let tlsCipherSuite: UInt16?
    /// Whether the server requested a client certificate.
    package let wasAskedForCertificate: Bool
    /// Whether a client certificate was sent.
    package let sentClientCertificate: Bool
    /// Whether the server was verified by the system's or the session's trust roots, and not only trusted by the app.
    package let isVerified: Bool
    /// The facts about trust; nil for cleartext, and if another process made the connection.
    package let trust: ConnectionTrust?
    /// The server's certificate, in DER.
    package let serverCertificate: Data?
    /// Whether the connection leads to or through a proxy.
    package let isToProxy: Bool
    /// Whether the connection uses multipath TCP, with the peer's support.
    package let isMultipath: Bool
    /// Whether the peer is the proxy and not a server behind a tunnel; TLS, if used, is with the proxy.
    package let isForwarded: Bool
    /// Whether the socket carries TLS, with the server or with a proxy.
    package let isInTLS: Bool
    /// The network interface of the connection, if known.
    package let interface: NetworkPath.Interface?
    /// Whether the host's addresses came from configured name servers, now or earlier, and not from the system's resolver.
    package let usedNameServers: Bool
    /// The protocol that ALPN selected (RFC 7301); nil if ALPN selected no protocol.
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
        wasAskedForCertificate: Bool = false, sentClientCertificate: Bool = false, isVerified: Bool = false,
        serverCertificate: Data? = nil, isToProxy: Bool = false, isMultipath: Bool = false, isForwarded: Bool = false,
        interface: NetworkPath.Interface? = nil, usedNameServers: Bool = false, isInTLS: Bool? = nil,
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
        self.sentClientCertificate = sentClientCertificate
        self.isToProxy = isToProxy
        self.isMultipath = isMultipath
        self.usedNameServers = usedNameServers
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

    /// Returns the facts of the same connection after it has moved to another address of this machine.
    package func moved(to address: String?, _ port: Int?, by interface: NetworkPath.Interface?) -> ConnectionFacts {
        ConnectionFacts(
            localAddress: address, localPort: port, remoteAddress: remoteAddress, remotePort: remotePort, tlsVersion: tlsVersion,
            tlsCipherSuite: tlsCipherSuite, domainLookupStart: domainLookupStart, domainLookupEnd: domainLookupEnd,
            connectStart: connectStart, secureConnectionStart: secureConnectionStart, secureConnectionEnd: secureConnectionEnd,
            connectEnd: connectEnd, wasAskedForCertificate: wasAskedForCertificate, sentClientCertificate: sentClientCertificate,
            isVerified: isVerified, serverCertificate: serverCertificate, isToProxy: isToProxy, isMultipath: isMultipath,
            isForwarded: isForwarded, interface: interface, usedNameServers: usedNameServers, isInTLS: isInTLS,
            applicationProtocol: applicationProtocol, trust: trust)
    }
}
