//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import FoundationEssentials
import HTTPRules
import HTTPTransport
import HTTPWire
import LoadingModel
import LoadingStores
import NIOCore

/// Answers from the session's cache where the rules allow it (RFC 9111, and Apple's cache policies), and asks whether what is stored is
/// still good.
///
/// Storing is ``ResponseCaching``'s.
///
/// Downloads have nothing to do with the cache, as on Apple's platforms.
final class CacheStage: LoadStage {
    struct HopPart {
        /// What the cache has for this hop, and what is to be made of it.
        fileprivate(set) var found: CachedAnswer?
        /// Whether the cache may have something for this hop, which an answer that is not stored makes outdated.
        fileprivate(set) var mayHaveMore = false
        /// The session's own responses, where what was found is among them.
        fileprivate var own: ResponseCache?
    }

    func step(_ hop: Hop, in load: Load) throws(LoadError) -> StageStep {
        hop.cache.found = nil
        hop.cache.own = nil
        let policy = Self.policy(hop, in: load.session)
        guard load.usesCache(hop), let message = hop.preparation.message,
            message.outgoing.head.method == "GET" || message.outgoing.head.method == "HEAD",
            policy != .reloadIgnoringLocal, policy != .reloadIgnoringLocalAndRemote, !Self.namesAnotherHost(hop)
        else {
            defer { hop.cache.mayHaveMore = load.usesCache(hop) }
            return try settle(hop, nil, policy, in: load)
        }
        if load.session.own != nil, let (hit, part) = ResponseTrust.ownHit(message.target, Self.sent(hop, message), in: load) {
            hop.cache.own = part
            return try settle(hop, hit, policy, in: load)
        }
        guard ResponseTrust.mayTakeEveryones(message.target.origin, in: load.session) else {
            return try settle(hop, nil, policy, in: load)
        }
        if load.wants(.cache) {
            hop.cache.found = .asksApp
            return .needsTask
        }
        guard let cache = load.session.stores.cache,
            cache.mayHaveAny(now: load.now, touchingDisk: false) || mustReadKey(of: cache, for: message, hop)
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
            // There may be one all the same.
            defer { hop.cache.mayHaveMore = true }
            return try settle(hop, nil, policy, in: load)
        case .wait(let lookUp):
            hop.cache.found = .pending(lookUp)
            return .needsTask
        }
    }

    /// Whether what comes could not be stored, since the key of the seal was not read yet.
    private func mustReadKey(of cache: ResponseCache, for message: PreparedMessage, _ hop: Hop) -> Bool {
        guard message.head.headers.contains(.authorization) || hop.authentication.server != nil else { return false }
        return Self.sent(hop, message).hasSecrets && !cache.seal.isReady
    }

    private static func sent(_ hop: Hop, _ message: PreparedMessage) -> SentFields {
        SentFields(message.head.headers, credential: RequestAuthentication.credential(of: hop))
    }

    /// The message's fields as the cache compares them in which something was found for the hop: the app's own in clear.
    private static func sealed(_ hop: Hop, _ message: PreparedMessage, in load: Load) -> HeaderBlock {
        let sent = sent(hop, message)
        guard let cache = hop.cache.own ?? load.session.stores.cache else { return sent.plain }
        return sent.sealed(by: cache.seal) ?? sent.plain
    }

    /// Decides: the request goes on as any other, is answered, or there is something to be asked about what is stored.
    private func settle(
        _ hop: Hop, _ found: ResponseCache.Hit?, _ policy: CacheDecision.Policy, in load: Load
    ) throws(LoadError) -> StageStep {
        hop.cache.found = nil
        hop.cache.mayHaveMore = found != nil
        // The session's own fields are in the message only.
        guard let message = hop.preparation.message else { return .goOn }
        if found == nil, policy == .useProtocol, !message.outgoing.head.headers.contains(.cacheControl) { return .goOn }
        let hit = found.flatMap {
            ResponseTrust.admits($0.response, message.target.origin, by: load.session.security, load.session.policy) ? $0 : nil
        }
        var decision = CacheDecision.decide(
            method: message.head.method,
            requestHeaders: hit == nil ? message.head.headers : Self.sealed(hop, message, in: load), policy: policy,
            stored: hit?.response, now: load.now
        )
        // The server has to see the credential, or the session would take it for accepted.
        if let hit, RequestAuthentication.isUntried(hop) {
            decision = decision.validated(hit.response, method: message.head.method)
        }
        switch (decision, hit) {
        case (.fail, _) where policy == .returnCacheDontLoad:
            throw LoadError(
                .resourceUnavailable, "the cache has no answer, and the request is not to be sent", url: hop.request.url
            )
        case (.fail, _):
            return .answered(try StoredAnswer.gatewayTimeout(hop, in: load))
        case (.fetch(let fields), let hit?) where fields.contains(where: { $0.0 == "If-Range" }):
            hop.cache.found = .decided(hit, .fetch(fields))
            return .needsTask
        case (.fetch(let fields), _):
            hop.preparation.add(fields)
            return .goOn
        case (.use, let hit?):
            return .answered(try StoredAnswer.make(hit, wasValidated: false, hop, in: load))
        case (_, let hit?):
            hop.cache.found = .decided(hit, decision)
            return .needsTask
        case (_, nil):
            return .goOn
        }
    }

    func answer(_ hop: Hop, in load: Load, then next: LowerStages) async throws(LoadError) -> Answer {
        switch hop.cache.found {
        case .decided: break
        case .asksApp, .pending, nil:
            let found = try await lookUp(hop, in: load)
            let step = try settle(hop, found ?? nil, Self.policy(hop, in: load.session), in: load)
            // A look-up that was given up says nothing.
            if found == nil { hop.cache.mayHaveMore = true }
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
            // Settled already.
            return try await send(hop, in: load, then: next)
        }
    }

    /// Whether the task waits while the server is asked: because the app has to answer, which nobody does once the task is over, or
    /// because a redirect led here, where a load that began here would take the session's credentials.
    private func mustWait(_ hop: Hop, _ interests: TaskOrder.Interests) -> Bool {
        if hop.followUp.leftOrigin || !interests.isDisjoint(with: [.cache, .cookies]) { return true }
        return interests.contains(.challenges) && hop.preparation.message?.target.origin.isSecure != false
    }

    private func send(_ hop: Hop, in load: Load, then next: LowerStages) async throws(LoadError) -> Answer {
        try await next.answer(hop, in: load)
    }

    // MARK: Looking up

    /// What is stored, if anything; nil where that is not known.
    private func lookUp(_ hop: Hop, in load: Load) async throws(LoadError) -> ResponseCache.Hit?? {
        guard case .pending(let lookUp) = hop.cache.found else {
            let fields = hop.preparation.message.map { Self.sent(hop, $0).plain } ?? hop.request.headers
            var request = hop.request
            request.sentFields = fields
            guard case .cached(let cached?) = try await load.ask(.cachedResponse(request)) else { return nil }
            return StoredAnswer.hit(cached, hop, fields, now: load.now)
        }
        // Who wants nothing but what is stored waits for as long as any load does.
        let isPatient = Self.policy(hop, in: load.session) == .returnCacheDontLoad
        return try await Self.found(by: lookUp, in: load.control, timeout: isPatient ? nil : load.requestTimeout)
    }

    /// What the disk has, if anything; nil where it takes too long for a load with that request timeout.
    static func found(
        by lookUp: DiskLookUp, in control: LoadControl, timeout: Double?
    ) async throws(LoadError) -> ResponseCache.Hit?? {
        let slot = LoopSlot<ResponseCache.Hit?>(control)
        let answer = lookUp { slot.fill($0) }
        defer { answer.cancel() }
        guard let timeout else { return try await slot.wait() }
        return try await slot.waitForDisk(in: control, timeout: timeout, isMoving: { answer.isMoving })
    }

    // MARK: Asking whether it is still good

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
            // A stale connection is tried again first.
            guard load.control.failure == nil, !ResponseTrust.isRefusal(error), !RequestAuthentication.isUntried(hop),
                !isTriedAgain(error, hop, load.lastAttempt),
                mayStandIn(hit, status: nil, requestHeaders, policy, now: load.now)
            else { throw error }
            return try StoredAnswer.make(hit, wasValidated: false, hop, in: load)
        }
        guard let head = answer.response.head else { return answer }
        guard head.status == 304 else {
            // The server has to see a credential that it has just asked for, and may be the one that fails.
            guard !RequestAuthentication.isUntried(hop),
                mayStandIn(hit, status: head.status, requestHeaders, policy, now: load.now)
            else { return answer }
            answer.body.cancel()
            return try StoredAnswer.make(hit, wasValidated: false, hop, in: load)
        }
        // Nobody asked for a 304.
        guard !fields.isEmpty else { return answer }
        answer.body.cancel()
        let times = answer.transaction.times
        guard
            let merged = Revalidation.merged(
                hit.response, with304: head.headers, requestHeaders: requestHeaders, requestTime: times.request,
                responseTime: times.response
            )
        else {
            // It speaks of another version than the one that is stored.
            try await replace(hit, by: nil, answer, hop, in: load)
            hop.preparation.restore(unconditional)
            return try await send(hop, in: load, then: next)
        }
        try await replace(hit, by: Storability.mayKeep(merged) ? merged : nil, answer, hop, in: load)
        var renewed = hit
        renewed.response = merged
        return try StoredAnswer.make(renewed, wasValidated: true, hop, in: load)
    }

    /// Whether what is stored hides an error.
    ///
    /// Who wants it validated (``CacheDecision/Policy/reloadRevalidating``) wants to know.
    private func mayStandIn(
        _ hit: ResponseCache.Hit, status: Int?, _ requestHeaders: HeaderBlock, _ policy: CacheDecision.Policy, now: Double
    ) -> Bool {
        policy != .reloadRevalidating
            && Revalidation.mayServeStaleOnError(hit.response, requestHeaders: requestHeaders, status: status, now: now)
    }

    /// Whether a failure says no more than that a kept connection had gone, or a proxy that there are others for, so that the hop is sent
    /// again (``FollowUpStage``).
    private func isTriedAgain(_ error: LoadError, _ hop: Hop, _ attempt: NetworkStage.LoadPart) -> Bool {
        error.isOfProxy && hop.proxies.hasAlternatives
            || error.kind == .connectionLost
                && RetryPolicy.mayRetry(
                    method: hop.request.method, connectionWasReused: attempt.connectionWasReused,
                    receivedAnyBytes: attempt.receivedAnyBytes, bodyIsReplayable: true,
                    attempts: hop.followUp.failedAttempts + 1, evidence: attempt.evidence,
                    refusals: hop.followUp.refusals(with: attempt.evidence)
                )
    }

    /// Gives what is stored a new head, or removes it.
    ///
    /// Only where the answer came over a connection that what is stored could have come over as well.
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

    /// Where the response is kept that was found for a hop.
    static func keeper(of hop: Hop, in load: Load) -> ResponseKeeper? {
        hop.cache.own.map { .store($0) } ?? ResponseTrust.everyonesKeeper(in: load)
    }

    // MARK: Completing what is stored in part

    @inline(never)
    private func complete(
        _ hit: ResponseCache.Hit, _ fields: [(String, String)], _ hop: Hop, in load: Load, then next: LowerStages
    ) async throws(LoadError) -> Answer {
        let whole = hop.preparation.message
        hop.preparation.add(fields)
        let answer = try await send(hop, in: load, then: next)
        guard let head = answer.response.head, head.status == 206 || head.status == 416 else { return answer }
        guard head.status == 206, let joined = ResponseCaching.joined(hit, answer, head, hop, in: load) else {
            // The parts are of different versions, or it is none of ours.
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

    /// Whether a `Host` of the request's own names another server than its URL does: what is stored of the URL is not of that server.
    static func namesAnotherHost(_ hop: Hop) -> Bool {
        guard hop.request.hasField(.host) else { return false }
        guard let own = OutgoingHeaders.ownHost(hop.request.headers), let url = hop.request.url,
            let target = try? RequestTarget(url)
        else { return false }
        return own.lowercased() != target.hostHeader.lowercased()
    }
}

extension Answer {
    /// Where it may be kept; nil where it did not come from the network, or nowhere.
    func keeper(_ hop: Hop, in load: Load) -> ResponseKeeper? {
        transaction.exchange.flatMap { ResponseTrust.keeper(of: $0, hop, in: load) }
    }
}

/// What the cache has for a hop.
indirect enum CachedAnswer {
    /// The app keeps its own cache, and is to be asked.
    case asksApp
    /// The disk is to be waited for.
    case pending(DiskLookUp)
    case decided(ResponseCache.Hit, CacheDecision)
}
