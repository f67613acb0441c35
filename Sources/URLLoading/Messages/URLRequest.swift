//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

public import Foundation
import HTTPWire
package import LoadingModel

/// What to load and how: a URL, and everything a request to it says.
///
/// A value type over one copy-on-write box, so that making a request costs one allocation and passing it around costs none.
/// Its reference counterparts are ``NSURLRequest`` and ``NSMutableURLRequest``; `request as NSURLRequest` bridges.
public struct URLRequest: Sendable {
    /// How a request uses the cache; the same as `NSURLRequest.CachePolicy`.
    public typealias CachePolicy = NSURLRequest.CachePolicy
    /// What the traffic is for; the same as `NSURLRequest.NetworkServiceType`.
    public typealias NetworkServiceType = NSURLRequest.NetworkServiceType
    /// Who caused the load; the same as `NSURLRequest.Attribution`.
    public typealias Attribution = NSURLRequest.Attribution

    private(set) var storage: RequestStorage

    /// Makes a `GET` request.
    ///
    /// - Parameters:
    ///   - url: What to load. A relative URL is made absolute.
    ///   - cachePolicy: How to use the cache.
    ///   - timeoutInterval: Seconds without progress after which the load fails. Leaving it at its default of 60 lets the
    ///     session's `timeoutIntervalForRequest` decide; setting ``timeoutInterval`` afterwards, even to 60, overrules that.
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

    /// Notes all fields that the request was sent with, or is about to be, for caches.
    mutating func note(sentFields: HeaderBlock?) { storage.load.sentFields = sentFields }

    /// What to load.
    ///
    /// Setting nil makes a request that fails with `URLError.unsupportedURL`.
    public var url: URL? {
        get { storage.load.url }
        set { storage.load.url = newValue }
    }

    /// The URL of the main document this request belongs to, by which third-party and same-site cookies are told apart.
    ///
    /// Default nil: the request is of its own site. Where it is the request's own URL, it moves along redirects.
    public var mainDocumentURL: URL? {
        get { storage.load.mainDocumentURL }
        set { storage.load.mainDocumentURL = newValue }
    }

    /// How the request uses the cache.
    ///
    /// Default `.useProtocolCachePolicy`. Of this and the session's own policy the more restrictive one holds; see
    /// ``URLSessionConfiguration/requestCachePolicy``.
    public var cachePolicy: CachePolicy {
        get { CachePolicy(storage.load.cachePolicy) }
        set { storage.load.cachePolicy = newValue.loadPolicy }
    }

    /// Seconds without progress after which the load fails with `URLError.timedOut`.
    ///
    /// Reads 60 where it was never set; then the session's `timeoutIntervalForRequest` applies. A value that was set, also 60,
    /// overrules the session's.
    public var timeoutInterval: TimeInterval {
        get { storage.timeout }
        set { storage.load.timeout = newValue }
    }

    /// The method.
    ///
    /// Default "GET"; setting nil makes it "GET" again.
    ///
    /// GET, HEAD, POST, PUT, DELETE and CONNECT are recognised in any case and written in capitals; every other method is kept as
    /// it is spelt, since methods are case-sensitive (RFC 9110, section 9.1).
    public var httpMethod: String? {
        get { storage.load.method }
        set { storage.load.method = RequestStorage.normalizedMethod(newValue ?? "GET") }
    }

    /// The request's own header fields, nil as long as none was ever set.
    ///
    /// What the session adds is not among them.
    ///
    /// Setting it replaces all fields. Reading builds a dictionary; ``value(forHTTPHeaderField:)`` is cheaper for one field.
    public var allHTTPHeaderFields: [String: String]? {
        get { storage.headerFields }
        set { storage.headerFields = newValue }
    }

    /// The value of a header field, its name compared without regard to case.
    ///
    /// - Returns: The value, or nil where the request has no such field.
    public func value(forHTTPHeaderField field: String) -> String? { storage.value(for: field) }

    /// Sets a header field, replacing its value; nil removes the field.
    ///
    /// A field that is already there keeps the spelling of its name. A value with a CR, LF or NUL in it (other than the obsolete
    /// folding, CRLF before a space or tab) is ignored, as Apple's does.
    public mutating func setValue(_ value: String?, forHTTPHeaderField field: String) { storage.set(value, for: field) }

    /// Adds a value to a header field, after a comma where the field already has one.
    public mutating func addValue(_ value: String, forHTTPHeaderField field: String) { storage.add(value, for: field) }

    /// The body.
    ///
    /// Default nil. Setting it removes ``httpBodyStream``.
    public var httpBody: Data? {
        get { storage.body }
        set { storage.body = newValue }
    }

    /// A stream that produces the body, sent with chunked transfer coding.
    ///
    /// Default nil. Setting it removes ``httpBody``.
    ///
    /// A stream can be read once: where the body must be sent again, after a redirect or a challenge, the task's delegate is asked
    /// for another one.
    public var httpBodyStream: InputStream? {
        get { storage.stream }
        set { storage.bodyStream = newValue }
    }

    /// Whether the session's cookies are sent with this request, and its response's are stored.
    ///
    /// Default true. A `Cookie` field of the app's own is sent in either case.
    public var httpShouldHandleCookies: Bool {
        get { storage.load.handlesCookies }
        set { storage.load.handlesCookies = newValue }
    }

    /// Whether the request may be sent before earlier ones on its connection are answered.
    ///
    /// Default false.
    ///
    /// HTTP/1.1 pipelining is never used, here as in Apple's newer loading mode: one lost response would stall all behind it.
    public var httpShouldUsePipelining: Bool {
        get { storage.options.contains(.usesPipelining) }
        set { storage.options.set(.usesPipelining, newValue) }
    }

    /// What the traffic is for.
    ///
    /// Default `.default`: as the session's configuration says. Packets are marked by a code point (DSCP) and a priority in this machine's
    /// queues, which networks may honour: `.background` CS1 and 1, `.responsiveData` AF21, `.avStreaming` AF31 and 4, `.responsiveAV` CS4
    /// and 4, `.video` AF41 and 4, `.callSignaling` and `.voip` CS5 and 4, `.voice` EF and 6. Requests of different types share no
    /// connection. Those of `.background` get theirs last where there is not room for all, and give way to other traffic where the kernel
    /// has TCP Low Priority.
    public var networkServiceType: NetworkServiceType {
        get { storage.serviceType }
        set { storage.serviceType = newValue }
    }

    /// Whether the load may use a cellular network.
    ///
    /// Default true. Of this and the configuration's the stricter holds; see ``URLSessionConfiguration/allowsCellularAccess``.
    public var allowsCellularAccess: Bool {
        get { !storage.load.needs.prohibited.contains(.cellular) }
        set { storage.prohibit(.cellular, !newValue) }
    }

    /// Whether the load may use an expensive network.
    ///
    /// Default true. Of this and the configuration's the stricter holds; see ``URLSessionConfiguration/allowsExpensiveNetworkAccess``.
    public var allowsExpensiveNetworkAccess: Bool {
        get { !storage.load.needs.prohibited.contains(.expensive) }
        set { storage.prohibit(.expensive, !newValue) }
    }

    /// Whether the load may use a network in low data mode.
    ///
    /// Default true. Of this and the configuration's the stricter holds; see
    /// ``URLSessionConfiguration/allowsConstrainedNetworkAccess``.
    public var allowsConstrainedNetworkAccess: Bool {
        get { !storage.load.needs.prohibited.contains(.constrained) }
        set { storage.prohibit(.constrained, !newValue) }
    }

    /// Whether the load may use an ultra-constrained network, such as a satellite's.
    ///
    /// Default true. Of this and the configuration's the stricter holds; see
    /// ``URLSessionConfiguration/allowsUltraConstrainedNetworkAccess``.
    public var allowsUltraConstrainedNetworkAccess: Bool {
        get { !storage.load.needs.prohibited.contains(.ultraConstrained) }
        set { storage.prohibit(.ultraConstrained, !newValue) }
    }

    /// Whether the server is assumed to speak HTTP/3 without having said so.
    ///
    /// Default false. HTTP/3 is not spoken here, so that the assumption is never acted on.
    public var assumesHTTP3Capable: Bool {
        get { storage.options.contains(.assumesHTTP3) }
        set { storage.options.set(.assumesHTTP3, newValue) }
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
    /// Default false: as the session's configuration says. Where it is required, the system's name servers are asked through libunbound, which
    /// checks the signatures from the DNS's root on; other sources of names, such as `/etc/hosts`, do not count. What is not signed, or not
    /// so, fails with `URLError.dnsLookupFailed`, and so does every look-up where libunbound or the root's key (`/usr/share/dns/root.key`) is
    /// not installed. Addresses in URLs, `localhost`, and what ``URLSessionConfiguration/connectionOptions`` says need no look-up. Names that a
    /// proxy looks up are its affair.
    public var requiresDNSSECValidation: Bool {
        get { storage.options.contains(.requiresDNSSEC) }
        set { storage.options.set(.requiresDNSSEC, newValue) }
    }

    /// Whether an expired DNS answer may be used while a new one is fetched.
    ///
    /// Default false. DNS answers are not kept here; the system's resolver decides.
    public var allowsPersistentDNS: Bool {
        get { storage.options.contains(.allowsPersistentDNS) }
        set { storage.options.set(.allowsPersistentDNS, newValue) }
    }

    /// The cookie partition the load belongs to.
    ///
    /// Default nil. Cookies with `Partitioned` that its responses set go with requests of the same partition alone.
    public var cookiePartitionIdentifier: String? {
        get { storage.cookiePartition }
        set { storage.cookiePartition = newValue }
    }
}

// MARK: - For the engine and the bridged classes

extension URLRequest {
    /// The engine's terms of this request.
    ///
    /// A body stream stands in it as `.streamOnDemand`.
    package var loadRequest: LoadRequest { storage.load }

    /// Whether ``timeoutInterval`` was set, so that it overrules the session's.
    package var hasExplicitTimeout: Bool { storage.load.timeout != nil }

    /// A request in the engine's terms, with what the engine does not know (stream, options, properties) taken from the request it
    /// stems from.
    package init(loadRequest: LoadRequest, template: URLRequest?) {
        storage = RequestStorage(load: loadRequest, template: template?.storage)
    }

    /// The request with a stream that holds the same bytes as its body, which stays as it is.
    func streaming(_ stream: InputStream) -> URLRequest {
        var request = self
        request.storage.stream = stream
        return request
    }

    /// Adds header fields that it does not have.
    mutating func complete(with fields: [(name: String, value: String)]) {
        for field in fields where value(forHTTPHeaderField: field.name) == nil {
            setValue(field.value, forHTTPHeaderField: field.name)
        }
    }

    /// Sets the flags all at once, as an archive has them.
    mutating func setOptions(archived options: UInt16) { storage.archivedOptions = options }

    /// A request for nothing, which bridging a nil reference gives.
    init() { storage = RequestStorage(load: LoadRequest(url: nil)) }

    /// What `URLProtocol.setProperty(_:forKey:in:)` kept with the request.
    var properties: [String: Any] {
        get { storage.properties }
        set { storage.properties = newValue }
    }
}

extension URLRequest: Hashable {
    /// Whether two requests ask for the same thing in the same way; body streams are compared by identity.
    public static func == (left: URLRequest, right: URLRequest) -> Bool {
        left.storage.equals(right.storage)
    }

    /// Feeds what tells requests apart into a hasher.
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
    /// The request's parts, without the URLs' passwords and the values of its header fields.
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
