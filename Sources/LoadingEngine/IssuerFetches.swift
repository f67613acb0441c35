// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import HTTPTransport
import HTTPWire
import LoadingModel
import LoadingTrust
import NIOCore

/// Fetches the certificates of issuers that servers do not send, and remembers the results in memory.
///
/// Each fetch has an engine of its own, which knows how the session reaches servers, but has no cookies, credentials, stored
/// responses or header fields of the session. Handshakes that need the same URL share a fetch.
///
/// Confined to the session's event loop.
final class IssuerFetches: IssuerFetching {
    private struct Key: Hashable {
        var url: String
        var needs: ConnectionNeeds
        var usesProxies: Bool
    }

    private enum Entry {
        case running(Fetch)
        case known(IssuerAnswer, until: NIODeadline)
    }

    /// How long fetched certificates and failures are remembered.
    private static let lifetime = TimeAmount.hours(1)
    private static let failureLifetime = TimeAmount.minutes(10)
    /// The maximum number of remembered results.
    private static let maximumCount = 64

    private let session: SessionPolicy
    private let proxies: ProxyRules?
    private let network: (any NetworkMonitoring)?
    private let clock: SteppedClock?
    private let executor: LoopExecutor
    private var entries: [Key: Entry] = [:]
    private var lastNumber = 0

    /// Returns nil if the session fetches no certificates: they do not help if only its own roots decide, and through a Unix socket
    /// no other server can be reached.
    init?(
        _ session: SessionPolicy, proxies: ProxyRules?, network: (any NetworkMonitoring)?, clock: SteppedClock?,
        executor: LoopExecutor
    ) {
        guard session.fetchesIssuers, !session.hasOwnTrustRoots, session.connections?.unixSocketPath == nil else { return nil }
        self.session = session
        self.proxies = proxies
        self.network = network
        self.clock = clock
        self.executor = executor
    }

    func forget() {
        entries = entries.filter { if case .running = $0.value { true } else { false } }
    }

    func fetch(
        _ url: String, _ needs: ConnectionNeeds, usesProxies: Bool, within patience: TimeAmount,
        reply: @escaping (IssuerAnswer) -> Void
    ) -> () -> Void {
        let key = Key(url: url, needs: needs, usesProxies: usesProxies)
        if case .known(let answer, let until) = entries[key], until > .now() {
            reply(answer)
            return {}
        }
        guard patience > .zero else {
            reply(.unavailable(Self.lateness))
            return {}
        }
        let running: Fetch
        if case .running(let other) = entries[key] { running = other } else { running = start(key) }
        lastNumber += 1
        let number = lastNumber
        let bound = NIOLoopBound(self, eventLoop: executor.loop)
        let timer = executor.loop.scheduleTask(in: patience) { bound.value.waitedTooLong(number, for: key) }
        running.waiting[number] = { answer in
            timer.cancel()
            reply(answer)
        }
        return { [weak self] in
            timer.cancel()
            self?.leave(number, key)
        }
    }

    private static let lateness = "there was no answer within \(IssuerSearch.patience) s"

    private func start(_ key: Key) -> Fetch {
        let bound = NIOLoopBound(self, eventLoop: executor.loop)
        let engine = SessionEngine(
            policy: policy, stores: stores, security: .off, proxies: key.usesProxies ? proxies : nil, network: network,
            executor: executor)
        let running = Fetch(engine)
        entries[key] = .running(running)
        running.start(key.url, key.needs) { bound.value.ended(key, $0) }
        return running
    }

    private var stores: SessionStores {
        var stores = SessionStores()
        stores.clock = clock
        return stores
    }

    private var policy: SessionPolicy {
        var policy = SessionPolicy()
        policy.fetchesIssuers = false
        policy.requestTimeout = Double(IssuerSearch.patience)
        policy.resourceTimeout = Double(IssuerSearch.patience)
        policy.maximumCollectedBytes = Int64(IssuerAccess.maximumLength)
        policy.omittedHeaders = ["Accept-Encoding"]
        policy.usesCookies = false
        policy.usesStrictTransportSecurity = false
        policy.usesKerberosTickets = false
        policy.connections = session.connections
        policy.connections?.httpVersions = .http1Only
        policy.needs = session.needs
        policy.usesMultipath = session.usesMultipath
        return policy
    }

    private func leave(_ number: Int, _ key: Key) {
        guard case .running(let running) = entries[key], running.waiting.removeValue(forKey: number) != nil,
            running.waiting.isEmpty
        else { return }
        entries[key] = nil
        running.cancel()
    }

    private func waitedTooLong(_ number: Int, for key: Key) {
        guard case .running(let running) = entries[key], let reply = running.waiting.removeValue(forKey: number) else { return }
        if running.waiting.isEmpty {
            running.cancel()
            remember(.unavailable(Self.lateness), key)
        }
        reply(.unavailable(Self.lateness))
    }

    private func ended(_ key: Key, _ answer: IssuerAnswer) {
        guard case .running(let running) = entries[key] else { return }
        remember(answer, key)
        for (_, reply) in running.waiting.sorted(by: { $0.key < $1.key }) { reply(answer) }
    }

    private func remember(_ answer: IssuerAnswer, _ key: Key) {
        var known: [(key: Key, until: NIODeadline)] = []
        for case (let key, .known(_, let until)) in entries { known.append((key, until)) }
        if known.count >= Self.maximumCount, let oldest = known.min(by: { $0.until < $1.until }) { entries[oldest.key] = nil }
        let lifetime = if case .certificates = answer { Self.lifetime } else { Self.failureLifetime }
        entries[key] = .known(answer, until: .now() + lifetime)
    }
}

/// A fetch in progress.
private final class Fetch {
    private let engine: SessionEngine
    private let id = BackgroundLoads.next()
    private var isOver = false
    var waiting: [Int: (IssuerAnswer) -> Void] = [:]

    init(_ engine: SessionEngine) { self.engine = engine }

    /// Starts the fetch; `ended` is called on the loop, in a later turn, unless the fetch is cancelled.
    func start(_ url: String, _ needs: ConnectionNeeds, ended: @escaping @Sendable (IssuerAnswer) -> Void) {
        let bound = NIOLoopBound(self, eventLoop: engine.loop)
        let finish: @Sendable (IssuerAnswer) -> Void = { answer in
            guard !bound.value.isOver else { return }
            bound.value.end()
            ended(answer)
        }
        guard let target = try? RequestTarget(text: url), let location = URL(string: url) else {
            return engine.loop.execute { finish(.unavailable("that is not a URL")) }
        }
        if let kind = AddressKind.named(target.origin.host), needs.reach?.allows(kind) == false {
            return engine.loop.execute { finish(.unavailable("its host is not in the public network")) }
        }
        var request = LoadRequest(url: location)
        request.handlesCookies = false
        request.needs = needs
        let order = TaskOrder(id: id, request: request, delivery: .collect, interests: .redirects)
        if engine.submit(order, client: IssuerClient(finish)) { engine.wake() }
    }

    func cancel() {
        isOver = true
        if engine.command(.cancel, for: id) { engine.wake() }
        engine.invalidate()
    }

    private func end() {
        isOver = true
        engine.invalidate()
    }
}

/// Accepts only the certificates in a response with status 200, and follows no redirect.
private final class IssuerClient: LoadClient {
    private let completion: @Sendable (IssuerAnswer) -> Void

    init(_ completion: @escaping @Sendable (IssuerAnswer) -> Void) { self.completion = completion }

    func tell(_ event: TaskEvent) {
        if case .finished(let outcome) = event { completion(Self.answer(outcome)) }
    }

    func ask(_ question: TaskQuestion, reply: @escaping @Sendable (TaskAnswer) -> Void) {
        if case .redirect = question { reply(.request(nil)) } else { reply(.credential(.performDefaultHandling)) }
    }

    private static func answer(_ outcome: TaskOutcome) -> IssuerAnswer {
        switch outcome.result {
        case .failure(let error) where error.kind == .dataLengthExceedsMaximum:
            return .unavailable("the response is longer than \(IssuerAccess.maximumLength) bytes")
        case .failure(let error): return .unavailable(error.message)
        case .success(let body):
            let status = outcome.response?.head?.status ?? 0
            guard status == 200 else { return .unavailable("its server responded with status \(status)") }
            let data = if case .collected(let data) = body { data } else { Data() }
            let certificates = IssuerAccess.certificates(in: data)
            return certificates.isEmpty ? .unavailable("the response contains no certificate") : .certificates(certificates)
        }
    }
}
