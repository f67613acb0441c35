// SPDX-License-Identifier: Apache-2.0

public import Foundation

/// A request as an object: the reference counterpart of ``URLRequest``, for subclasses and Objective-C style interfaces.
///
/// Sendable because it is immutable. ``NSMutableURLRequest`` is mutable: as on Apple's platforms, while one thread changes a
/// request, no other thread may use that request.
open class NSURLRequest: NSObject, NSCopying, NSMutableCopying, NSSecureCoding, @unchecked Sendable {
    /// The request.
    ///
    /// Only ``NSMutableURLRequest`` and ``URLProtocol`` change it.
    final var request: URLRequest

    /// Makes a `GET` request; see ``URLRequest/init(url:cachePolicy:timeoutInterval:)``.
    public convenience init(url: URL) { self.init(url: url, cachePolicy: .useProtocolCachePolicy, timeoutInterval: 60) }

    /// Makes a `GET` request with a cache policy and a timeout in seconds.
    public init(url: URL, cachePolicy: CachePolicy, timeoutInterval: TimeInterval) {
        request = URLRequest(url: url, cachePolicy: cachePolicy, timeoutInterval: timeoutInterval)
        super.init()
    }

    init(_ request: URLRequest) {
        self.request = request
        super.init()
    }

    // MARK: Copying and coding

    /// Returns an immutable copy.
    ///
    /// - Returns: An `NSURLRequest`.
    open override func copy() -> Any { copy(with: nil) }

    /// Returns an immutable copy.
    ///
    /// - Returns: An `NSURLRequest`.
    open func copy(with zone: NSZone? = nil) -> Any {
        type(of: self) == NSURLRequest.self ? self : NSURLRequest(request)
    }

    /// Returns a mutable copy.
    ///
    /// - Returns: An `NSMutableURLRequest`.
    open override func mutableCopy() -> Any { mutableCopy(with: nil) }

    /// Returns a mutable copy.
    ///
    /// - Returns: An `NSMutableURLRequest`.
    open func mutableCopy(with zone: NSZone? = nil) -> Any { NSMutableURLRequest(request) }

    /// Always true.
    open class var supportsSecureCoding: Bool { true }

    /// Decodes an archived request.
    ///
    /// The body stream is not archived.
    public required init?(coder: NSCoder) {
        guard let request = RequestArchive.decode(coder) else { return nil }
        self.request = request
        super.init()
    }

    /// Encodes the request, without its body stream.
    open func encode(with coder: NSCoder) { RequestArchive.encode(request, coder) }

    /// Whether the other object is a request with equal properties.
    ///
    /// - Returns: Whether they are equal.
    open override func isEqual(_ object: Any?) -> Bool {
        switch object {
        case let other as NSURLRequest: other === self || other.request == request
        case let other as URLRequest: other == request
        default: false
        }
    }

    /// The hash of the request.
    open override var hash: Int { request.hashValue }

    /// The class and the URL without its password.
    open override var description: String {
        "<\(type(of: self))> { URL: \(request.url == nil ? "(null)" : request.description) }"
    }

    // MARK: Contents

    /// See ``URLRequest/url``.
    open var url: URL? { request.url }
    /// See ``URLRequest/mainDocumentURL``.
    open var mainDocumentURL: URL? { request.mainDocumentURL }
    /// See ``URLRequest/cachePolicy``.
    open var cachePolicy: CachePolicy { request.cachePolicy }
    /// See ``URLRequest/timeoutInterval``.
    ///
    /// The timeout is in seconds.
    open var timeoutInterval: TimeInterval { request.timeoutInterval }
    /// See ``URLRequest/networkServiceType``.
    open var networkServiceType: NetworkServiceType { request.networkServiceType }
    /// See ``URLRequest/allowsCellularAccess``.
    open var allowsCellularAccess: Bool { request.allowsCellularAccess }
    /// See ``URLRequest/allowsExpensiveNetworkAccess``.
    open var allowsExpensiveNetworkAccess: Bool { request.allowsExpensiveNetworkAccess }
    /// See ``URLRequest/allowsConstrainedNetworkAccess``.
    open var allowsConstrainedNetworkAccess: Bool { request.allowsConstrainedNetworkAccess }
    /// See ``URLRequest/allowsUltraConstrainedNetworkAccess``.
    open var allowsUltraConstrainedNetworkAccess: Bool { request.allowsUltraConstrainedNetworkAccess }
    /// See ``URLRequest/assumesHTTP3Capable``.
    open var assumesHTTP3Capable: Bool { request.assumesHTTP3Capable }
    /// See ``URLRequest/attribution``.
    open var attribution: Attribution { request.attribution }
    /// See ``URLRequest/requiresDNSSECValidation``.
    open var requiresDNSSECValidation: Bool { request.requiresDNSSECValidation }
    /// See ``URLRequest/allowsPersistentDNS``.
    open var allowsPersistentDNS: Bool { request.allowsPersistentDNS }
    /// See ``URLRequest/cookiePartitionIdentifier``.
    open var cookiePartitionIdentifier: String? { request.cookiePartitionIdentifier }
    /// See ``URLRequest/httpMethod``.
    open var httpMethod: String? { request.httpMethod }
    /// See ``URLRequest/allHTTPHeaderFields``.
    open var allHTTPHeaderFields: [String: String]? { request.allHTTPHeaderFields }
    /// See ``URLRequest/value(forHTTPHeaderField:)``.
    ///
    /// - Returns: The value, or nil if the request has no such field.
    open func value(forHTTPHeaderField field: String) -> String? { request.value(forHTTPHeaderField: field) }
    /// See ``URLRequest/httpBody``.
    open var httpBody: Data? { request.httpBody }
    /// See ``URLRequest/httpBodyStream``.
    open var httpBodyStream: InputStream? { request.httpBodyStream }
    /// See ``URLRequest/httpShouldHandleCookies``.
    open var httpShouldHandleCookies: Bool { request.httpShouldHandleCookies }
    /// See ``URLRequest/httpShouldUsePipelining``.
    open var httpShouldUsePipelining: Bool { request.httpShouldUsePipelining }
}
