//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
import HTTPRules
import HTTPTransport
import HTTPWire
import LoadingModel
import LoadingStores
import NIOCore

/// The state that all loads of a session share.
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
    let executor: LoopExecutor
    private var storesWereReady = false
    /// Starts a load that belongs to no task of the app.
    var start: ((TaskOrder, any LoadClient) -> Void)?
    /// Sends a command to such a load.
    var command: ((TaskCommand, TaskID) -> Void)?
    /// Continues a load without a task after it was woken.
    var proceed: ((NIOLoopBound<Load>) -> Void)?
    /// The last target that was parsed from a URL without a user: apps often request the same URL repeatedly.
    // Unchecked, because it is only read and set as a whole.
    @exclusivity(unchecked) var lastTarget: KnownTarget?
    /// The cache keys that are being revalidated in the background.
    var revalidating: Set<String> = []

    /// Servers that refused HTTP/2.
    // Unchecked because every request checks it, and additions are single statements.
    @exclusivity(unchecked) private(set) var http1Origins: Set<Origin> = []

    /// Whether, for the same URL, the session may reach a server that other sessions would not reach or would not accept.
    let leavesSystemsWay: Bool
    /// Responses that are stored for this session only; nil until there is one.
    // Unchecked because every request checks it, and it is only set as a whole.
    @exclusivity(unchecked) var own: OwnResponses?
    /// A digest of the session's own roots, independent of their order.
    private(set) lazy var trustRootsDigest = ResumePoint.Source.voucher(of: policy.trustRoots.map { [$0] })
    /// Hosts that require TLS, learned over connections that other sessions might not accept; nil until there is one.
    private(set) var ownSecurity: HSTSStore?

    /// Nil if all requests go directly.
    let proxies: SessionProxies?
    /// In memory for every session; no dial uses them yet.
    var alternatives = AlternativeServices()

    init(
        policy: SessionPolicy, stores: SessionStores, security: AppTransportSecurity, proxies: ProxyRules?,
        executor: LoopExecutor, mailbox: Mailbox
    ) {
        self.mailbox = mailbox
        self.security = security
        self.proxies = proxies.map(SessionProxies.init)
        self.policy = policy
        self.stores = stores
        self.executor = executor
        leavesSystemsWay = policy.leavesSystemsWay
        loop = executor.loop
        turns = executor.turns
        headers = OutgoingHeaders(
            additional: policy.additionalHeaders, codings: SystemCodings.acceptEncoding, omitting: policy.omittedHeaders)
        cacheControl = headers.sessionValue("Cache-Control")
    }

    /// The maximum number of remembered servers that refused HTTP/2.
    private static let maximumHTTP1Origins = 1_024

    /// The server requires HTTP/1.1 from now on.
    func noteHTTP1(_ origin: Origin) {
        if http1Origins.count >= Self.maximumHTTP1Origins { http1Origins = [] }
        http1Origins.insert(origin)
    }

    /// The time of day of an instant, in seconds since the reference date.
    func seconds(_ instant: NIODeadline) -> Double { stores.clock?.seconds ?? WallClock.seconds(instant) }

    /// Waits a number of seconds of the session's time.
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

    /// Returns the store for hosts that only this session knows; creates it if needed.
    func keepingOwnSecurity() -> HSTSStore {
        if let ownSecurity { return ownSecurity }
        let made = HSTSStore(path: nil)
        ownSecurity = made
        return made
    }

    /// Removes what only this session knows.
    func forgetOwn() {
        own = nil
        ownSecurity = nil
    }

    /// Whether a request may use the stores: their files were read, which happens off the loop.
    var storesAreReady: Bool {
        if !storesWereReady { storesWereReady = stores.areReady }
        return storesWereReady
    }
}

/// The results of processing a URL, which the session reuses.
final class KnownTarget {
    let text: String
    let target: RequestTarget
    /// Why App Transport Security forbids the URL; nil if it does not.
    let refusal: String?
    /// The fields of a GET for the URL without fields of its own, once there was such a request.
    // Unchecked, because it is only read and set as a whole.
    @exclusivity(unchecked) private var plainFields: HeaderBlock??

    init(_ text: String, _ target: RequestTarget, refusal: String?) {
        self.text = text
        self.target = target
        self.refusal = refusal
    }

    /// The fields of a GET without fields of its own (``OutgoingHeaders/plain(for:)``).
    func plainFields(by headers: OutgoingHeaders) -> HeaderBlock? {
        if let plainFields { return plainFields }
        let fields = headers.plain(for: target)
        plainFields = .some(fields)
        return fields
    }
}

/// The state of a session's proxies.
final class SessionProxies {
    /// The rules that choose the route of a request.
    let rules: ProxyRules
    /// The proxies that recently could not be reached.
    var failed = FailedProxies()
    let scripts = ProxyScripts()

    init(_ rules: ProxyRules) { self.rules = rules }
}

extension ProxyServer {
    /// The credential from the settings that name the proxy.
    var credential: LoadCredential? {
        user.map { LoadCredential(.password(user: $0, password: password ?? ""), persistence: .forSession) }
    }
}
