//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

public import Foundation
package import LoadingModel

/// What one request and its response took.
///
/// The dates of the name's resolution and of the connection are nil where the connection was there already, or where nothing went
/// over the network. Where a step failed, its end and all later dates are nil.
///
/// Sendable because it never changes once made.
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

    // MARK: What was exchanged

    /// The request as it was sent.
    open var request: URLRequest { URLRequest(loadRequest: timeline.request, template: template) }

    /// The response, or nil where there was none.
    open var response: URLResponse? { madeResponse }

    // MARK: When

    /// When the load of the resource began, from wherever it came.
    open var fetchStartDate: Date? { date(timeline.fetchStart) }
    /// When the resolution of the host's name began.
    open var domainLookupStartDate: Date? { date(timeline.domainLookupStart) }
    /// When the host's name was resolved.
    open var domainLookupEndDate: Date? { date(timeline.domainLookupEnd) }
    /// When connecting began.
    open var connectStartDate: Date? { date(timeline.connectStart) }
    /// When the TLS handshake began; nil in clear.
    open var secureConnectionStartDate: Date? { date(timeline.secureConnectionStart) }
    /// When the TLS handshake was done; nil in clear.
    open var secureConnectionEndDate: Date? { date(timeline.secureConnectionEnd) }
    /// When the connection stood, TLS included.
    open var connectEndDate: Date? { date(timeline.connectEnd) }
    /// When sending the request began.
    open var requestStartDate: Date? { date(timeline.requestStart) }
    /// When the last byte of the request was sent.
    open var requestEndDate: Date? { date(timeline.requestEnd) }
    /// When the first byte of the response came.
    open var responseStartDate: Date? { date(timeline.responseStart) }
    /// When the last byte of the response came.
    open var responseEndDate: Date? { date(timeline.responseEnd) }

    // MARK: How

    /// The protocol by its ALPN identifier (RFC 7301), as in "http/1.1".
    open var networkProtocolName: String? { timeline.networkProtocol }
    /// Whether the connection went through a proxy.
    open var isProxyConnection: Bool { timeline.isProxyConnection }
    /// Whether the connection was there already.
    open var isReusedConnection: Bool { timeline.isReusedConnection }
    /// Where the response came from.
    open var resourceFetchType: URLSessionTaskMetrics.ResourceFetchType {
        switch timeline.source {
        case .unknown: .unknown
        case .network: .networkLoad
        case .localCache: .localCache
        }
    }
    /// How the host's name was resolved: `.udp` by name servers that the session's ``URLSessionConfiguration/connectionOptions`` name or that
    /// DNSSEC was checked with, be it that a long answer came over TCP; else unknown, since the system's resolver does not tell.
    open var domainResolutionProtocol: URLSessionTaskMetrics.DomainResolutionProtocol {
        timeline.domainLookupStart != nil && timeline.connection?.askedNameServers == true ? .udp : .unknown
    }

    // MARK: Bytes

    /// Bytes of the request's head as they were sent.
    open var countOfRequestHeaderBytesSent: Int64 { timeline.requestHeaderBytes }
    /// Bytes of the request's body as they were sent, with transfer coding.
    open var countOfRequestBodyBytesSent: Int64 { timeline.requestBodyBytes }
    /// Bytes of the request's body as the app gave them.
    open var countOfRequestBodyBytesBeforeEncoding: Int64 { timeline.requestBodyBytesBeforeEncoding }
    /// Bytes of the response's head as they came.
    open var countOfResponseHeaderBytesReceived: Int64 { timeline.responseHeaderBytes }
    /// Bytes of the response's body as they came, with transfer and content coding.
    open var countOfResponseBodyBytesReceived: Int64 { timeline.responseBodyBytes }
    /// Bytes of the response's body as they were delivered.
    open var countOfResponseBodyBytesAfterDecoding: Int64 { timeline.responseBodyBytesAfterDecoding }

    // MARK: The connection

    /// The IP address at this end, or nil where nothing went over the network.
    open var localAddress: String? { timeline.connection?.localAddress }
    /// The port at this end.
    open var localPort: Int? { timeline.connection?.localPort }
    /// The IP address at the other end: the proxy's where there is one.
    open var remoteAddress: String? { timeline.connection?.remoteAddress }
    /// The port at the other end.
    open var remotePort: Int? { timeline.connection?.remotePort }
    /// The version of TLS, or nil in clear.
    open var negotiatedTLSProtocolVersion: tls_protocol_version_t? {
        timeline.connection?.tlsVersion.flatMap(tls_protocol_version_t.init(rawValue:))
    }
    /// The cipher suite of TLS, or nil in clear and for suites without a name here.
    open var negotiatedTLSCipherSuite: tls_ciphersuite_t? {
        timeline.connection?.tlsCipherSuite.flatMap(tls_ciphersuite_t.init(rawValue:))
    }
    /// Whether the network is cellular.
    ///
    /// As sysfs, or the session's ``NetworkPathMonitor``, says of the interface that the connection was made over.
    open var isCellular: Bool { timeline.connection?.interface?.kind == .cellular }
    /// Whether the network is expensive.
    ///
    /// As NetworkManager, or the session's ``NetworkPathMonitor``, says of the interface that the connection was made over.
    open var isExpensive: Bool { timeline.connection?.interface?.isExpensive ?? false }
    /// Whether the network is in low data mode.
    ///
    /// As the session's ``NetworkPathMonitor`` says of the interface that the connection was made over; Linux itself has no such mode.
    open var isConstrained: Bool { timeline.connection?.interface?.isConstrained ?? false }
    /// Whether multipath TCP was in use.
    ///
    /// It is where ``URLSessionConfiguration/multipathServiceType`` asks for it, and kernel and server have it.
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
