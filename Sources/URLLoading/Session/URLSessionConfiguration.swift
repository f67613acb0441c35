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

/// How a session behaves: timeouts, limits, header fields, trust, and classes of the app that load for it.
///
/// A session copies its configuration when it is made; later changes have no effect on it.
///
/// Sendable because its state is under a mutex.
open class URLSessionConfiguration: NSObject, NSCopying, @unchecked Sendable {
    private let settings: Mutex<SessionSettings>

    /// The configuration that ``default`` gives.
    public override init() {
        settings = Mutex(SessionSettings())
        super.init()
    }

    init(_ settings: sending SessionSettings) {
        self.settings = Mutex(settings)
        super.init()
    }

    /// The configuration of an ordinary session; a new object each time.
    open class var `default`: URLSessionConfiguration { URLSessionConfiguration() }

    /// The configuration of a session that leaves nothing behind: it has a cache and cookies of its own, in memory, which end with it;
    /// a new object each time.
    open class var ephemeral: URLSessionConfiguration {
        var settings = SessionSettings()
        settings.cache = .given(URLCache(memoryCapacity: 4 << 20, diskCapacity: 0, directory: nil))
        settings.cookies = .given(HTTPCookieStorage())
        settings.strictTransportSecurity = HSTSStore(path: nil)
        settings.credentials = .given(URLCredentialStorage())
        return URLSessionConfiguration(settings)
    }

    /// The configuration of a session whose transfers another process carries out, the daemon `urlsessiond`; a new object each time.
    ///
    /// They go on when the program ends, crashes or is killed, and when the machine starts anew. A program that makes the session again,
    /// with the same identifier, has its tasks and is told what became of them; see <doc:BackgroundSessions>. Programs are told apart by
    /// their files, so that identifiers of different programs never meet.
    ///
    /// - Parameter identifier: Not empty. Tasks of a session without one fail.
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

    /// An independent copy.
    ///
    /// - Returns: The copy.
    open override func copy() -> Any { copy(with: nil) }

    /// An independent copy.
    ///
    /// - Returns: The copy.
    open func copy(with zone: NSZone? = nil) -> Any { URLSessionConfiguration(snapshot) }

    /// The settings at this moment.
    var snapshot: SessionSettings { settings.withLock { $0 } }

    func get<Value>(_ path: (borrowing SessionSettings) -> Value) -> Value { settings.withLock { path($0) } }
    func set(_ change: (inout SessionSettings) -> Void) { settings.withLock { change(&$0) } }

    // MARK: Requests

    /// How requests use the cache; default `.useProtocolCachePolicy`.
    ///
    /// Of this and the request's own policy the more restrictive one holds: from the least, `.useProtocolCachePolicy`,
    /// `.returnCacheDataElseLoad`, `.reloadRevalidatingCacheData`, `.reloadIgnoringLocalCacheData`,
    /// `.reloadIgnoringLocalAndRemoteCacheData`, `.returnCacheDataDontLoad`.
    open var requestCachePolicy: NSURLRequest.CachePolicy {
        get { get { NSURLRequest.CachePolicy($0.policy.cachePolicy) } }
        set { set { $0.policy.cachePolicy = newValue.loadPolicy } }
    }

    /// Seconds that the server may be silent before a load fails, where the request does not say otherwise.
    ///
    /// Default 60; 0 and less mean for ever.
    ///
    /// The time stands still while the task is suspended, waits in line for a connection, or the app is asked.
    open var timeoutIntervalForRequest: TimeInterval {
        get { get { $0.policy.requestTimeout } }
        set { set { $0.policy.requestTimeout = newValue } }
    }

    /// Seconds after which a load fails, whatever its progress; default 604,800, seven days.
    open var timeoutIntervalForResource: TimeInterval {
        get { get { $0.policy.resourceTimeout } }
        set { set { $0.policy.resourceTimeout = newValue } }
    }

    /// Header fields that are added to requests which do not have them; default nil.
    ///
    /// `Authorization` and `Cookie` are sent to the origin (scheme, host and port) of each task's request. After a redirect to another
    /// origin the task sends them no more, not even where a later redirect leads back. A request's own `Authorization` takes the place of
    /// the session's, and so does a credential that answered a challenge of the server. Tasks do not show the session's `Authorization`
    /// in their requests.
    ///
    /// The other fields that Apple reserves (`Connection`, `Host`, `Proxy-Authenticate`, `Proxy-Authorization`, `WWW-Authenticate`) and
    /// those that frame a message are left out, and standard error says so once. The credentials for a proxy belong to the settings that
    /// name it (``connectionProxyDictionary``). Keys and values that are not strings are described as strings.
    open var httpAdditionalHeaders: [AnyHashable: Any]? {
        get { get { $0.httpAdditionalHeaders } }
        set {
            let fields = newValue.map { $0.map { ("\($0.key.base)", "\($0.value)") } }
            set { $0.httpAdditionalHeaders = fields.map { Dictionary($0) { first, _ in first } } }
        }
    }

    /// The most connections to one host at a time; default 6.
    open var httpMaximumConnectionsPerHost: Int {
        get { get { $0.httpMaximumConnectionsPerHost } }
        set { set { $0.httpMaximumConnectionsPerHost = newValue } }
    }

    /// Whether requests may be sent before earlier ones on their connection are answered.
    ///
    /// Default false. HTTP/1.1 pipelining is never used; see ``URLRequest/httpShouldUsePipelining``.
    open var httpShouldUsePipelining: Bool {
        get { get { $0.httpShouldUsePipelining } }
        set { set { $0.httpShouldUsePipelining = newValue } }
    }

    // MARK: Networks

    /// What the traffic is for.
    ///
    /// Default `.default`. A request's own type, if it is another, comes first; see ``URLRequest/networkServiceType``.
    open var networkServiceType: NSURLRequest.NetworkServiceType {
        get { get { NSURLRequest.NetworkServiceType($0.policy.needs.service) } }
        set { set { $0.policy.needs.service = newValue.service } }
    }

    /// Whether loads may use a cellular network.
    ///
    /// Default true. Of this and the request's the stricter holds.
    ///
    /// A load that only such a network could carry fails with `URLError.notConnectedToInternet`, and its `networkUnavailableReason`, or
    /// waits where ``waitsForConnectivity`` says so. The kernel's route decides by which interface it leaves, and sysfs what that is.
    open var allowsCellularAccess: Bool {
        get { get { $0[allows: .cellular] } }
        set { set { $0[allows: .cellular] = newValue } }
    }

    /// Whether loads may use an expensive network.
    ///
    /// Default true, and as ``allowsCellularAccess``. NetworkManager says what is metered; without it no network is expensive.
    open var allowsExpensiveNetworkAccess: Bool {
        get { get { $0[allows: .expensive] } }
        set { set { $0[allows: .expensive] = newValue } }
    }

    /// Whether loads may use a network in low data mode.
    ///
    /// Default true, and as ``allowsCellularAccess``. Linux has no such mode: only a ``NetworkPathMonitor`` of the program's says so.
    open var allowsConstrainedNetworkAccess: Bool {
        get { get { $0[allows: .constrained] } }
        set { set { $0[allows: .constrained] = newValue } }
    }

    /// Whether loads may use an ultra-constrained network.
    ///
    /// Default true, and as ``allowsCellularAccess``. Only a ``NetworkPathMonitor`` of the program's tells such networks apart.
    open var allowsUltraConstrainedNetworkAccess: Bool {
        get { get { $0[allows: .ultraConstrained] } }
        set { set { $0[allows: .ultraConstrained] = newValue } }
    }

    /// Whether a load waits for a network instead of failing at once where there is none; default false.
    ///
    /// It waits where nothing beyond the machine can be reached, or only what the `allows` properties exclude; `timeoutIntervalForResource`
    /// runs meanwhile. `urlSession(_:taskIsWaitingForConnectivity:)` is called once for the task. A server that refuses connections, or a
    /// connection that is lost later, fails the load as ever.
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

    /// What multipath TCP is used for.
    ///
    /// Default `.none`. All others have connections be multipath TCP where the kernel and the server have it; paths are the system's affair.
    open var multipathServiceType: MultipathServiceType {
        get { get { $0.multipathServiceType } }
        set { set { $0.multipathServiceType = newValue } }
    }

    /// Whether Apple's older loader is used.
    ///
    /// Default true. There is one loader here; both values mean it.
    open var usesClassicLoadingMode: Bool {
        get { get { $0.usesClassicLoadingMode } }
        set { set { $0.usesClassicLoadingMode = newValue } }
    }

    /// Whether requests may be sent in a TLS handshake's early data.
    ///
    /// Default false. Early data needs HTTP/3 in Apple's system, which is not spoken here, so that none is ever sent.
    open var enablesEarlyData: Bool {
        get { get { $0.enablesEarlyData } }
        set { set { $0.enablesEarlyData = newValue } }
    }

    // MARK: Background

    /// Whether the system chooses when a background session's transfers run: on an unmetered network and external power, behind others.
    ///
    /// Default false. What a program orders that the daemon started is so in any case. No effect on other sessions.
    open var isDiscretionary: Bool {
        get { get { $0.background.isDiscretionary } }
        set { set { $0.background.isDiscretionary = newValue } }
    }

    /// Whether the daemon starts the program when a background session's tasks are done, or one needs a decision.
    ///
    /// Default true. It needs to know how: ``backgroundLaunch``. No effect on other sessions.
    open var sessionSendsLaunchEvents: Bool {
        get { get { $0.background.sendsLaunchEvents } }
        set { set { $0.background.sendsLaunchEvents = newValue } }
    }

    /// The group whose container a background session's files go to; default nil.
    ///
    /// A program in a bundle `.appex` needs one: without it, or with an empty one, its tasks fail with
    /// `URLError.backgroundSessionRequiresSharedContainer`. It has no other effect here: programs of a user can all reach their files.
    open var sharedContainerIdentifier: String? {
        get { get { $0.background.sharedContainer } }
        set { set { $0.background.sharedContainer = newValue } }
    }

    /// Whether connections stay open when a program goes to the background; default false.
    ///
    /// No effect: on Linux no program is suspended for that.
    open var shouldUseExtendedBackgroundIdleMode: Bool {
        get { get { $0.background.usesExtendedIdleMode } }
        set { set { $0.background.usesExtendedIdleMode = newValue } }
    }

    // MARK: Cookies

    /// Where the session's cookies are, or nil for nowhere.
    ///
    /// Default `HTTPCookieStorage.shared`; an ephemeral configuration has its own, in memory.
    ///
    /// A subclass is asked through its task-based methods; see ``HTTPCookieStorage``.
    open var httpCookieStorage: HTTPCookieStorage? {
        get { snapshot.cookieStorage }
        set { set { $0.cookies = .given(newValue) } }
    }

    /// Which cookies are accepted, whatever the storage's own policy; default `.onlyFromMainDocumentDomain`.
    open var httpCookieAcceptPolicy: HTTPCookie.AcceptPolicy {
        get { get { HTTPCookie.AcceptPolicy($0.policy.cookieAcceptance) } }
        set { set { $0.policy.cookieAcceptance = newValue.acceptance } }
    }

    /// Whether requests carry the storage's cookies.
    ///
    /// Default true. What is kept of responses is `httpCookieAcceptPolicy`'s affair.
    ///
    /// A request's own `Cookie` field is sent in either case, before the storage's cookies.
    open var httpShouldSetCookies: Bool {
        get { get { $0.policy.usesCookies } }
        set { set { $0.policy.usesCookies = newValue } }
    }

    // MARK: Trust

    /// Where the session finds credentials for the challenges of servers, and keeps those that are permanent; nil for nowhere.
    ///
    /// Default `URLCredentialStorage.shared`; an ephemeral configuration has its own, in memory.
    ///
    /// A subclass is asked through its task-based methods; see ``URLCredentialStorage``.
    open var urlCredentialStorage: URLCredentialStorage? {
        get { snapshot.credentialStorage }
        set { set { $0.credentials = .given(newValue) } }
    }

    /// The proxies that requests go through, by the keys of CFNetwork, written as strings; see <doc:Proxies>.
    ///
    /// Default nil: the system's settings, which on Linux are the environment's, as curl reads it (``proxyEnvironment``). An empty
    /// dictionary means no proxies.
    ///
    /// What names a proxy and cannot be followed fails the loads that it is about with `URLError.cannotConnectToHost`.
    open var connectionProxyDictionary: [AnyHashable: Any]? {
        get { snapshot.proxies?.dictionary }
        set {
            let dictionary = newValue.map { ProxyDictionary($0) }
            set { $0.proxies = dictionary }
        }
    }

    /// Where connections lead and where they come from, where that is not for URLs and the system to say.
    ///
    /// Default: nowhere. Not in Apple's API.
    open var connectionOptions: ConnectionOptions {
        get { get { $0.connectionOptions } }
        set { set { $0.connectionOptions = newValue } }
    }

    /// ``tlsMinimumSupportedProtocolVersion`` in older terms; default TLS 1.2.
    open var tlsMinimumSupportedProtocol: SSLProtocol {
        get { SSLProtocol(tlsMinimumSupportedProtocolVersion) }
        set { tlsMinimumSupportedProtocolVersion = newValue.version(unknown: .TLSv12) }
    }

    /// ``tlsMaximumSupportedProtocolVersion`` in older terms; default TLS 1.3.
    open var tlsMaximumSupportedProtocol: SSLProtocol {
        get { SSLProtocol(tlsMaximumSupportedProtocolVersion) }
        set { tlsMaximumSupportedProtocolVersion = newValue.version(unknown: .TLSv13) }
    }

    /// The lowest version of TLS to accept.
    ///
    /// Default TLS 1.2.
    open var tlsMinimumSupportedProtocolVersion: tls_protocol_version_t {
        get { get { $0.tlsMinimum } }
        set { set { $0.tlsMinimum = newValue } }
    }

    /// The highest version of TLS to offer.
    ///
    /// Default TLS 1.3.
    open var tlsMaximumSupportedProtocolVersion: tls_protocol_version_t {
        get { get { $0.tlsMaximum } }
        set { set { $0.tlsMaximum = newValue } }
    }

    // MARK: Loading

    /// Classes that load for the session before the built-in loaders do: subclasses of ``URLProtocol``, asked in order.
    ///
    /// Default empty. Classes registered with `URLProtocol.registerClass(_:)` serve the shared session alone.
    open var protocolClasses: [AnyClass]? {
        get { get { $0.protocolClasses } }
        set { set { $0.protocolClasses = newValue } }
    }

    /// The cache of the session, or nil for none.
    ///
    /// Default `URLCache.shared`; an ephemeral configuration has its own.
    ///
    /// A subclass is asked through its task-based methods; see ``URLCache``.
    open var urlCache: URLCache? {
        get { snapshot.urlCache }
        set { set { $0.cache = .given(newValue) } }
    }

    /// The most bytes of a body that is collected in memory, for completion handlers and `data(for:)`; a longer one fails with
    /// `URLError.dataLengthExceedsMaximum`.
    ///
    /// Default nil, no limit. Not in Apple's API.
    open var maximumResponseBytesInMemory: Int64? {
        get { get { $0.policy.maximumCollectedBytes } }
        set { set { $0.policy.maximumCollectedBytes = newValue } }
    }

    /// How many times its coded length a decoded body may have, beyond the first 64 MiB, before its load fails with
    /// `URLError.dataLengthExceedsMaximum`: the guard against decompression bombs.
    ///
    /// Default 200. Not in Apple's API.
    open var maximumDecompressionRatio: Int {
        get { get { $0.maximumDecompressionRatio } }
        set { set { $0.maximumDecompressionRatio = newValue } }
    }
}
