//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

public import Foundation
internal import LoadingModel
internal import LoadingStores
import Synchronization

/// The behavior of a session: timeouts, limits, header fields, trust, and the app's `URLProtocol` classes.
///
/// A session copies its configuration when it is made; later changes have no effect on it.
///
/// Sendable because a mutex guards its state.
open class URLSessionConfiguration: NSObject, NSCopying, @unchecked Sendable {
    private let settings: Mutex<SessionSettings>

    /// Makes a configuration with the values of ``default``.
    public override init() {
        settings = Mutex(SessionSettings())
        super.init()
    }

    init(_ settings: sending SessionSettings) {
        self.settings = Mutex(settings)
        super.init()
    }

    /// The default configuration; a new object each time.
    open class var `default`: URLSessionConfiguration { URLSessionConfiguration() }

    /// A configuration for a session that writes nothing to disk: its cache, cookies and credentials are in memory and end with it;
    /// a new object each time.
    open class var ephemeral: URLSessionConfiguration {
        var settings = SessionSettings()
        settings.cache = .given(URLCache(memoryCapacity: 4 << 20, diskCapacity: 0, directory: nil))
        settings.cookies = .given(HTTPCookieStorage())
        settings.strictTransportSecurity = HSTSStore(path: nil)
        settings.credentials = .given(URLCredentialStorage())
        return URLSessionConfiguration(settings)
    }

    /// Returns the configuration of a session whose transfers the daemon `urlsessiond` carries out; a new object each time.
    ///
    /// The transfers continue when the program exits, crashes or is killed, and after a reboot. A program that makes the session
    /// again with the same identifier gets its tasks back and learns their results; see <doc:BackgroundSessions>. Programs are
    /// identified by their executable, so identifiers of different programs do not collide.
    ///
    /// - Parameter identifier: The identifier, which must not be empty: otherwise the tasks of the session fail.
    /// - Returns: The configuration: no cache, the shared cookies and credentials.
    open class func background(withIdentifier identifier: String) -> URLSessionConfiguration {
        var settings = SessionSettings()
        settings.background.identifier = identifier
        settings.cache = .given(nil)
        settings.policy.waitsForConnectivity = true
        return URLSessionConfiguration(settings)
    }

    /// The same as ``background(withIdentifier:)``.
    ///
    /// - Returns: The configuration.
    @available(*, deprecated, renamed: "background(withIdentifier:)")
    open class func backgroundSessionConfiguration(_ identifier: String) -> URLSessionConfiguration {
        background(withIdentifier: identifier)
    }

    /// The identifier of a background configuration; nil for others.
    open var identifier: String? { snapshot.background.identifier }

    /// Returns an independent copy.
    ///
    /// - Returns: The copy.
    open override func copy() -> Any { copy(with: nil) }

    /// Returns an independent copy.
    ///
    /// - Returns: The copy.
    open func copy(with zone: NSZone? = nil) -> Any { URLSessionConfiguration(snapshot) }

    /// A copy of the current settings.
    var snapshot: SessionSettings { settings.withLock { $0 } }

    func get<Value>(_ path: (borrowing SessionSettings) -> Value) -> Value { settings.withLock { path($0) } }
    func set(_ change: (inout SessionSettings) -> Void) { settings.withLock { change(&$0) } }

    // MARK: Requests

    /// How requests use the cache; default `.useProtocolCachePolicy`.
    ///
    /// Of this policy and the request's own, the more restrictive one applies. From the least restrictive:
    /// `.useProtocolCachePolicy`, `.returnCacheDataElseLoad`, `.reloadRevalidatingCacheData`, `.reloadIgnoringLocalCacheData`,
    /// `.reloadIgnoringLocalAndRemoteCacheData`, `.returnCacheDataDontLoad`.
    open var requestCachePolicy: NSURLRequest.CachePolicy {
        get { get { NSURLRequest.CachePolicy($0.policy.cachePolicy) } }
        set { set { $0.policy.cachePolicy = newValue.loadPolicy } }
    }

    /// The request timeout: how many seconds a load may be idle before it fails, unless the request sets its own.
    ///
    /// Default 60. Zero and negative values mean no timeout.
    ///
    /// The time does not run while the task is suspended, is queued for a connection, or waits for the app.
    open var timeoutIntervalForRequest: TimeInterval {
        get { get { $0.policy.requestTimeout } }
        set { set { $0.policy.requestTimeout = newValue } }
    }

    /// The resource timeout: how many seconds a load may take altogether; default 604,800, seven days.
    open var timeoutIntervalForResource: TimeInterval {
        get { get { $0.policy.resourceTimeout } }
        set { set { $0.policy.resourceTimeout = newValue } }
    }

    /// Header fields that are added to requests that do not set them; default nil.
    ///
    /// `Authorization` and `Cookie` are sent only to the origin (scheme, host and port) of each task's request. After a redirect to
    /// another origin the task no longer sends them, even if a later redirect leads back. A request's own `Authorization` replaces
    /// the session's, and so does a credential that answered a challenge of the server. Tasks do not show it in their requests.
    ///
    /// The other fields that Apple reserves (`Connection`, `Host`, `Proxy-Authenticate`, `Proxy-Authorization`, `WWW-Authenticate`)
    /// and message framing fields are ignored, with one warning on standard error. The credentials for a proxy belong in the proxy
    /// settings (``connectionProxyDictionary``). Keys and values that are not strings are converted with their descriptions.
    open var httpAdditionalHeaders: [AnyHashable: Any]? {
        get { get { $0.httpAdditionalHeaders } }
        set {
            let fields = newValue.map { $0.map { ("\($0.key.base)", "\($0.value)") } }
            set { $0.httpAdditionalHeaders = fields.map { Dictionary($0) { first, _ in first } } }
        }
    }

    /// The maximum number of simultaneous connections to one host; default 6.
    open var httpMaximumConnectionsPerHost: Int {
        get { get { $0.httpMaximumConnectionsPerHost } }
        set { set { $0.httpMaximumConnectionsPerHost = newValue } }
    }

    /// Whether requests may be pipelined, that is, sent before earlier ones on the connection have their responses.
    ///
    /// Default false. HTTP/1.1 pipelining is never used; see ``URLRequest/httpShouldUsePipelining``.
    open var httpShouldUsePipelining: Bool {
        get { get { $0.httpShouldUsePipelining } }
        set { set { $0.httpShouldUsePipelining = newValue } }
    }

    // MARK: Networks

    /// The purpose of the traffic.
    ///
    /// Default `.default`. If a request has another type, that one applies; see ``URLRequest/networkServiceType``.
    open var networkServiceType: NSURLRequest.NetworkServiceType {
        get { get { NSURLRequest.NetworkServiceType($0.policy.needs.service) } }
        set { set { $0.policy.needs.service = newValue.service } }
    }

    /// Whether loads may use a cellular network.
    ///
    /// Default true. The stricter of this and the request's setting applies.
    ///
    /// A load that only such a network could carry fails with `URLError.notConnectedToInternet` and its `networkUnavailableReason`,
    /// or waits if ``waitsForConnectivity`` is true. The kernel's routes determine the interface, and sysfs its type.
    open var allowsCellularAccess: Bool {
        get { get { $0[allows: .cellular] } }
        set { set { $0[allows: .cellular] = newValue } }
    }

    /// Whether loads may use an expensive network.
    ///
    /// Default true; behaves like ``allowsCellularAccess``. NetworkManager reports metered networks; without it there are none.
    open var allowsExpensiveNetworkAccess: Bool {
        get { get { $0[allows: .expensive] } }
        set { set { $0[allows: .expensive] = newValue } }
    }

    /// Whether loads may use a network in low data mode.
    ///
    /// Default true; behaves like ``allowsCellularAccess``. Linux has no such mode: only a ``NetworkPathMonitor`` reports it.
    open var allowsConstrainedNetworkAccess: Bool {
        get { get { $0[allows: .constrained] } }
        set { set { $0[allows: .constrained] = newValue } }
    }

    /// Whether loads may use an ultra-constrained network.
    ///
    /// Default true; behaves like ``allowsCellularAccess``. Only a ``NetworkPathMonitor`` of the app can report such networks.
    open var allowsUltraConstrainedNetworkAccess: Bool {
        get { get { $0[allows: .ultraConstrained] } }
        set { set { $0[allows: .ultraConstrained] = newValue } }
    }

    /// Whether a load waits for a network instead of failing immediately if there is none; default false.
    ///
    /// It waits if nothing beyond this machine is reachable, or only through networks that the `allows` properties exclude. The
    /// resource timeout runs meanwhile. `urlSession(_:taskIsWaitingForConnectivity:)` is called once per task. A server that
    /// refuses connections, or a connection that is lost later, still fails the load.
    open var waitsForConnectivity: Bool {
        get { get { $0.policy.waitsForConnectivity } }
        set { set { $0.policy.waitsForConnectivity = newValue } }
    }

    /// Whether addresses must be validated by DNSSEC.
    ///
    /// Default false; see ``URLRequest/requiresDNSSECValidation``.
    open var requiresDNSSECValidation: Bool {
        get { get { $0.policy.needs.requiresDNSSEC } }
        set { set { $0.policy.needs.requiresDNSSEC = newValue } }
    }

    /// The purpose of multipath TCP.
    ///
    /// Default `.none`. With any other value, connections use multipath TCP if kernel and server support it. The system manages paths.
    open var multipathServiceType: MultipathServiceType {
        get { get { $0.multipathServiceType } }
        set { set { $0.multipathServiceType = newValue } }
    }

    /// Whether Apple's older loader is used.
    ///
    /// Default true. This library has only one loader, so the value has no effect.
    open var usesClassicLoadingMode: Bool {
        get { get { $0.usesClassicLoadingMode } }
        set { set { $0.usesClassicLoadingMode = newValue } }
    }

    /// Whether requests may be sent in a TLS handshake's early data.
    ///
    /// Default false. No effect: Apple's system sends early data only with HTTP/3, which this library does not support.
    open var enablesEarlyData: Bool {
        get { get { $0.enablesEarlyData } }
        set { set { $0.enablesEarlyData = newValue } }
    }

    // MARK: Background

    /// Whether the system schedules a background session's transfers: on an unmetered network and external power, after others.
    ///
    /// Default false. Transfers started by a program that the daemon launched are always discretionary. No effect on others.
    open var isDiscretionary: Bool {
        get { get { $0.background.isDiscretionary } }
        set { set { $0.background.isDiscretionary = newValue } }
    }

    /// Whether the daemon launches the program when a background session's tasks have finished, or one needs a decision.
    ///
    /// Default true. Requires ``backgroundLaunch``. No effect on other sessions.
    open var sessionSendsLaunchEvents: Bool {
        get { get { $0.background.sendsLaunchEvents } }
        set { set { $0.background.sendsLaunchEvents = newValue } }
    }

    /// The identifier of the shared container for a background session's files; default nil.
    ///
    /// A program in an `.appex` bundle needs one: without it, or with an empty one, its tasks fail with
    /// `URLError.backgroundSessionRequiresSharedContainer`. It has no other effect here: all programs of a user can read them.
    open var sharedContainerIdentifier: String? {
        get { get { $0.background.sharedContainer } }
        set { set { $0.background.sharedContainer = newValue } }
    }

    /// Whether connections stay open when a program moves to the background; default false.
    ///
    /// No effect: Linux does not suspend programs in the background.
    open var shouldUseExtendedBackgroundIdleMode: Bool {
        get { get { $0.background.usesExtendedIdleMode } }
        set { set { $0.background.usesExtendedIdleMode = newValue } }
    }

    // MARK: Cookies

    /// The storage for the session's cookies, or nil for none.
    ///
    /// Default `HTTPCookieStorage.shared`; an ephemeral configuration has its own, in memory.
    ///
    /// The session calls a subclass through its task-based methods; see ``HTTPCookieStorage``.
    open var httpCookieStorage: HTTPCookieStorage? {
        get { snapshot.cookieStorage }
        set { set { $0.cookies = .given(newValue) } }
    }

    /// Which cookies are accepted, regardless of the storage's own policy; default `.onlyFromMainDocumentDomain`.
    open var httpCookieAcceptPolicy: HTTPCookie.AcceptPolicy {
        get { get { HTTPCookie.AcceptPolicy($0.policy.cookieAcceptance) } }
        set { set { $0.policy.cookieAcceptance = newValue.acceptance } }
    }

    /// Whether requests carry the storage's cookies.
    ///
    /// Default true. `httpCookieAcceptPolicy` determines which cookies of responses are stored.
    ///
    /// A request's own `Cookie` field is sent in either case, before the storage's cookies.
    open var httpShouldSetCookies: Bool {
        get { get { $0.policy.usesCookies } }
        set { set { $0.policy.usesCookies = newValue } }
    }

    // MARK: Trust

    /// The storage for credentials that answer servers' challenges, and for those with permanent persistence; nil for none.
    ///
    /// Default `URLCredentialStorage.shared`; an ephemeral configuration has its own, in memory.
    ///
    /// The session calls a subclass through its task-based methods; see ``URLCredentialStorage``.
    open var urlCredentialStorage: URLCredentialStorage? {
        get { snapshot.credentialStorage }
        set { set { $0.credentials = .given(newValue) } }
    }

    /// The proxies for requests, with CFNetwork's keys as strings; see <doc:Proxies>.
    ///
    /// Default nil: the system's settings, which on Linux are the environment variables that curl reads (``proxyEnvironment``). An
    /// empty dictionary means no proxies.
    ///
    /// If an entry names a proxy that cannot be used, the loads it applies to fail with `URLError.cannotConnectToHost`.
    open var connectionProxyDictionary: [AnyHashable: Any]? {
        get { snapshot.proxies?.dictionary }
        set {
            let dictionary = newValue.map { ProxyDictionary($0) }
            set { $0.proxies = dictionary }
        }
    }

    /// Where connections lead to and come from, if URLs and the system are not to decide that.
    ///
    /// By default no option is set. Not in Apple's API.
    open var connectionOptions: ConnectionOptions {
        get { get { $0.connectionOptions } }
        set { set { $0.connectionOptions = newValue } }
    }

    /// The older form of ``tlsMinimumSupportedProtocolVersion``; default TLS 1.2.
    open var tlsMinimumSupportedProtocol: SSLProtocol {
        get { SSLProtocol(tlsMinimumSupportedProtocolVersion) }
        set { tlsMinimumSupportedProtocolVersion = newValue.version(unknown: .TLSv12) }
    }

    /// The older form of ``tlsMaximumSupportedProtocolVersion``; default TLS 1.3.
    open var tlsMaximumSupportedProtocol: SSLProtocol {
        get { SSLProtocol(tlsMaximumSupportedProtocolVersion) }
        set { tlsMaximumSupportedProtocolVersion = newValue.version(unknown: .TLSv13) }
    }

    /// The lowest TLS version to accept.
    ///
    /// Default TLS 1.2.
    open var tlsMinimumSupportedProtocolVersion: tls_protocol_version_t {
        get { get { $0.tlsMinimum } }
        set { set { $0.tlsMinimum = newValue } }
    }

    /// The highest TLS version to offer.
    ///
    /// Default TLS 1.3.
    open var tlsMaximumSupportedProtocolVersion: tls_protocol_version_t {
        get { get { $0.tlsMaximum } }
        set { set { $0.tlsMaximum = newValue } }
    }

    // MARK: Loading

    /// The session's ``URLProtocol`` subclasses, which are asked in order before the built-in loaders.
    ///
    /// Default empty. Classes registered with `URLProtocol.registerClass(_:)` apply only to the shared session.
    open var protocolClasses: [AnyClass]? {
        get { get { $0.protocolClasses } }
        set { set { $0.protocolClasses = newValue } }
    }

    /// The cache of the session, or nil for none.
    ///
    /// Default `URLCache.shared`; an ephemeral configuration has its own.
    ///
    /// The session calls a subclass through its task-based methods; see ``URLCache``.
    open var urlCache: URLCache? {
        get { snapshot.urlCache }
        set { set { $0.cache = .given(newValue) } }
    }

    /// The maximum number of bytes of a body collected in memory, for completion handlers and `data(for:)`; a load with a longer
    /// body fails with `URLError.dataLengthExceedsMaximum`.
    ///
    /// Default nil, no limit. Not in Apple's API.
    open var maximumResponseBytesInMemory: Int64? {
        get { get { $0.policy.maximumCollectedBytes } }
        set { set { $0.policy.maximumCollectedBytes = newValue } }
    }

    /// The maximum ratio of decoded to encoded body length, after the first 64 MiB: protection against decompression bombs; a load
    /// that exceeds it fails with `URLError.dataLengthExceedsMaximum`.
    ///
    /// Default 200. Not in Apple's API.
    open var maximumDecompressionRatio: Int {
        get { get { $0.maximumDecompressionRatio } }
        set { set { $0.maximumDecompressionRatio = newValue } }
    }
}
