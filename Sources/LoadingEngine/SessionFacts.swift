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

/// What every load of a session has in common.
final class SessionFacts {
    let policy: SessionPolicy
    let headers: OutgoingHeaders
    /// The session's own field of that name.
    let cacheControl: String?
    let stores: SessionStores
    let security: AppTransportSecurity
    let loop: any EventLoop
    let turns: LoopTurns
    let mailbox: Mailbox
    let credentials = SessionCredentials()
    let executor: LoopExecutor
    private var storesWereReady = false
    /// Starts a load that nobody ordered.
    var start: ((TaskOrder, any LoadClient) -> Void)?
    /// Says something about such a load.
    var command: ((TaskCommand, TaskID) -> Void)?
    /// Goes on with a load that has no task, when it was woken.
    var goOn: ((NIOLoopBound<Load>) -> Void)?
    /// What was read last of a URL without a user: programs that wait for something ask for one again and again.
    // Unchecked, as it is read and set as a whole.
    @exclusivity(unchecked) var lastTarget: KnownTarget?
    /// The keys of the cache that are being revalidated in the background.
    var revalidating: Set<String> = []

    /// Servers that refused HTTP/2.
    // Unchecked, as every request looks whether there are any, and they are added to in one statement.
    @exclusivity(unchecked) private(set) var http1Origins: Set<Origin> = []

    /// Whether the session may reach servers that others would not reach by the same URL, or not accept.
    let leavesSystemsWay: Bool
    /// What is stored for this session alone, once there is anything.
    // Unchecked, as every request looks whether there is anything, and it is set as a whole.
    @exclusivity(unchecked) var own: OwnResponses?
    /// The same for the same roots of its own, in whatever order.
    private(set) lazy var trustRootsDigest = ResumePoint.Source.voucher(of: policy.trustRoots.map { [$0] })
    /// Hosts that asked this session for TLS, over connections that other sessions might not accept; once there are any.
    private(set) var ownSecurity: HSTSStore?

    /// Nil where all requests go directly.
    let proxies: SessionProxies?
    /// In memory for every session: nothing dials by them yet.
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

    /// How many servers that refused HTTP/2 are remembered.
    private static let maximumHTTP1Origins = 1_024

    /// The server wants to be spoken to by HTTP/1.1 from now on.
    func noteHTTP1(_ origin: Origin) {
        if http1Origins.count >= Self.maximumHTTP1Origins { http1Origins = [] }
        http1Origins.insert(origin)
    }

    /// The time of day of an instant, in seconds since the reference date.
    func seconds(_ instant: NIODeadline) -> Double { stores.clock?.seconds ?? WallClock.seconds(instant) }

    /// Waits so many seconds of the session's time.
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

    /// The store for hosts that this session alone knows of.
    func keepingOwnSecurity() -> HSTSStore {
        if let ownSecurity { return ownSecurity }
        let made = HSTSStore(path: nil)
        ownSecurity = made
        return made
    }

    /// Forgets what this session alone knows.
    func forgetOwn() {
        own = nil
        ownSecurity = nil
    }

    /// Whether a request may look at the stores: their files were read, which is waited for away from the loop.
    var storesAreReady: Bool {
        if !storesWereReady { storesWereReady = stores.areReady }
        return storesWereReady
    }
}

/// What a session has found out of a URL, and need not find out again.
final class KnownTarget {
    let text: String
    let target: RequestTarget
    /// Why App Transport Security forbids to go there; nil where it does not.
    let refusal: String?
    /// The fields of a GET for it that has none of its own, once there was one.
    // Unchecked, as it is read and set as a whole.
    @exclusivity(unchecked) private var plainFields: HeaderBlock??

    init(_ text: String, _ target: RequestTarget, refusal: String?) {
        self.text = text
        self.target = target
        self.refusal = refusal
    }

    /// The fields of a GET that has none of its own (``OutgoingHeaders/plain(for:)``).
    func plainFields(by headers: OutgoingHeaders) -> HeaderBlock? {
        if let plainFields { return plainFields }
        let fields = headers.plain(for: target)
        plainFields = .some(fields)
        return fields
    }
}

/// What a session knows of its proxies.
final class SessionProxies {
    /// Which way requests go.
    let rules: ProxyRules
    /// Those that could not be reached a while ago.
    var failed = FailedProxies()
    let scripts = ProxyScripts()

    init(_ rules: ProxyRules) { self.rules = rules }
}

extension ProxyServer {
    /// What the settings that name the proxy say to it.
    var credential: LoadCredential? {
        user.map { LoadCredential(.password(user: $0, password: password ?? ""), persistence: .forSession) }
    }
}
