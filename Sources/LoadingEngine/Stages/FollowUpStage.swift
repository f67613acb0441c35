// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import HTTPTransport
import HTTPWire
import LoadingModel
import NIOCore

/// Handles what follows from responses and failures: redirects, challenges, and retries.
///
/// Redirects create another hop; challenges and retries repeat the hop.
final class FollowUpStage {
    let pool: ConnectionPool

    init(pool: ConnectionPool) { self.pool = pool }

    /// Gets the responses to the hop, and to the hops that follow from it, from the stages below; returns the last response.
    ///
    /// If the first hop produced a result before its load had a task, that result is processed first.
    func answer(_ hop: Hop, in load: Load, then next: LowerStages) async throws(LoadError) -> Answer {
        var hop = hop
        while true {
            let answer: Answer
            do throws(LoadError) {
                switch hop.takeOutcome() {
                case .answer(let known): answer = known
                case .failure(let error): throw error
                case nil: answer = try await next.answer(hop, in: load)
                }
            } catch {
                if let following = try await load.kind?.follow(error, hop, pool, in: load) {
                    hop = following
                } else {
                    try await retryOrThrow(error, hop, in: load)
                }
                continue
            }
            // From the first retry by the app's rules, the two kinds of retries must not multiply.
            if load.followUp.retryCount == 0 { hop.followUp.forgetFailures() }
            guard mayFollowUp(answer, hop, in: load) else { return answer }
            if let following = try await nextHop(answer, hop, in: load) {
                hop = following
                continue
            }
            if let pause = AppRetries.pause(after: answer, hop, in: load),
                try await renewBody(of: hop, after: answer, in: load)
            {
                await answer.discard(in: load.control)
                try await load.pause(pause)
                continue
            }
            guard let kind = load.kind else { return answer }
            switch try await kind.follow(answer, hop, pool, in: load) {
            case .answer(let answer): return answer
            case .hop(let following): hop = following
            }
        }
    }

    // MARK: Failures

    /// Prepares the hop for another attempt, or rethrows the error if no other attempt is allowed.
    private func retryOrThrow(_ error: LoadError, _ hop: Hop, in load: Load) async throws(LoadError) {
        let isOver = load.control.failure != nil
        if error.isProxyError, !isOver, let proxies = load.proxies, ProxyChoice.switchToNextWay(hop, after: error, proxies) {
            return
        }
        if error.asksToRenegotiate, !isOver, try await Renegotiation.prepare(hop, in: load) { return }
        if error.kind == .clientCertificateRejected, let origin = hop.request.url.flatMap({ Origin($0) }) {
            // The app may have chosen the wrong certificate: the next handshake asks the app again.
            let server = ServerName(host: origin.host, port: origin.port)
            load.session.credentials.forgetIdentity(for: server, judge: load.order.connectionHolder)
        }
        let evidence = load.lastAttempt.evidence
        let refusals = hop.followUp.refusals(with: evidence)
        guard error.kind == .connectionLost, load.control.failure == nil,
            RetryPolicy.mayRetry(
                method: hop.request.method, connectionWasReused: load.lastAttempt.connectionWasReused,
                receivedAnyBytes: load.lastAttempt.receivedAnyBytes,
                bodyIsReplayable: hop.request.body.isReplayable || evidence.isUnprocessed,
                attempts: hop.followUp.failedAttempts + 1, evidence: evidence, refusals: refusals
            )
        else {
            if let pause = AppRetries.pause(after: error, hop, in: load), try await renewBody(of: hop, in: load) {
                hop.followUp.note(evidence, error)
                return try await load.pause(pause)
            }
            var error = error
            // The app provided no new stream for the retry: report why the first attempt failed.
            if error.kind == .requestBodyStreamExhausted, let first = hop.followUp.firstFailure as? LoadError { error = first }
            if error.url == nil { error.url = hop.request.url }
            throw error
        }
        hop.followUp.note(evidence, error)
        if case .notProcessed = evidence { return try await load.pause(refusals.pause(jitter: .random(in: 0...1))) }
        if case .requires(let versions) = evidence {
            if let origin = hop.request.url.flatMap({ Origin($0) }) { load.session.narrow(origin, to: versions) }
            return
        }
        hop.abandonConnections(of: pool)
    }

    /// Gets a new stream for a retry by the app's rules, if the body is a stream that has been read.
    ///
    /// Returns false if the app provides none: the load then ends with what would have been retried.
    private func renewBody(of hop: Hop, after answer: Answer? = nil, in load: Load) async throws(LoadError) -> Bool {
        guard hop.isRepeated, !hop.request.body.isReplayable else { return true }
        do throws(LoadError) {
            hop.nextStream = try await UploadBody.newStream(from: 0, in: load)
        } catch {
            answer?.body.cancel()
            throw error
        }
        return hop.nextStream != nil
    }

    // MARK: Responses

    /// Whether the response may have effects on the stores or another hop; if not, it is delivered as it is.
    @inline(never)
    func mayFollowUp(_ answer: Answer, _ hop: Hop, in load: Load) -> Bool {
        load.wants(.cookies) || load.wants(.cache) || hop.authentication.isUsed || mayNeedFollowUp(answer)
            || load.kind?.mayFollowUp(answer) == true || load.session.policy.retries != nil
    }

    /// Applies the effects of a response on the stores.
    ///
    /// Returns the next hop, or nil if the response is the load's result.
    @inline(never)
    private func nextHop(_ answer: Answer, _ hop: Hop, in load: Load) async throws(LoadError) -> Hop? {
        do throws(LoadError) {
            if hop.network.wasSent, hop.authentication.isUsed {
                try await RequestAuthentication.settle(answer, hop, pool, in: load)
            }
            // An app that keeps its own cookies or cache is notified before the next hop uses them.
            if let fields = ResponseSideEffects.cookiesForApp(hop, acceptance: load.session.policy.cookieAcceptance) {
                _ = try await load.ask(.storeCookies(fields, hop.request))
            }
            if load.wants(.cache), makesOutdated(answer, hop), let exchange = answer.transaction.exchange,
                ResponseTrust.mayChangeSharedStores(exchange, hop, in: load)
            {
                _ = try await load.ask(.storeCached(nil, answer.transaction.sentRequest))
            }
            return mayNeedFollowUp(answer) ? try await followUp(answer, hop, in: load) : nil
        } catch {
            // This stage is responsible for the body until it returns the answer.
            answer.body.cancel()
            throw error
        }
    }

    /// Whether the response makes stored responses outdated.
    @inline(never)
    private func makesOutdated(_ answer: Answer, _ hop: Hop) -> Bool {
        guard let head = answer.response.head, let url = hop.request.url else { return false }
        return !Revalidation.invalidated(method: hop.request.method, url: url, status: head.status, headers: head.headers).isEmpty
    }

    private func mayNeedFollowUp(_ answer: Answer) -> Bool {
        guard let status = answer.response.head?.status else { return answer.body is CustomBody }
        return 300...399 ~= status || status == 401 || status == 407 || status == 417 || status == 421
            || answer.body is CustomBody
    }

    /// Returns the next hop, or nil if the response is the load's result.
    ///
    /// Not inlined, because few loads need it.
    @inline(never)
    private func followUp(_ answer: Answer, _ hop: Hop, in load: Load) async throws(LoadError) -> Hop? {
        if let request = (answer.body as? CustomBody)?.redirect {
            guard load.followUp.redirected.count < RedirectPolicy.limit else {
                throw LoadError(.tooManyRedirects, "more than \(RedirectPolicy.limit) redirects", url: request.url)
            }
            defer { answer.body.cancel() }
            return try await follow(request, from: answer, hop, in: load)
        }
        guard let head = answer.response.head, let url = hop.request.url else { return nil }
        let following: Hop?
        switch head.status {
        case 300...399:
            following = try await redirect(head, answer, hop, url, in: load)
        case 401, 407:
            following = try await RequestAuthentication.answerChallenge(head, answer, hop, url, in: load) ? hop : nil
        case 417 where hop.network.askedToContinue && hop.request.body.isReplayable:
            hop.followUp.withoutExpectation = true
            following = hop
        case 421 where wasMisdirected(answer, hop, in: load):
            following = hop
        default:
            following = nil
        }
        if following != nil { await answer.discard(in: load.control) }
        return following
    }

    /// Whether the request used a connection that was made for another host, or one over HTTP/3, which an alternative service may
    /// have; the next attempt will use another connection.
    private func wasMisdirected(_ answer: Answer, _ hop: Hop, in load: Load) -> Bool {
        guard let origin = hop.request.url.flatMap({ Origin($0) }), origin.isSecure else { return false }
        if pool.separate(Route(isSecure: true, host: origin.host, port: origin.port)) { return true }
        let access = load.session.http3
        guard let exchange = answer.transaction.exchange, exchange.version == .http3, !access.isDemanded,
            !hop.followUp.leftAlternative
        else { return false }
        hop.followUp.leftAlternative = true
        access.directory.misdirected(origin)
        pool.retire(exchange.facts)
        return true
    }

    @inline(never)
    private func redirect(
        _ head: ResponseHead, _ answer: Answer, _ hop: Hop, _ url: URL, in load: Load
    ) async throws(LoadError) -> Hop? {
        let decision = RedirectPolicy.decide(
            status: head.status, location: head.headers.octetTexts(of: "Location").first, method: hop.request.method, url: url,
            redirectsSoFar: load.followUp.redirected.count
        )
        switch decision {
        case .deliver:
            return nil
        case .fail(let reason):
            load.take(answer.response)
            // Otherwise, a stored redirect loop would persist as long as its redirects are fresh.
            if reason == .tooMany { ResponseCaching.forget(url, answer, hop, in: load) }
            throw LoadError(Self.kind(of: reason), Self.message(for: reason, head), url: url)
        case .follow(let proposal):
            if hop.leavesRequest, load.kind?.mayRedirect(hop, to: proposal) != true { return nil }
            var request = hop.request
            // If the main document is redirected, the site of the request changes.
            if request.mainDocumentURL == url { request.mainDocumentURL = proposal.url }
            request.url = load.kind?.redirectedURL(proposal.url) ?? proposal.url
            request.method = proposal.method
            request.headers = RedirectPolicy.strippedHeaders(
                request.headers, proposal: proposal, mayHaveProxy: load.proxies != nil)
            if !proposal.keepsBody { request.body = .none }
            return try await follow(request, from: answer, hop, in: load)
        }
    }

    /// Asks the app about the redirect, and creates the next hop from its answer.
    private func follow(
        _ proposed: LoadRequest, from answer: Answer, _ hop: Hop, in load: Load
    ) async throws(LoadError) -> Hop? {
        var request = proposed
        if load.wants(.redirects), !hop.leavesRequest {
            load.take(answer.response)
            guard case .request(let chosen) = try await load.ask(.redirect(response: answer.response, proposed: proposed)),
                let chosen
            else { return nil }
            request = chosen
        }
        load.take(nil)
        let next = Hop(number: hop.number + 1, request: request)
        if hop.leavesRequest {
            next.errand = hop.errand?.redirected
        } else {
            // If the hop sends a part of the body, the next one sends the same part.
            if request.method == hop.request.method { next.errand = hop.errand }
            load.followUp.redirected.append(answer.transaction)
            load.tell(.requestChanged(request))
        }
        next.authentication = hop.authentication.afterRedirect
        if request.hasField(.proxyAuthorization),
            request.headers.all("Proxy-Authorization") != hop.request.headers.all("Proxy-Authorization")
        {
            next.authentication.useNewProxyField()
        }
        next.followUp = FollowUpState(
            leftOrigin: hop.followUp.leftOrigin || request.url.flatMap { Origin($0) } != hop.request.url.flatMap { Origin($0) })
        return next
    }

    private static func message(for reason: RedirectPolicy.Reason, _ head: ResponseHead) -> String {
        let location = PrintableURL.text(head.headers.first("Location") ?? "")
        return switch reason {
        case .tooMany: "more than \(RedirectPolicy.limit) redirects"
        case .unsupportedScheme: "the server redirects to \(location), whose scheme is not allowed in a redirect"
        case .malformedLocation: "the server redirects to \(location), which is not a URL"
        }
    }

    private static func kind(of reason: RedirectPolicy.Reason) -> LoadError.Kind {
        switch reason {
        case .tooMany: .tooManyRedirects
        case .unsupportedScheme: .unsupportedURL
        case .malformedLocation: .redirectToNonExistentLocation
        }
    }
}

extension RequestBody {
    /// Whether the body can be sent again without asking the app.
    ///
    /// False for a stream, because only the app can provide a new one.
    var isReplayable: Bool {
        switch self {
        case .none, .data, .file: true
        case .stream, .streamOnDemand: false
        }
    }
}
