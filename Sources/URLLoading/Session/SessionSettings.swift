// SPDX-License-Identifier: Apache-2.0

import Foundation
import HTTPRules
import LoadingEngine
package import LoadingModel
import LoadingObservers
import LoadingStores
import Synchronization

/// The values of a ``URLSessionConfiguration``, and their translation for the engine.
struct SessionSettings: Sendable {
    enum Cookies: Sendable {
        case shared
        case given(HTTPCookieStorage?)
    }

    enum Cache: Sendable {
        /// The `URLCache.shared` at the time of use.
        case shared
        case given(URLCache?)
    }

    enum Credentials: Sendable {
        case shared
        case given(URLCredentialStorage?)
    }

    /// The settings of background sessions.
    struct Background: Sendable {
        /// Nil for other sessions.
        var identifier: String?
        var isDiscretionary = false
        var sendsLaunchEvents = true
        var sharedContainer: String?
        var usesExtendedIdleMode = false
        var launch: URLSessionConfiguration.BackgroundLaunch?
    }

    var background = Background()
    /// The settings that the engine uses unchanged.
    var policy = SessionPolicy()
    var httpAdditionalHeaders: [String: String]?
    var httpShouldUsePipelining = false
    /// Nil for the system's monitor.
    var networkPathMonitor: (any NetworkPathMonitor)?
    var multipathServiceType: URLSessionConfiguration.MultipathServiceType = .none
    var usesClassicLoadingMode = true
    var enablesEarlyData = false
    var tlsMinimum: tls_protocol_version_t = .TLSv12
    var tlsMaximum: tls_protocol_version_t = .TLSv13
    var tlsTrustRoots: [Data] = []
    var protocolClasses: [AnyClass]? = []
    var cache: Cache = .shared
    var cookies: Cookies = .shared
    var credentials: Credentials = .shared
    /// Nil for the rules of the program's `Info.plist`.
    var transportSecurity: TransportSecurityDictionary?
    var proxies: ProxyDictionary?
    var connectionOptions = URLSessionConfiguration.ConnectionOptions()
    var proxyConfigurations: [ProxyConfiguration] = []
    /// Nil for the environment of the process.
    var proxyEnvironment: [String: String]?
    /// Nil for the program's store.
    var strictTransportSecurity: HSTSStore?
    var retryPolicy: URLSessionConfiguration.RetryPolicy?
    /// Replaces the system's clocks in tests.
    var clock: SteppedClock?
    #if Logging || Metrics || Tracing
    var observers = ObserverSettings()
    #endif

    /// All settings in the engine's representation.
    func enginePolicy() -> SessionPolicy {
        var policy = policy
        policy.maximumConnectionsPerHost = max(1, policy.maximumConnectionsPerHost)
        policy.additionalHeaders = headers()
        policy.retries = retryPolicy?.rules
        policy.minimumTLSVersion = Self.wireVersion(tlsMinimum)
        policy.maximumTLSVersion = Self.wireVersion(tlsMaximum)
        policy.trustRoots = tlsTrustRoots.flatMap(CertificateText.certificates)
        policy.maximumDecodingRatio = max(1, policy.maximumDecodingRatio)
        policy.temporaryDirectory = NSTemporaryDirectory()
        policy.connections = connectionOptions.loadOptions
        policy.usesMultipath = multipathServiceType != .none
        #if Logging || Metrics || Tracing
        policy.connectionObserver = SessionObservers(observers)
        #endif
        return policy
    }

    /// Whether loads may use the given networks.
    subscript(allows networks: ProhibitedNetworks) -> Bool {
        get { !policy.needs.prohibited.contains(networks) }
        set { if newValue { policy.needs.prohibited.remove(networks) } else { policy.needs.prohibited.insert(networks) } }
    }

    /// The proxy rules; nil if all requests go directly.
    func proxyRules() -> ProxyRules? {
        // Proxies do not apply to a Unix domain socket: a proxy cannot connect to a socket on this machine, and the proxy is not
        // reachable through the socket.
        guard connectionOptions.unixSocketPath == nil else { return nil }
        if !proxyConfigurations.isEmpty {
            var rules = ProxyRules()
            rules.list = proxyConfigurations.map(\.rule)
            return rules
        }
        if let proxies { return proxies.rules }
        if let proxyEnvironment { return ProxyParser.environment { proxyEnvironment[$0] } }
        return SystemProxies.rules()
    }

    var cookieStorage: HTTPCookieStorage? {
        switch cookies {
        case .shared: HTTPCookieStorage.shared
        case .given(let storage): storage
        }
    }

    var credentialStorage: URLCredentialStorage? {
        switch credentials {
        case .shared: URLCredentialStorage.shared
        case .given(let storage): storage
        }
    }

    var security: AppTransportSecurity { transportSecurity?.rules ?? ProgramSecurity.rules }

    var urlCache: URLCache? {
        switch cache {
        case .shared: URLCache.shared
        case .given(let cache): cache
        }
    }

    /// The app's header fields, without reserved ones, in a stable order.
    private func additionalFields() -> [(name: String, value: String)] {
        (httpAdditionalHeaders ?? [:]).sorted { $0.key < $1.key }.map { (name: $0.key, value: $0.value) }
            .filter { !OutgoingHeaders.isReservedForSession($0.name) }
    }

    /// The app's header fields that tasks include in the requests they show to the app.
    ///
    /// Fields that are bound to one origin, such as credentials, are left out, because the app may send these requests to another
    /// origin, or log them.
    func visibleFields() -> [(name: String, value: String)] {
        additionalFields().filter { !RedirectPolicy.isBoundToOrigin($0.name) }
    }

    /// Warns about each ignored field, once per process, because programs written for FoundationNetworking may rely on these fields.
    func warnAboutReservedFields() {
        for name in (httpAdditionalHeaders ?? [:]).keys.sorted() where OutgoingHeaders.isReservedForSession(name) {
            guard Self.warnedFields.withLock({ $0.insert(name.lowercased()).inserted }) else { continue }
            StoreWarnings.warn("httpAdditionalHeaders: \(name) is reserved and is not sent; set it on individual requests")
        }
    }

    private static let warnedFields = Mutex<Set<String>>([])

    /// The app's fields, and the default fields that the app does not set.
    private func headers() -> [(name: String, value: String)] {
        let own = additionalFields()
        let names = Set(own.map { $0.name.lowercased() })
        return own + Self.defaults.filter { !names.contains($0.name.lowercased()) }
    }

    /// Computed once: the process name does not change, and looking up the languages is slow.
    private static let defaults = DefaultHeaders.fields(
        processName: ProcessInfo.processInfo.processName,
        version: Bundle.main.infoDictionary?["CFBundleShortVersionString"] as? String,
        languages: Locale.preferredLanguages
    )

    /// The version number on the wire; a DTLS version is replaced with the corresponding TLS version.
    private static func wireVersion(_ version: tls_protocol_version_t) -> UInt16 {
        switch version {
        case .TLSv10, .TLSv11, .TLSv12, .TLSv13: version.rawValue
        case .DTLSv10: tls_protocol_version_t.TLSv11.rawValue
        case .DTLSv12: tls_protocol_version_t.TLSv12.rawValue
        }
    }
}

extension URLSessionConfiguration {
    /// The configuration in the engine's representation.
    package func sessionPolicy() -> SessionPolicy { snapshot.enginePolicy() }
}
