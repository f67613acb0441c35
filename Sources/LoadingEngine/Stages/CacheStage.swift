// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import HTTPTransport
import HTTPWire
import LoadingModel
import LoadingStores
import NIOCore

/// Responds from the session's cache where the rules allow that (RFC 9111, and Apple's cache policies), and revalidates stored
/// responses.
///
/// ``ResponseCaching`` stores responses.
///
/// Downloads do not use the cache, as on Apple's platforms.
final class CacheStage: LoadStage {
    func step(_ hop: Hop, in load: Load) throws(LoadError) -> StageStep {
        hop.cache.found = nil
        hop.cache.own = nil
        let policy = Self.policy(hop, in: load.session)
        guard load.usesCache(hop), let message = hop.preparation.message,
            message.outgoing.head.method == "GET" || message.outgoing.head.method == "HEAD",
            policy != .reloadIgnoringLocal, policy != .reloadIgnoringLocalAndRemote, !Self.namesAnotherHost(hop)
        else {
            defer { hop.cache.mayHaveStored = load.usesCache(hop) }
            return try settle(hop, nil, policy, in: load)
        }
        if load.session.own != nil, let (hit, part) = ResponseTrust.ownHit(message.target, Self.sent(hop, message), in: load) {
            hop.cache.own = part
            return try settle(hop, hit, policy, in: load)
        }
        guard ResponseTrust.mayUseSharedResponses(message.target.origin, in: load.session) else {
            return try settle(hop, nil, policy, in: load)
        }
        if load.wants(.cache) {
            hop.cache.found = .asksApp
            return .needsTask
        }
        guard let cache = load.session.stores.cache,
            cache.mayHaveEntries(now: load.now, touchingDisk: false) || mustReadKey(of: cache, for: message, hop)
        else {
            return try settle(hop, nil, policy, in: load)
        }
        let found = cache.lookUp(
            key: CacheKey.text(of: message.target), sent: Self.sent(hop, message), now: load.now, touchingDisk: false
        )
        switch found {
        case .hit(let hit): return try settle(hop, hit, policy, in: load)
        case .miss: return try settle(hop, nil, policy, in: load)
        case .unavailable:
            // The disk does not respond, but the cache may have a response there.
            defer { hop.cache.mayHaveStored = true }
            return try settle(hop, nil, policy, in: load)
        case .wait(let lookUp):
            hop.cache.found = .pending(lookUp)
            return .needsTask
        }
    }

    /// Whether a response to this request could not be stored because the seal's key has not been read yet.
    private func mustReadKey(of cache: ResponseCache, for message: PreparedMessage, _ hop: Hop) -> Bool {
        guard message.head.headers.contains(.authorization) || hop.authentication.server != nil else { return false }
        return Self.sent(hop, message).hasSecrets && !cache.seal.isReady
    }

    private static func sent(_ hop: Hop, _ message: PreparedMessage) -> SentFields {
        SentFields(message.head.headers, credential: RequestAuthentication.credential(of: hop))
    }

    /// Returns the message's fields in the form in which the cache of the found response compares them.
    ///
    /// The app's own cache receives the fields in clear text.
    private static func sealed(_ hop: Hop, _ message: PreparedMessage, in load: Load) -> HeaderBlock {
        let sent = sent(hop, message)
        guard let cache = hop.cache.own ?? load.session.stores.cache else { return sent.plain }
        return sent.sealed(by: cache.seal) ?? sent.plain
    }

    /// Decides whether to send the request unchanged, to answer it from the cache, or to revalidate or complete a stored response.
    private func settle(
        _ hop: Hop, _ found: ResponseCache.Hit?, _ policy: CacheDecision.Policy, in load: Load
    ) throws(LoadError) -> StageStep {
        hop.cache.found = nil
        hop.cache.mayHaveStored = found != nil
        // Only the message contains the session's own header fields.
        guard let message = hop.preparation.message else { return .proceed }
        if found == nil, policy == .useProtocol, !message.outgoing.head.headers.contains(.cacheControl) { return .proceed }
        let hit = found.flatMap {
            ResponseTrust.admits($0.response, message.target.origin, by: load.session.security, load.session.policy) ? $0 : nil
        }
        var decision = CacheDecision.decide(
            method: message.head.method,
            requestHeaders: hit == nil ? message.head.headers : Self.sealed(hop, message, in: load), policy: policy,
            stored: hit?.response, now: load.now
        )
        // The credential must be sent to the server; a cached response would make the session consider the credential accepted.
        if let hit, RequestAuthentication.isUntried(hop) {
            decision = decision.validated(hit.response, method: message.head.method)
        }
        switch (decision, hit) {
        case (.fail, _) where policy == .returnCacheDontLoad:
            throw LoadError(
                .resourceUnavailable, "the cache has no response, and the cache policy forbids a request", url: hop.request.url
            )
        case (.fail, _):
            return .answered(try StoredAnswer.gatewayTimeout(hop, in: load))
        case (.fetch(let fields), let hit?) where fields.contains(where: { $0.0 == "If-Range" }):
            hop.cache.found = .decided(hit, .fetch(fields))
            return .needsTask
        case (.fetch(let fields), _):
            hop.preparation.add(fields)
            return .proceed
        case (.use, let hit?):
            return .answered(try StoredAnswer.make(hit, wasValidated: false, hop, in: load))
        case (_, let hit?):
            hop.cache.found = .decided(hit, decision)
            return .needsTask
        case (_, nil):
            return .proceed
        }
    }

    func answer(_ hop: Hop, in load: Load, then next: LowerStages) async throws(LoadError) -> Answer {
        switch hop.cache.found {
        case .decided: break
        case .asksApp, .pending, nil:
            let found = try await lookUp(hop, in: load)
            let step = try settle(hop, found ?? nil, Self.policy(hop, in: load.session), in: load)
            // The lookup was abandoned, so its result is unknown: the cache may have a response.
            if found == nil { hop.cache.mayHaveStored = true }
            if case .answered(let answer) = step { return answer }
        }
        guard case .decided(let hit, let decision) = hop.cache.found else { return try await send(hop, in: load, then: next) }
        hop.cache.found = nil
        switch decision {
        case .useAndRevalidate(let fields) where mustWait(hop, load.order.interests):
            return try await revalidate(hit, fields, hop, in: load, then: next)
        case .useAndRevalidate:
            BackgroundRevalidation.start(hop, in: load)
            return try StoredAnswer.make(hit, wasValidated: false, hop, in: load)
        case .revalidate(let fields):
            return try await revalidate(hit, fields, hop, in: load, then: next)
        case .fetch(let fields):
            return try await complete(hit, fields, hop, in: load, then: next)
        case .use, .fail:
            // `settle` has already handled this case.
            return try await send(hop, in: load, then: next)
        }
    }

    /// Whether the task waits for the revalidation instead of starting one in the background.
    ///
    /// The task waits if the app has to answer questions, because the app is no longer asked when the task is over. The task also
    /// waits after a redirect to another origin, because a background load would use the session's credentials there.
    private func mustWait(_ hop: Hop, _ interests: TaskOrder.Interests) -> Bool {
        if hop.followUp.leftOrigin || !interests.isDisjoint(with: [.cache, .cookies]) { return true }
        return interests.contains(.challenges) && hop.preparation.message?.target.origin.isSecure != false
    }

    private func send(_ hop: Hop, in load: Load, then next: LowerStages) async throws(LoadError) -> Answer {
        try await next.answer(hop, in: load)
    }

    // MARK: Lookup

    /// Returns the stored response, if there is one.
    ///
    /// The outer nil means that the result is unknown.
    private func lookUp(_ hop: Hop, in load: Load) async throws(LoadError) -> ResponseCache.Hit?? {
        guard case .pending(let lookUp) = hop.cache.found else {
            let fields = hop.preparation.message.map { Self.sent(hop, $0).plain } ?? hop.request.headers
            var request = hop.request
            request.sentFields = fields
            guard case .cached(let cached?) = try await load.ask(.cachedResponse(request)) else { return nil }
            return StoredAnswer.hit(cached, hop, fields, now: load.now)
        }
        // A request that accepts only stored responses waits for the disk until its own timeout.
        let isPatient = Self.policy(hop, in: load.session) == .returnCacheDontLoad
        return try await Self.found(by: lookUp, in: load.control, timeout: isPatient ? nil : load.requestTimeout)
    }

    /// Returns the stored response from disk, if there is one.
    ///
    /// The outer nil means that the disk took too long for a load with this request timeout.
    static func found(
        by lookUp: DiskLookUp, in control: LoadControl, timeout: Double?
    ) async throws(LoadError) -> ResponseCache.Hit?? {
        let slot = LoopSlot<ResponseCache.Hit?>(control)
        let answer = lookUp { slot.fill($0) }
        defer { answer.cancel() }
        guard let timeout else { return try await slot.wait() }
        return try await slot.waitForDisk(in: control, timeout: timeout, isMakingProgress: { answer.isMakingProgress })
    }

    // MARK: Revalidation

    @inline(never)
    private func revalidate(
        _ hit: ResponseCache.Hit, _ fields: [(String, String)], _ hop: Hop, in load: Load, then next: LowerStages
    ) async throws(LoadError) -> Answer {
        let unconditional = hop.preparation.message
        let requestHeaders = unconditional.map { Self.sealed(hop, $0, in: load) } ?? HeaderBlock()
        let policy = Self.policy(hop, in: load.session)
        hop.preparation.add(fields)
        let answer: Answer
        do {
            answer = try await send(hop, in: load, then: next)
        } catch {
            // If the hop will be retried, the retry takes precedence over a stale response.
            guard load.control.failure == nil, !ResponseTrust.isRefusal(error), !RequestAuthentication.isUntried(hop),
                !willBeRetried(error, hop, load.lastAttempt),
                mayServeStale(hit, status: nil, requestHeaders, policy, now: load.now)
            else { throw error }
            return try StoredAnswer.make(hit, wasValidated: false, hop, in: load)
        }
        guard let head = answer.response.head else { return answer }
        if head.status == 412, !fields.isEmpty {
            // The server misunderstands the cache's condition: a GET is answered with a 304 (RFC 9110, section 13.1.2).
            answer.body.cancel()
            hop.preparation.restore(unconditional)
            return try await send(hop, in: load, then: next)
        }
        guard head.status == 304 else {
            // The server must receive a credential that it has just requested; the credential may also be the cause of the error.
            guard !RequestAuthentication.isUntried(hop),
                mayServeStale(hit, status: head.status, requestHeaders, policy, now: load.now)
            else { return answer }
            answer.body.cancel()
            return try StoredAnswer.make(hit, wasValidated: false, hop, in: load)
        }
        // If the cache added no condition, the app's own condition caused this 304.
        guard !fields.isEmpty else { return answer }
        answer.body.cancel()
        let times = answer.transaction.times(in: load.session)
        guard
            let merged = Revalidation.merged(
                hit.response, with304: head.headers, requestHeaders: requestHeaders, requestTime: times.request,
                responseTime: times.response
            )
        else {
            // The 304 refers to a version other than the stored one.
            try await replace(hit, by: nil, answer, hop, in: load)
            hop.preparation.restore(unconditional)
            return try await send(hop, in: load, then: next)
        }
        try await replace(hit, by: Storability.mayKeep(merged) ? merged : nil, answer, hop, in: load)
        var renewed = hit
        renewed.response = merged
        return try StoredAnswer.make(renewed, wasValidated: true, hop, in: load)
    }

    /// Whether the stored response may be served instead of an error.
    ///
    /// False for ``CacheDecision/Policy/reloadRevalidating``, which requires validation.
    private func mayServeStale(
        _ hit: ResponseCache.Hit, status: Int?, _ requestHeaders: HeaderBlock, _ policy: CacheDecision.Policy, now: Double
    ) -> Bool {
        policy != .reloadRevalidating
            && Revalidation.mayServeStaleOnError(hit.response, requestHeaders: requestHeaders, status: status, now: now)
    }

    /// Whether ``FollowUpStage`` will send the hop again: a reused connection was closed, or a proxy with alternatives failed.
    private func willBeRetried(_ error: LoadError, _ hop: Hop, _ attempt: AttemptTraffic) -> Bool {
        error.isProxyError && hop.proxies.hasAlternatives
            || error.kind == .connectionLost
                && RetryPolicy.mayRetry(
                    method: hop.request.method, connectionWasReused: attempt.connectionWasReused,
                    receivedAnyBytes: attempt.receivedAnyBytes, bodyIsReplayable: true,
                    attempts: hop.followUp.failedAttempts + 1, evidence: attempt.evidence,
                    refusals: hop.followUp.refusals(with: attempt.evidence)
                )
    }

    /// Replaces the head of a stored response, or removes the response.
    ///
    /// Does nothing unless the new response came over a connection that could have produced the stored one.
    private func replace(
        _ hit: ResponseCache.Hit, by response: StoredResponse?, _ answer: Answer, _ hop: Hop, in load: Load
    ) async throws(LoadError) {
        guard let keeper = Self.keeper(of: hop, in: load), let exchange = answer.transaction.exchange,
            keeper.isSame(as: answer.keeper(hop, in: load))
        else { return }
        let outcome = ResponseRenewal(exchange, answer.transaction.sent).outcome(response)
        if let store = keeper.store { return store.apply(outcome, to: hit.response) }
        switch outcome {
        case .update(let response):
            var renewed = hit
            renewed.response = response
            let cached = StoredAnswer.cachedResponse(renewed, hop, answer.transaction.sent?.plain)
            _ = try await load.ask(.storeCached(cached, answer.transaction.sentRequest))
        case .remove: _ = try await load.ask(.storeCached(nil, answer.transaction.sentRequest))
        case .nothing: break
        }
    }

    /// Returns the store that holds the stored response found for a hop.
    static func keeper(of hop: Hop, in load: Load) -> ResponseKeeper? {
        hop.cache.own.map { .store($0) } ?? ResponseTrust.sharedKeeper(in: load)
    }

    // MARK: Completing a partial response

    @inline(never)
    private func complete(
        _ hit: ResponseCache.Hit, _ fields: [(String, String)], _ hop: Hop, in load: Load, then next: LowerStages
    ) async throws(LoadError) -> Answer {
        let whole = hop.preparation.message
        hop.preparation.add(fields)
        let answer = try await send(hop, in: load, then: next)
        guard let head = answer.response.head,
            !PartialContent.isIndependent(status: head.status, headers: head.headers, of: hit.response)
        else { return answer }
        guard head.status == 206, let joined = ResponseCaching.joined(hit, answer, head, hop, in: load) else {
            // The parts belong to different versions, or the response contradicts the stored one, or itself.
            answer.body.cancel()
            if let keeper = Self.keeper(of: hop, in: load), keeper.isSame(as: answer.keeper(hop, in: load)) {
                keeper.store?.remove(key: hit.response.url, only: hit.response)
            }
            hop.preparation.restore(whole)
            return try await send(hop, in: load, then: next)
        }
        return joined
    }

    // MARK: Policy

    static func policy(_ hop: Hop, in session: SessionFacts) -> CacheDecision.Policy {
        policy(hop.request.cachePolicy, session.policy.cachePolicy)
    }

    static func policy(
        _ request: LoadRequest.CachePolicy, _ session: LoadRequest.CachePolicy
    ) -> CacheDecision.Policy {
        if case (.useProtocolCachePolicy, .useProtocolCachePolicy) = (request, session) { return .useProtocol }
        let own = CacheDecision.Policy(rawValue: request.rawValue) ?? .useProtocol
        let common = CacheDecision.Policy(rawValue: session.rawValue) ?? .useProtocol
        return CacheDecision.Policy.stricter(own, common)
    }

    /// Whether the request's own `Host` field names a server other than that of the URL.
    ///
    /// Responses stored for the URL do not come from the server that `Host` names.
    static func namesAnotherHost(_ hop: Hop) -> Bool {
        guard hop.request.hasField(.host) else { return false }
        guard let own = OutgoingHeaders.ownHost(hop.request.headers), let url = hop.request.url,
            let target = try? RequestTarget(url)
        else { return false }
        return own.lowercased() != target.hostHeader.lowercased()
    }
}

extension Answer {
    /// Returns the store for the response.
    ///
    /// Nil if the response did not come from the network, or must not be stored.
    func keeper(_ hop: Hop, in load: Load) -> ResponseKeeper? {
        transaction.exchange.flatMap { ResponseTrust.keeper(of: $0, hop, in: load) }
    }
}
