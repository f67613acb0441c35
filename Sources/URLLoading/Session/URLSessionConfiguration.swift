// SPDX-License-Identifier: Apache-2.0

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

    /// The configuration of a session that writes nothing to disk; a new object each time.
    ///
    /// The session's cache, cookies and credentials are in memory, and are discarded with it.
    open class var ephemeral: URLSessionConfiguration {
        var settings = SessionSettings()
        settings.cache = .given(URLCache(memoryCapacity: 4 << 20, diskCapacity: 0, directory: nil))
        settings.cookies = .given(HTTPCookieStorage())
        settings.strictTransportSecurity = HSTSStore(path: nil)
        settings.credentials = .given(URLCredentialStorage())
        return URLSessionConfiguration(settings)
    }

    /// Returns the configuration of a session whose transfers are performed by the daemon `urlsessiond`; a new object each time.
    ///
    /// The transfers continue when the program exits, crashes or is killed, and after a reboot. A program that makes a session with
    /// the same identifier again gets its tasks back and receives their results; see <doc:BackgroundSessions>. Programs are
    /// identified by their executables, so identifiers of different programs do not collide.
    ///
    /// - Parameter identifier: The identifier. If it is empty, the tasks of the session fail.
    /// - Returns: The configuration, without a cache and with the shared cookies and credentials.
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
    /// If the request also has a policy, the more restrictive of the two applies. From the least to the most restrictive they are:
    /// `.useProtocolCachePolicy`, `.returnCacheDataElseLoad`, `.reloadRevalidatingCacheData`, `.reloadIgnoringLocalCacheData`,
    /// `.reloadIgnoringLocalAndRemoteCacheData`, `.returnCacheDataDontLoad`.
    open var requestCachePolicy: NSURLRequest.CachePolicy {
        get { get { NSURLRequest.CachePolicy($0.policy.cachePolicy) } }
        set { set { $0.policy.cachePolicy = newValue.loadPolicy } }
    }

    /// The request timeout: how many seconds a load may be idle before it fails, unless its request sets another timeout.
    ///
    /// Default 60. Zero and negative values mean no timeout.
    ///
    /// The timeout does not run while the task is suspended, is queued for a connection, or waits for the app.
    open var timeoutIntervalForRequest: TimeInterval {
        get { get { $0.policy.requestTimeout } }
        set { set { $0.policy.requestTimeout = newValue } }
    }

    /// The resource timeout: the maximum duration of a load in seconds; default 604,800, seven days.
    open var timeoutIntervalForResource: TimeInterval {
        get { get { $0.policy.resourceTimeout } }
        set { set { $0.policy.resourceTimeout = newValue } }
    }

    /// Header fields that are added to requests that do not set them; default nil.
    ///
    /// `Authorization` and `Cookie` are sent only to the origin (scheme, host and port) of each task's request. After a redirect to
    /// another origin the task no longer sends them, even if a later redirect leads back. The request's own `Authorization`, or a
    /// credential that answered a challenge, overrides the session's. A task's `currentRequest` omits the session's values of both fields.
    ///
    /// The other fields that Apple reserves (`Connection`, `Host`, `Proxy-Authenticate`, `Proxy-Authorization`, `WWW-Authenticate`)
    /// and message framing fields are ignored, with one warning on standard error. Credentials for a proxy belong in the proxy
    /// settings (``connectionProxyDictionary``). Keys and values are converted to text; an invalid field fails each load.
    open var httpAdditionalHeaders: [AnyHashable: Any]? {
        get { get { $0.httpAdditionalHeaders } }
        set {
            let fields = newValue.map { $0.map { ("\($0.key.base)", "\($0.value)") } }
            set { $0.httpAdditionalHeaders = fields.map { Dictionary($0) { first, _ in first } } }
        }
    }

    /// The maximum number of simultaneous connections to one host; default 6.
    open var httpMaximumConnectionsPerHost: Int {
        get { get { $0.policy.maximumConnectionsPerHost } }
        set { set { $0.policy.maximumConnectionsPerHost = newValue } }
    }

    /// Whether requests may be pipelined: sent on a connection before the responses to earlier requests have arrived.
    ///
    /// Default false. HTTP/1.1 pipelining is never used; see ``URLRequest/httpShouldUsePipelining``.
    open var httpShouldUsePipelining: Bool {
        get { get { $0.httpShouldUsePipelining } }
        set { set { $0.httpShouldUsePipelining = newValue } }
    }

    // MARK: Networks

    /// The purpose of the traffic.
    ///
    /// Default `.default`. A type set on the request takes precedence; see ``URLRequest/networkServiceType``.
    open var networkServiceType: NSURLRequest.NetworkServiceType {
        get { get { NSURLRequest.NetworkServiceType($0.policy.needs.service) } }
        set { set { $0.policy.needs.service = newValue.service } }
    }

    /// Whether loads may use a cellular network.
    ///
    /// Default true. The stricter of this setting and the request's applies.
    ///
    /// If only a cellular network is available, the load fails with `URLError.notConnectedToInternet` and its
    /// `networkUnavailableReason`, or waits if ``waitsForConnectivity`` is true. The interface is determined from the kernel's
    /// routes, and its type from sysfs.
    open var allowsCellularAccess: Bool {
        get { get { $0[allows: .cellular] } }
        set { set { $0[allows: .cellular] = newValue } }
    }

    /// Whether loads may use an expensive network.
    ///
    /// Default true; behaves like ``allowsCellularAccess``. Without NetworkManager, no network counts as metered and thus expensive.
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

    /// Whether a load waits for a network, instead of failing immediately, if none is available; default false.
    ///
    /// A load waits if only this machine can be reached, or if the `allows` properties exclude all available networks. The resource
    /// timeout runs meanwhile. `urlSession(_:taskIsWaitingForConnectivity:)` is called once per task. The load still fails if a
    /// server refuses connections, or if its connection is lost later.
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

    /// The purpose for which connections use multipath TCP.
    ///
    /// Default `.none`. With any other value, connections use multipath TCP if the kernel and the server support it. The kernel
    /// manages the paths, whichever of these values is set.
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
    /// Default false. No effect: Apple's system sends early data only over HTTP/3, which this library does not support.
    open var enablesEarlyData: Bool {
        get { get { $0.enablesEarlyData } }
        set { set { $0.enablesEarlyData = newValue } }
    }

    // MARK: Background

    /// Whether background transfers wait for an unmetered network, external power, and other transfers.
    ///
    /// Default false. Transfers started by a program that the daemon launched are always discretionary.
    open var isDiscretionary: Bool {
        get { get { $0.background.isDiscretionary } }
        set { set { $0.background.isDiscretionary = newValue } }
    }

    /// Whether the daemon launches the program when the tasks of a background session have finished, or a task needs a decision.
    ///
    /// Default true. Requires ``backgroundLaunch``. No effect on other sessions.
    open var sessionSendsLaunchEvents: Bool {
        get { get { $0.background.sendsLaunchEvents } }
        set { set { $0.background.sendsLaunchEvents = newValue } }
    }

    /// The identifier of the shared container for a background session's files; default nil.
    ///
    /// The session's tasks fail with `URLError.backgroundSessionRequiresSharedContainer` if the identifier is empty, or if it is nil
    /// and the program is in an `.appex` bundle. The identifier has no other effect on Linux.
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

    /// The storage that provides credentials for challenges and that saves permanent credentials; nil for none.
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
    /// If an entry names an unusable proxy, the loads that it applies to fail with `URLError.cannotConnectToHost`.
    open var connectionProxyDictionary: [AnyHashable: Any]? {
        get { snapshot.proxies?.dictionary }
        set {
            let dictionary = newValue.map { ProxyDictionary($0) }
            set { $0.proxies = dictionary }
        }
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

    /// The session's ``URLProtocol`` subclasses, which are asked in order before the built-in loaders are used.
    ///
    /// Default empty. Classes registered with `URLProtocol.registerClass(_:)` apply only to the shared session.
    open var protocolClasses: [AnyClass]? {
        get { get { $0.protocolClasses } }
        set { set { $0.protocolClasses = newValue } }
    }

    /// The cache of the session, or nil for none.
    ///
    /// Default `URLCache.shared`; an ephemeral configuration has its own. The session calls a subclass through its task-based methods;
    /// see ``URLCache``.
    open var urlCache: URLCache? {
        get { snapshot.urlCache }
        set { set { $0.cache = .given(newValue) } }
    }
}
