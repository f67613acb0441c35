// SPDX-License-Identifier: Apache-2.0

public import Foundation
package import LoadingModel

/// The metrics of one request and its response.
///
/// The dates of the host name lookup and of the connection are nil if the connection was reused, or nothing was sent over the
/// network. If a step failed, its end date and all later dates are nil.
///
/// Sendable because it is immutable.
open class URLSessionTaskTransactionMetrics: NSObject, @unchecked Sendable {
    private let timeline: TransactionTimeline
    private let template: URLRequest?
    private let madeResponse: URLResponse?

    package init(timeline: TransactionTimeline, template: URLRequest? = nil) {
        self.timeline = timeline
        self.template = template
        madeResponse = timeline.response.map(URLResponse.make)
        super.init()
    }

    private func date(_ seconds: Double?) -> Date? { seconds.map(Date.init(timeIntervalSinceReferenceDate:)) }

    // MARK: Request and response

    /// The request that was sent.
    open var request: URLRequest { URLRequest(loadRequest: timeline.request, template: template) }

    /// The response, or nil if no response arrived.
    open var response: URLResponse? { madeResponse }

    // MARK: Dates

    /// When the load of the resource, from the network or the cache, began.
    open var fetchStartDate: Date? { date(timeline.fetchStart) }
    /// When the host name lookup began.
    open var domainLookupStartDate: Date? { date(timeline.domainLookupStart) }
    /// When the host name lookup ended.
    open var domainLookupEndDate: Date? { date(timeline.domainLookupEnd) }
    /// When the connection attempt began.
    open var connectStartDate: Date? { date(timeline.connectStart) }
    /// When the TLS handshake began; nil for cleartext connections.
    open var secureConnectionStartDate: Date? { date(timeline.secureConnectionStart) }
    /// When the TLS handshake ended; nil for cleartext connections.
    open var secureConnectionEndDate: Date? { date(timeline.secureConnectionEnd) }
    /// When the connection was established, including TLS.
    open var connectEndDate: Date? { date(timeline.connectEnd) }
    /// When the engine began to send the request.
    open var requestStartDate: Date? { date(timeline.requestStart) }
    /// When the last byte of the request was sent.
    open var requestEndDate: Date? { date(timeline.requestEnd) }
    /// When the first byte of the response arrived.
    open var responseStartDate: Date? { date(timeline.responseStart) }
    /// When the last byte of the response arrived.
    open var responseEndDate: Date? { date(timeline.responseEnd) }

    // MARK: Protocol and source

    /// The protocol by its ALPN identifier (RFC 7301), such as "http/1.1".
    open var networkProtocolName: String? { timeline.networkProtocol }
    /// Whether the connection went through a proxy.
    open var isProxyConnection: Bool { timeline.isProxyConnection }
    /// Whether the connection was reused.
    open var isReusedConnection: Bool { timeline.isReusedConnection }
    /// The source of the response.
    open var resourceFetchType: URLSessionTaskMetrics.ResourceFetchType {
        switch timeline.source {
        case .unknown: .unknown
        case .network: .networkLoad
        case .localCache: .localCache
        }
    }
    /// The protocol of the host name lookup.
    ///
    /// It is `.udp` if the session's ``URLSessionConfiguration/connectionOptions`` name the name servers or the answers were validated
    /// by DNSSEC, even if a long answer came over TCP. Otherwise it is `.unknown`, because the system's resolver does not report the
    /// protocol.
    open var domainResolutionProtocol: URLSessionTaskMetrics.DomainResolutionProtocol {
        timeline.domainLookupStart != nil && timeline.connection?.usedNameServers == true ? .udp : .unknown
    }

    // MARK: Byte counts

    /// The size of the request head on the wire.
    open var countOfRequestHeaderBytesSent: Int64 { timeline.requestHeaderBytes }
    /// The size of the request body on the wire, with transfer coding.
    open var countOfRequestBodyBytesSent: Int64 { timeline.requestBodyBytes }
    /// The size of the request body that the app provided.
    open var countOfRequestBodyBytesBeforeEncoding: Int64 { timeline.requestBodyBytesBeforeEncoding }
    /// The size of the response head on the wire.
    open var countOfResponseHeaderBytesReceived: Int64 { timeline.responseHeaderBytes }
    /// The size of the response body on the wire, with transfer and content coding.
    open var countOfResponseBodyBytesReceived: Int64 { timeline.responseBodyBytes }
    /// The size of the response body as delivered to the app.
    open var countOfResponseBodyBytesAfterDecoding: Int64 { timeline.responseBodyBytesAfterDecoding }

    // MARK: Connection

    /// The local IP address, or nil if nothing was sent over the network.
    open var localAddress: String? { timeline.connection?.localAddress }
    /// The local port.
    open var localPort: Int? { timeline.connection?.localPort }
    /// The remote IP address: the proxy's address if there is a proxy.
    open var remoteAddress: String? { timeline.connection?.remoteAddress }
    /// The remote port.
    open var remotePort: Int? { timeline.connection?.remotePort }
    /// The TLS version, or nil for cleartext connections.
    open var negotiatedTLSProtocolVersion: tls_protocol_version_t? {
        timeline.connection?.tlsVersion.flatMap(tls_protocol_version_t.init(rawValue:))
    }
    /// The TLS cipher suite, or nil for cleartext connections and for suites that ``tls_ciphersuite_t`` lacks.
    open var negotiatedTLSCipherSuite: tls_ciphersuite_t? {
        timeline.connection?.tlsCipherSuite.flatMap(tls_ciphersuite_t.init(rawValue:))
    }
    /// The URLs of the intermediate certificates that the session fetched for the connection, because the server did not send them.
    ///
    /// Empty for nearly all servers, and for connections of background sessions. See
    /// ``URLSessionConfiguration/fetchesIntermediateCertificates``.
    ///
    /// Not in Apple's API.
    open var intermediateCertificateURLs: [URL] {
        timeline.connection?.trust?.issuerURLs.compactMap { URL(string: $0) } ?? []
    }
    /// Whether the network is cellular.
    ///
    /// The type of the connection's interface is determined from sysfs, or by the session's ``NetworkPathMonitor``.
    open var isCellular: Bool { timeline.connection?.interface?.kind == .cellular }
    /// Whether the network is expensive.
    ///
    /// NetworkManager, or the session's ``NetworkPathMonitor``, reports whether the connection's interface is expensive.
    open var isExpensive: Bool { timeline.connection?.interface?.isExpensive ?? false }
    /// Whether the network is in low data mode.
    ///
    /// The session's ``NetworkPathMonitor`` reports the mode of the connection's interface; Linux itself has no such mode.
    open var isConstrained: Bool { timeline.connection?.interface?.isConstrained ?? false }
    /// Whether multipath TCP was used.
    ///
    /// Multipath TCP requires ``URLSessionConfiguration/multipathServiceType``, and support by the kernel and the server.
    open var isMultipath: Bool { timeline.connection?.isMultipath ?? false }

    /// The request, the response and the dates.
    open override var description: String {
        """
        (Request) \(request)
        (Response) \(response?.description ?? "nil")
        (Fetch Start) \(text(fetchStartDate))
        (Domain Lookup Start) \(text(domainLookupStartDate))
        (Domain Lookup End) \(text(domainLookupEndDate))
        (Connect Start) \(text(connectStartDate))
        (Secure Connection Start) \(text(secureConnectionStartDate))
        (Secure Connection End) \(text(secureConnectionEndDate))
        (Connect End) \(text(connectEndDate))
        (Request Start) \(text(requestStartDate))
        (Request End) \(text(requestEndDate))
        (Response Start) \(text(responseStartDate))
        (Response End) \(text(responseEndDate))
        (Protocol Name) \(networkProtocolName ?? "nil")
        (Proxy Connection) \(isProxyConnection)
        (Reused Connection) \(isReusedConnection)
        """
    }

    private func text(_ date: Date?) -> String { date.map { "\($0)" } ?? "nil" }
}
