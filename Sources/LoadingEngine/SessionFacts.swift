// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import HTTPTransport
import HTTPWire
import LoadingModel
import LoadingStores
import NIOCore

/// The state shared by all loads of a session.
final class SessionFacts {
    let policy: SessionPolicy
    let headers: OutgoingHeaders
    /// The session's own `Cache-Control` field.
    let cacheControl: String?
    let stores: SessionStores
    let security: AppTransportSecurity
    let loop: any EventLoop
    let turns: LoopTurns
    let mailbox: Mailbox
    let credentials = SessionCredentials()
    /// Holds the connections of requests whose own fields may authenticate them, for tasks without a delegate of their own.
    let ownFieldHolder = ConnectionHolder()
    let executor: LoopExecutor
    private var storesWereReady = false
    /// Runs loads that belong to no task of the app; nil before the session's first load.
    unowned var background: (any BackgroundLoading)?
    /// The last target that was parsed from a URL without a user: apps often request the same URL repeatedly.
    // Unchecked, because it is only read and set as a whole.
    @exclusivity(unchecked) var lastTarget: ParsedTarget?
    /// The cache keys that are being revalidated in the background.
    var revalidating: Set<String> = []

    /// The servers that have refused versions, and the versions that remain.
    // Unchecked because every request checks it; each insertion is a single statement.
    @exclusivity(unchecked) private(set) var narrowedOrigins: [Origin: HTTPVersions] = [:]

    /// Whether the session may reach, or accept, a server for a URL that other sessions would not.
    let mayReachOtherServers: Bool
    /// Responses that are stored for this session only; nil until the first is stored.
    // Unchecked because every request checks it; it is only replaced as a whole.
    @exclusivity(unchecked) var own: OwnResponses?
    /// A digest of the session's own trust roots, independent of their order.
    private(set) lazy var trustRootsDigest = ResumePoint.Source.voucher(of: policy.trustRoots.map { [$0] })
    /// Hosts that require TLS, learned over connections that other sessions might not accept; nil until there is such a host.
    private(set) var ownSecurity: HSTSStore?

    /// The session's proxies; nil if all requests go directly to their servers.
    let proxies: SessionProxies?
    /// Fetches certificates that servers do not send; nil if the session does not.
    let issuers: (any IssuerFetching)?
    /// The way to HTTP/3, and where origins may be reached over it.
    let http3: HTTP3Access

    init(
        policy: SessionPolicy, stores: SessionStores, security: AppTransportSecurity, proxies: ProxyRules?,
        issuers: (any IssuerFetching)?, executor: LoopExecutor, mailbox: Mailbox
    ) {
        self.issuers = issuers
        self.mailbox = mailbox
        self.security = security
        self.proxies = proxies.map(SessionProxies.init)
        self.policy = policy
        self.stores = stores
        self.executor = executor
        mayReachOtherServers = policy.mayReachOtherServers
        loop = executor.loop
        http3 = HTTP3Access(policy, loop: executor.loop) { [clock = stores.clock] in clock?.seconds ?? WallClock.seconds(.now()) }
        turns = executor.turns
        headers = OutgoingHeaders(
            additional: policy.additionalHeaders, codings: SystemCodings.acceptEncoding, omitting: policy.omittedHeaders)
        cacheControl = headers.sessionValue("Cache-Control")
    }

    /// The maximum number of remembered servers that refused a version.
    private static let maximumNarrowedOrigins = 1_024

    /// Records that only some versions may be used with the server.
    func narrow(_ origin: Origin, to versions: HTTPVersions) {
        if narrowedOrigins.count >= Self.maximumNarrowedOrigins { narrowedOrigins = [:] }
        narrowedOrigins[origin, default: .all].formIntersection(versions)
    }

    /// Returns the time of day of an instant, in seconds since the reference date.
    func seconds(_ instant: NIODeadline) -> Double { stores.clock?.seconds ?? WallClock.seconds(instant) }

    /// Waits a number of seconds by the session's clock.
    func wait(_ seconds: Double, in control: LoadControl) async throws(LoadError) {
        let length = Int64(min(max(0, seconds), 1e9) * 1e9)
        let bound = NIOLoopBound(control, eventLoop: loop)
        if let clock = stores.clock {
            let end = clock.elapsed.addingSaturating(length)
            let loop = loop
            let wait = clock.wait(until: end) { loop.execute { bound.value.wake() } }
            defer { clock.cancel(wait) }
            while clock.elapsed < end {
                try control.check()
                await control.wait()
            }
        } else {
            let end = NIODeadline.now() + .nanoseconds(length)
            let timer = loop.scheduleTask(deadline: end) { bound.value.wake() }
            defer { timer.cancel() }
            while NIODeadline.now() < end {
                try control.check()
                await control.wait()
            }
        }
    }

    /// Returns the HSTS store of this session only, and creates it if needed.
    func makeOwnSecurityIfNeeded() -> HSTSStore {
        if let ownSecurity { return ownSecurity }
        let made = HSTSStore(path: nil)
        ownSecurity = made
        return made
    }

    /// Removes the responses and HSTS hosts that are stored for this session only.
    func removeSessionOnlyState() {
        own = nil
        ownSecurity = nil
    }

    /// Whether the stores have been read from their files, which happens off the loop.
    ///
    /// Requests wait until the stores are ready.
    var storesAreReady: Bool {
        if !storesWereReady { storesWereReady = stores.areReady }
        return storesWereReady
    }
}

/// Fetches the certificates of issuers that servers do not send.
///
/// A protocol, because each fetch has an engine of its own, and what an engine's session consists of must not depend on engines.
protocol IssuerFetching: AnyObject {
    /// Fetches the certificates at a URL, or replies at once if the result is known.
    ///
    /// - Returns: The action that stops waiting for the result. When no handshake waits for the fetch any more, it is cancelled.
    func fetch(
        _ url: String, _ needs: ConnectionNeeds, usesProxies: Bool, within patience: TimeAmount,
        reply: @escaping (IssuerAnswer) -> Void
    ) -> () -> Void

    /// Forgets all results.
    func forget()
}

/// The results of parsing a URL, for reuse by the session.
final class ParsedTarget {
    let text: String
    let target: RequestTarget
    /// The reason why App Transport Security forbids the URL; nil if the URL is allowed.
    let refusal: String?
    /// The header fields of a plain GET for the URL; nil until there has been such a request.
    // Unchecked, because it is only read and set as a whole.
    @exclusivity(unchecked) private var plainFields: HeaderBlock??

    init(_ text: String, _ target: RequestTarget, refusal: String?) {
        self.text = text
        self.target = target
        self.refusal = refusal
    }

    /// Returns the header fields of a GET request that sets no fields of its own (``OutgoingHeaders/plain(for:)``).
    func plainFields(by headers: OutgoingHeaders) -> HeaderBlock? {
        if let plainFields { return plainFields }
        let fields = headers.plain(for: target)
        plainFields = .some(fields)
        return fields
    }
}

/// The state of a session's proxies.
final class SessionProxies {
    /// The rules that choose the proxy of a request.
    let rules: ProxyRules
    /// The proxies that recently could not be reached.
    var failed = FailedProxies()
    let scripts = ProxyScripts()

    init(_ rules: ProxyRules) { self.rules = rules }
}

extension ProxyServer {
    /// The user and password from the setting that names the proxy.
    var credential: LoadCredential? {
        user.map { LoadCredential(.password(user: $0, password: password ?? ""), persistence: .forSession) }
    }
}
