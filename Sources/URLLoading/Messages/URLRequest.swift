// SPDX-License-Identifier: Apache-2.0

public import Foundation
import HTTPWire
package import LoadingModel

/// A request to load a URL, with its header fields, body and options.
///
/// A value type with copy-on-write storage: making a request costs one allocation, passing a request costs none. The reference
/// counterparts are ``NSURLRequest`` and ``NSMutableURLRequest``; `request as NSURLRequest` converts a request to an object.
public struct URLRequest: Sendable {
    /// How a request uses the cache; the same as `NSURLRequest.CachePolicy`.
    public typealias CachePolicy = NSURLRequest.CachePolicy
    /// The purpose of the traffic; the same as `NSURLRequest.NetworkServiceType`.
    public typealias NetworkServiceType = NSURLRequest.NetworkServiceType
    /// The initiator of the load; the same as `NSURLRequest.Attribution`.
    public typealias Attribution = NSURLRequest.Attribution

    private(set) var storage: RequestStorage

    /// Makes a `GET` request.
    ///
    /// - Parameters:
    ///   - url: The URL to load. A relative URL is made absolute.
    ///   - cachePolicy: How to use the cache.
    ///   - timeoutInterval: The request timeout: how many seconds the load may be idle before it fails. With the default of 60 the
    ///     session's `timeoutIntervalForRequest` applies; setting ``timeoutInterval`` afterwards, even to 60, overrides it.
    public init(
        url: URL, cachePolicy: CachePolicy = .useProtocolCachePolicy, timeoutInterval: TimeInterval = 60.0
    ) {
        storage = RequestStorage(
            load: LoadRequest(
                url: url.baseURL == nil ? url : url.absoluteURL,
                timeout: timeoutInterval == RequestStorage.defaultTimeout ? nil : timeoutInterval,
                cachePolicy: cachePolicy.loadPolicy
            )
        )
    }

    /// Records, for caches, all fields that the request was or will be sent with.
    mutating func note(sentFields: HeaderBlock?) { storage.load.sentFields = sentFields }

    /// The URL to load.
    ///
    /// Setting nil makes a request that fails with `URLError.unsupportedURL`.
    public var url: URL? {
        get { storage.load.url }
        set { storage.load.url = newValue }
    }

    /// The URL of the main document, which determines whether cookies are third-party and same-site.
    ///
    /// Default nil: the request is first-party. If the main document's URL equals the request's URL, a redirect changes both.
    public var mainDocumentURL: URL? {
        get { storage.load.mainDocumentURL }
        set { storage.load.mainDocumentURL = newValue }
    }

    /// How the request uses the cache.
    ///
    /// Default `.useProtocolCachePolicy`. The more restrictive of this policy and the session's applies; see
    /// ``URLSessionConfiguration/requestCachePolicy``.
    public var cachePolicy: CachePolicy {
        get { CachePolicy(storage.load.cachePolicy) }
        set { storage.load.cachePolicy = newValue.loadPolicy }
    }

    /// The request timeout: how many seconds the load may be idle before it fails with `URLError.timedOut`.
    ///
    /// Returns 60 if the timeout was never set; the session's `timeoutIntervalForRequest` then applies. A timeout that was set,
    /// even to 60, overrides the session's.
    public var timeoutInterval: TimeInterval {
        get { storage.timeout }
        set { storage.load.timeout = newValue }
    }

    /// The HTTP method.
    ///
    /// Default "GET"; setting nil restores the default.
    ///
    /// GET, HEAD, POST, PUT, DELETE and CONNECT are recognized in any case and uppercased; every other method keeps its spelling,
    /// because methods are case-sensitive (RFC 9110, section 9.1).
    public var httpMethod: String? {
        get { storage.load.method }
        set { storage.load.method = RequestStorage.normalizedMethod(newValue ?? "GET") }
    }

    /// The request's own header fields, or nil if none was ever set.
    ///
    /// Fields that the session adds are not included.
    ///
    /// Setting it replaces all fields. Reading it creates a dictionary; ``value(forHTTPHeaderField:)`` is cheaper for one field.
    public var allHTTPHeaderFields: [String: String]? {
        get { storage.headerFields }
        set { storage.headerFields = newValue }
    }

    /// Returns the value of a header field, whose name is case-insensitive.
    ///
    /// - Returns: The value, or nil if the request has no such field.
    public func value(forHTTPHeaderField field: String) -> String? { storage.value(for: field) }

    /// Sets a header field, replacing its value; nil removes the field.
    ///
    /// An existing field keeps the spelling of its name. Whitespace and line ends at both ends of the value are removed, such as the
    /// line end of a token that was read from a file. A request whose value contains another line end or NUL, or whose name is not a
    /// token (RFC 9110, section 5.1), is not sent: its load fails with `URLError.badURL` and a message that names the field.
    public mutating func setValue(_ value: String?, forHTTPHeaderField field: String) { storage.set(value, for: field) }

    /// Adds a value to a header field; if the field exists, the value is appended after a comma.
    ///
    /// Values are treated as by ``setValue(_:forHTTPHeaderField:)``.
    public mutating func addValue(_ value: String, forHTTPHeaderField field: String) { storage.add(value, for: field) }

    /// The body.
    ///
    /// Default nil. Setting it removes ``httpBodyStream``.
    public var httpBody: Data? {
        get { storage.body }
        set { storage.body = newValue }
    }

    /// A stream for the body, which is sent with chunked transfer coding.
    ///
    /// Default nil. Setting it removes ``httpBody``.
    ///
    /// A stream can be read only once: if the body must be sent again, after a redirect or a challenge, the task asks its delegate
    /// for another stream.
    public var httpBodyStream: InputStream? {
        get { storage.stream }
        set { storage.bodyStream = newValue }
    }

    /// Whether this request carries the session's cookies, and the cookies of its response are stored.
    ///
    /// Default true. The app's own `Cookie` field is sent in either case.
    public var httpShouldHandleCookies: Bool {
        get { storage.load.handlesCookies }
        set { storage.load.handlesCookies = newValue }
    }

    /// Whether the request may be pipelined: sent on a connection before the responses to earlier requests have arrived.
    ///
    /// Default false.
    ///
    /// HTTP/1.1 pipelining is never used, as in Apple's newer loading mode: one lost response would stall all later ones.
    public var httpShouldUsePipelining: Bool {
        get { storage.options.contains(.usesPipelining) }
        set { storage.options.set(.usesPipelining, newValue) }
    }

    /// The purpose of the traffic.
    ///
    /// Default `.default`: the session's setting applies.
    ///
    /// Each other type marks packets with a code point (DSCP), which networks may honor, and with a priority in this machine's
    /// queues:
    /// - `.background`: code point CS1, priority 1;
    /// - `.responsiveData`: code point AF21, the default priority;
    /// - `.avStreaming`: code point AF31, priority 4;
    /// - `.responsiveAV`: code point CS4, priority 4;
    /// - `.video`: code point AF41, priority 4;
    /// - `.callSignaling` and `.voip`: code point CS5, priority 4;
    /// - `.voice`: code point EF, priority 6.
    ///
    /// Requests of different types do not share connections. If connections are scarce, `.background` requests are served last. Their
    /// connections yield to other traffic if the kernel has TCP Low Priority.
    public var networkServiceType: NetworkServiceType {
        get { storage.serviceType }
        set { storage.serviceType = newValue }
    }

    /// Whether the load may use a cellular network.
    ///
    /// Default true. The stricter of this and the session's setting applies; see ``URLSessionConfiguration/allowsCellularAccess``.
    public var allowsCellularAccess: Bool {
        get { !storage.load.needs.prohibited.contains(.cellular) }
        set { storage.prohibit(.cellular, !newValue) }
    }

    /// Whether the load may use an expensive network.
    ///
    /// Default true. The stricter of this and the session's setting applies; see
    /// ``URLSessionConfiguration/allowsExpensiveNetworkAccess``.
    public var allowsExpensiveNetworkAccess: Bool {
        get { !storage.load.needs.prohibited.contains(.expensive) }
        set { storage.prohibit(.expensive, !newValue) }
    }

    /// Whether the load may use a network in low data mode.
    ///
    /// Default true. The stricter of this and the session's setting applies; see
    /// ``URLSessionConfiguration/allowsConstrainedNetworkAccess``.
    public var allowsConstrainedNetworkAccess: Bool {
        get { !storage.load.needs.prohibited.contains(.constrained) }
        set { storage.prohibit(.constrained, !newValue) }
    }

    /// Whether the load may use an ultra-constrained network, such as a satellite link.
    ///
    /// Default true. The stricter of this and the session's setting applies; see
    /// ``URLSessionConfiguration/allowsUltraConstrainedNetworkAccess``.
    public var allowsUltraConstrainedNetworkAccess: Bool {
        get { !storage.load.needs.prohibited.contains(.ultraConstrained) }
        set { storage.prohibit(.ultraConstrained, !newValue) }
    }

    /// Whether to assume that the server supports HTTP/3.
    ///
    /// Default false: HTTP/3 is tried if the server announces it, by an `Alt-Svc` field of an earlier response (RFC 7838) or by an
    /// HTTPS record in the DNS (RFC 9460). If true, it is tried at once, for the URL's host and port. It is not the only way: if a
    /// connection over QUIC is not established within 200 ms, one over TCP is made beside it, and the first to be ready is used. A
    /// server that cannot be reached over QUIC is not tried again for a while.
    ///
    /// No effect where HTTP/3 cannot be used: if ngtcp2 and nghttp3 are not installed, for `http` URLs, through proxies, and with
    /// settings of the session that exclude it, such as a maximum TLS version below 1.3. To demand HTTP/3, use
    /// ``URLSessionConfiguration/ConnectionOptions/HTTPVersions-swift.enum/http3Only``.
    public var assumesHTTP3Capable: Bool {
        get { storage.load.assumesHTTP3 }
        set { storage.load.assumesHTTP3 = newValue }
    }

    /// Whether the app's developer or its user caused the load, for Apple's privacy report.
    ///
    /// Default `.developer`. Linux has no such report.
    public var attribution: Attribution {
        get { storage.options.contains(.attributedToUser) ? .user : .developer }
        set { storage.options.set(.attributedToUser, newValue == .user) }
    }

    /// Whether the host's addresses must be validated by DNSSEC.
    ///
    /// Default false: the session's setting applies. If validation is required, the system's name servers are queried through
    /// libunbound, which checks the signatures from the DNS root; other sources of names, such as `/etc/hosts`, are ignored. Lookups
    /// of names without a valid signature fail with `URLError.dnsLookupFailed`, and so does every lookup if libunbound or the root key
    /// (`/usr/share/dns/root.key`) is not installed. IP addresses in URLs, `localhost`, and addresses from
    /// ``URLSessionConfiguration/connectionOptions`` need no lookup. Names that a proxy looks up are not validated.
    public var requiresDNSSECValidation: Bool {
        get { storage.options.contains(.requiresDNSSEC) }
        set { storage.options.set(.requiresDNSSEC, newValue) }
    }

    /// Whether an expired DNS answer may be used while a new answer is fetched.
    ///
    /// Default false. No effect: this library does not cache DNS answers; the system's resolver decides.
    public var allowsPersistentDNS: Bool {
        get { storage.options.contains(.allowsPersistentDNS) }
        set { storage.options.set(.allowsPersistentDNS, newValue) }
    }

    /// The cookie partition of the load.
    ///
    /// Default nil. `Partitioned` cookies that the load's responses set are sent only with requests of the same partition.
    public var cookiePartitionIdentifier: String? {
        get { storage.cookiePartition }
        set { storage.cookiePartition = newValue }
    }
}

// MARK: - For the engine and the bridged classes

extension URLRequest {
    /// The request in the engine's representation.
    ///
    /// A body stream is represented as `.streamOnDemand`.
    package var loadRequest: LoadRequest { storage.load }

    /// Whether ``timeoutInterval`` was set, so that it overrides the session's.
    package var hasExplicitTimeout: Bool { storage.load.timeout != nil }

    /// Converts a request of the engine; values that the engine does not know (stream, options, properties) come from `template`, the
    /// request that the engine's request was derived from.
    package init(loadRequest: LoadRequest, template: URLRequest?) {
        storage = RequestStorage(load: loadRequest, template: template?.storage)
    }

    /// Returns the request with a stream that contains the bytes of its body; ``loadRequest`` keeps the original body.
    func streaming(_ stream: InputStream) -> URLRequest {
        var request = self
        request.storage.stream = stream
        return request
    }

    /// Adds the header fields that the request lacks.
    mutating func complete(with fields: [(name: String, value: String)]) {
        for field in fields where value(forHTTPHeaderField: field.name) == nil {
            setValue(field.value, forHTTPHeaderField: field.name)
        }
    }

    /// Sets all flags from an archive.
    mutating func setOptions(archived options: UInt16) { storage.archivedOptions = options }

    /// Makes a request without a URL, the result of bridging nil.
    init() { storage = RequestStorage(load: LoadRequest(url: nil)) }

    /// The properties set with `URLProtocol.setProperty(_:forKey:in:)`.
    var properties: [String: Any] {
        get { storage.properties }
        set { storage.properties = newValue }
    }
}

extension URLRequest: Hashable {
    /// Whether two requests are equal; body streams are compared by identity.
    public static func == (left: URLRequest, right: URLRequest) -> Bool {
        left.storage.equals(right.storage)
    }

    /// Hashes the most distinctive properties.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(url)
        hasher.combine(mainDocumentURL)
        hasher.combine(storage.load.method)
        hasher.combine(httpBody)
        hasher.combine(storage.stream.map(ObjectIdentifier.init))
        hasher.combine(httpShouldHandleCookies)
    }
}

extension URLRequest: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The URL without its password, or "url: nil".
    public var description: String { url?.withoutPassword?.description ?? "url: nil" }
    /// The same as ``description``.
    public var debugDescription: String { description }
    /// The properties, without the passwords in URLs and the values of header fields.
    public var customMirror: Mirror {
        Mirror(
            self,
            children: [
                ("url", url?.withoutPassword as Any), ("cachePolicy", cachePolicy.rawValue), ("timeoutInterval", timeoutInterval),
                ("mainDocumentURL", mainDocumentURL?.withoutPassword as Any), ("networkServiceType", networkServiceType),
                ("allowsCellularAccess", allowsCellularAccess), ("httpMethod", httpMethod as Any),
                ("allHTTPHeaderFields", allHTTPHeaderFields?.keys.sorted() as Any), ("httpBody", httpBody as Any),
                ("httpBodyStream", httpBodyStream as Any), ("httpShouldHandleCookies", httpShouldHandleCookies),
                ("httpShouldUsePipelining", httpShouldUsePipelining),
            ],
            displayStyle: .struct
        )
    }
}
