// SPDX-License-Identifier: Apache-2.0

public import Foundation

/// A mutable request as an object: the mutable reference counterpart of ``URLRequest``.
///
/// Two threads must not use it at the same time; pass copies. (`Sendable` is inherited, as on Apple's platforms.)
open class NSMutableURLRequest: NSURLRequest, @unchecked Sendable {
    /// Returns an immutable copy.
    ///
    /// - Returns: An `NSURLRequest`.
    open override func copy(with zone: NSZone? = nil) -> Any { NSURLRequest(request) }

    /// See ``URLRequest/url``.
    open override var url: URL? {
        get { request.url }
        set { request.url = newValue }
    }

    /// See ``URLRequest/mainDocumentURL``.
    open override var mainDocumentURL: URL? {
        get { request.mainDocumentURL }
        set { request.mainDocumentURL = newValue }
    }

    /// See ``URLRequest/cachePolicy``.
    open override var cachePolicy: CachePolicy {
        get { request.cachePolicy }
        set { request.cachePolicy = newValue }
    }

    /// See ``URLRequest/timeoutInterval``.
    open override var timeoutInterval: TimeInterval {
        get { request.timeoutInterval }
        set { request.timeoutInterval = newValue }
    }

    /// See ``URLRequest/networkServiceType``.
    open override var networkServiceType: NetworkServiceType {
        get { request.networkServiceType }
        set { request.networkServiceType = newValue }
    }

    /// See ``URLRequest/allowsCellularAccess``.
    open override var allowsCellularAccess: Bool {
        get { request.allowsCellularAccess }
        set { request.allowsCellularAccess = newValue }
    }

    /// See ``URLRequest/allowsExpensiveNetworkAccess``.
    open override var allowsExpensiveNetworkAccess: Bool {
        get { request.allowsExpensiveNetworkAccess }
        set { request.allowsExpensiveNetworkAccess = newValue }
    }

    /// See ``URLRequest/allowsConstrainedNetworkAccess``.
    open override var allowsConstrainedNetworkAccess: Bool {
        get { request.allowsConstrainedNetworkAccess }
        set { request.allowsConstrainedNetworkAccess = newValue }
    }

    /// See ``URLRequest/allowsUltraConstrainedNetworkAccess``.
    open override var allowsUltraConstrainedNetworkAccess: Bool {
        get { request.allowsUltraConstrainedNetworkAccess }
        set { request.allowsUltraConstrainedNetworkAccess = newValue }
    }

    /// See ``URLRequest/assumesHTTP3Capable``.
    open override var assumesHTTP3Capable: Bool {
        get { request.assumesHTTP3Capable }
        set { request.assumesHTTP3Capable = newValue }
    }

    /// See ``URLRequest/attribution``.
    open override var attribution: Attribution {
        get { request.attribution }
        set { request.attribution = newValue }
    }

    /// See ``URLRequest/requiresDNSSECValidation``.
    open override var requiresDNSSECValidation: Bool {
        get { request.requiresDNSSECValidation }
        set { request.requiresDNSSECValidation = newValue }
    }

    /// See ``URLRequest/allowsPersistentDNS``.
    open override var allowsPersistentDNS: Bool {
        get { request.allowsPersistentDNS }
        set { request.allowsPersistentDNS = newValue }
    }

    /// See ``URLRequest/cookiePartitionIdentifier``.
    open override var cookiePartitionIdentifier: String? {
        get { request.cookiePartitionIdentifier }
        set { request.cookiePartitionIdentifier = newValue }
    }

    /// See ``URLRequest/httpMethod``.
    open override var httpMethod: String? {
        get { request.httpMethod }
        set { request.httpMethod = newValue }
    }

    /// See ``URLRequest/allHTTPHeaderFields``.
    open override var allHTTPHeaderFields: [String: String]? {
        get { request.allHTTPHeaderFields }
        set { request.allHTTPHeaderFields = newValue }
    }

    /// See ``URLRequest/httpBody``.
    open override var httpBody: Data? {
        get { request.httpBody }
        set { request.httpBody = newValue }
    }

    /// See ``URLRequest/httpBodyStream``.
    open override var httpBodyStream: InputStream? {
        get { request.httpBodyStream }
        set { request.httpBodyStream = newValue }
    }

    /// See ``URLRequest/httpShouldHandleCookies``.
    open override var httpShouldHandleCookies: Bool {
        get { request.httpShouldHandleCookies }
        set { request.httpShouldHandleCookies = newValue }
    }

    /// See ``URLRequest/httpShouldUsePipelining``.
    open override var httpShouldUsePipelining: Bool {
        get { request.httpShouldUsePipelining }
        set { request.httpShouldUsePipelining = newValue }
    }

    /// See ``URLRequest/setValue(_:forHTTPHeaderField:)``.
    open func setValue(_ value: String?, forHTTPHeaderField field: String) {
        request.setValue(value, forHTTPHeaderField: field)
    }

    /// See ``URLRequest/addValue(_:forHTTPHeaderField:)``.
    open func addValue(_ value: String, forHTTPHeaderField field: String) {
        request.addValue(value, forHTTPHeaderField: field)
    }
}
