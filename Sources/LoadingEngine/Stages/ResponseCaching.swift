// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import HTTPTransport
import HTTPWire
import LoadingModel
import LoadingStores
import NIOCore

/// Stores responses from the network where the rules allow that (RFC 9111, section 3), and removes stored responses that a newer
/// response invalidates (section 4.4).
enum ResponseCaching {
    /// Returns a body that is stored while it is delivered; nil if nothing is stored.
    static func keep(
        _ body: any ResponseBody, _ response: LoadResponse, _ head: ResponseHead, _ hop: Hop, _ transaction: Transaction,
        in load: Load
    ) -> (any ResponseBody)? {
        guard load.session.stores.cache != nil || load.wants(.cache), let exchange = transaction.exchange,
            !CacheStage.namesAnotherHost(hop)
        else {
            return nil
        }
        let mayStore =
            load.usesCache(hop) && hop.request.method == "GET" && !AppRetries.wants(head.status, load)
            && Storability.mayStore(
                requestMethod: "GET", requestHeaders: directives(hop, in: load.session), status: head.status,
                headers: head.headers)
        // Most responses need no work: they cannot be stored, and no stored response is outdated. A response to a request to switch
        // protocols says nothing about the stored response.
        if !mayStore, head.status != 304, hop.request.method == "GET",
            load.asksToSwitch(hop) || !mayReplace(hop, in: load.session)
        {
            return nil
        }
        guard hop.request.method == "GET" || hop.request.method == "HEAD" else {
            invalidate(by: head, of: exchange, hop, in: load)
            return nil
        }
        guard let keeper = ResponseTrust.keeper(of: exchange, hop, in: load) else { return nil }
        let answered = Answered(
            head: head, hop: hop, exchange: exchange, transaction: transaction, keeper: keeper, session: load.session)
        if hop.request.method == "HEAD" {
            update(by: answered)
            return nil
        }
        // A task keeps its identity across redirects, so the app's cache could not distinguish a redirect from the response that
        // it leads to. As in Apple's system, the app's cache is offered only responses with statuses from 200 to 299.
        guard mayStore, (200...299).contains(head.status) || keeper.store != nil else {
            if head.status != 304 {
                forget(answered, in: load.session)
            } else if load.usesCache(hop) {
                renew(by: answered, in: load.session)
            }
            return nil
        }
        return store(body, response, answered, in: load)
    }

    /// A response from the network, its request, and the store that may keep the response.
    private struct Answered {
        let head: ResponseHead
        let hop: Hop
        let exchange: Exchange
        let transaction: Transaction
        let keeper: ResponseKeeper
        let session: SessionFacts

        var instant: NIODeadline { exchange.control.lastProgress }

        /// The request's fields as they were sent; nil if the response must not be stored.
        var sentFields: HeaderBlock? { keeper.fields(of: transaction.sent) }

        var times: (request: Double, response: Double) { transaction.times(in: session) }
    }

    /// Returns the request's fields, with the session's `Cache-Control` if the request has none of its own.
    private static func directives(_ hop: Hop, in session: SessionFacts) -> HeaderBlock {
        var headers = hop.request.headers
        if let value = session.cacheControl, !headers.contains(.cacheControl) {
            headers.append("Cache-Control", value)
        }
        return headers
    }

    // MARK: Storing

    @inline(never)
    private static func store(
        _ body: any ResponseBody, _ response: LoadResponse, _ answered: Answered, in load: Load
    ) -> (any ResponseBody)? {
        guard let url = answered.hop.request.url, let sentFields = answered.sentFields else {
            forget(answered, in: load.session)
            return nil
        }
        let head = answered.head
        let times = answered.times
        let stored = StoredResponse(
            url: CacheKey.text(of: url), requestHeaders: sentFields, status: head.status, reason: head.reason,
            headers: head.headers, requestTime: times.request, responseTime: times.response,
            security: ResponseTrust.security(of: answered.exchange.facts)
        )
        guard Storability.isWorthKeeping(stored) else {
            forget(answered, in: load.session)
            return nil
        }
        if stored.storedRange != nil, let joined = join(body, stored, sentFields, response, answered, in: load) { return joined }
        return CachingBody(
            body, stored, response, expectedLength: response.expectedLength, answered.hop, answered.keeper, in: load)
    }

    /// Removes a stored response that is outdated, because the origin sent a newer response that is not stored.
    private static func forget(_ answered: Answered, in session: SessionFacts) {
        let hop = answered.hop
        guard mayReplace(hop, in: session), !hop.request.hasField(.range), let url = hop.request.url,
            let cache = answered.keeper.store
        else { return }
        switch answered.head.status {
        case 200...299, 404, 410: cache.remove(key: CacheKey.text(of: url))
        case 300...399:
            // A redirect makes only a stored redirect outdated. A stored success may become valid again after a temporary
            // redirect.
            withStored(answered) { stored, cache in
                if !stored.isSuccess { cache.remove(key: stored.url, only: stored) }
            }
        default: break
        }
    }

    /// Removes a stored redirect that is part of a loop, if the response may change the store.
    static func forget(_ url: URL, _ answer: Answer, _ hop: Hop, in load: Load) {
        let keeper = answer.transaction.exchange == nil ? CacheStage.keeper(of: hop, in: load) : answer.keeper(hop, in: load)
        keeper?.store?.remove(key: CacheKey.text(of: url))
    }

    /// Whether the cache may hold a response that the hop's response replaces.
    static func mayReplace(_ hop: Hop, in session: SessionFacts) -> Bool {
        if hop.cache.mayHaveStored { return true }
        // A reload did not look for a stored response, so there may be one.
        return switch CacheStage.policy(hop, in: session) {
        case .reloadIgnoringLocal, .reloadIgnoringLocalAndRemote: true
        case .useProtocol, .returnCacheElseLoad, .returnCacheDontLoad, .reloadRevalidating: false
        }
    }

    // MARK: Parts

    /// Stores a partial response, combined with an earlier part if there is one.
    private static func join(
        _ body: any ResponseBody, _ part: StoredResponse, _ sentFields: HeaderBlock, _ response: LoadResponse,
        _ answered: Answered,
        in load: Load
    ) -> (any ResponseBody)? {
        guard let cache = answered.keeper.store else { return nil }
        let (hop, keeper) = (answered.hop, answered.keeper)
        func join(with hit: ResponseCache.Hit) -> (any ResponseBody)? {
            guard hit.response.security == part.security, let (combined, joint) = joint(hit, part, response) else {
                // A stored complete response is not replaced by a part.
                return hit.response.isComplete && hit.response.isSuccess ? body : nil
            }
            return CachingBody(body, combined, response, expectedLength: joint.length, joint: joint, hop, keeper, in: load)
        }
        let found = cache.lookUp(key: part.url, requestHeaders: sentFields, now: load.now, touchingDisk: false)
        switch found {
        case .hit(let hit): return join(with: hit)
        case .miss, .unavailable: return nil
        case .wait(let lookUp):
            return JoinedBody(body, lookUp, in: load.control, timeout: load.requestTimeout) { hit in
                hit.flatMap { join(with: $0) }
                    ?? CachingBody(body, part, response, expectedLength: response.expectedLength, hop, keeper, in: load)
            }
        }
    }

    /// Combines a stored part with the received rest; nil if they do not fit.
    ///
    /// The result is stored only if the same loads accept the connections of both parts.
    static func joined(
        _ hit: ResponseCache.Hit, _ answer: Answer, _ head: ResponseHead, _ hop: Hop, in load: Load
    ) -> Answer? {
        let times = answer.transaction.times(in: load.session)
        let keeper = answer.keeper(hop, in: load)
        let sentFields = keeper?.fields(of: answer.transaction.sent)
        let part = StoredResponse(
            url: hit.response.url, requestHeaders: sentFields ?? HeaderBlock(), status: head.status, reason: head.reason,
            headers: head.headers, requestTime: times.request, responseTime: times.response,
            security: answer.transaction.exchange.flatMap { ResponseTrust.security(of: $0.facts) }
        )
        guard let (whole, joint) = joint(hit, part, answer.response), whole.isComplete else { return nil }
        var combined = whole
        combined.security = part.security
        let response = LoadResponse(
            url: answer.response.url,
            kind: .http(ResponseHead(status: combined.status, reason: combined.reason, headers: combined.headers)),
            expectedLength: joint.length
        )
        let content = CompletedBody(answer.body, joint) { keeper?.store?.remove(key: hit.response.url, only: hit.response) }
        guard let keeper, sentFields != nil, Storability.mayKeep(combined), hit.response.security == part.security,
            keeper.isSame(as: CacheStage.keeper(of: hop, in: load))
        else { return Answer(response: response, body: content, transaction: answer.transaction) }
        let body = CachingBody(content, combined, response, expectedLength: joint.length, hop, keeper, in: load)
        return Answer(response: response, body: body, transaction: answer.transaction)
    }

    private static func joint(
        _ hit: ResponseCache.Hit, _ part: StoredResponse, _ response: LoadResponse
    ) -> (StoredResponse, PartJoint)? {
        guard case .bytes(let data) = hit.body, let range = part.storedRange else { return nil }
        var part = part
        part.bodyLength = Int64(range.count)
        guard response.expectedLength == part.bodyLength || response.expectedLength < 0,
            let combination = PartialContent.combined(hit.response, part), let joint = PartJoint(combination, data)
        else { return nil }
        return (combination.response, joint)
    }

    // MARK: Other methods

    @inline(never)
    private static func update(by answered: Answered) {
        let head = answered.head
        let (requestTime, responseTime) = answered.times
        let credential = answered.sentFields?.first(.authorization)
        let renewal = ResponseRenewal(answered.exchange, answered.transaction.sent)
        withStored(answered) { stored, cache in
            let outcome = Revalidation.updatedByHead(
                stored, status: head.status, headers: head.headers, credential: credential, requestTime: requestTime,
                responseTime: responseTime
            )
            switch outcome {
            case .update(let response): cache.apply(renewal.outcome(response), to: stored)
            case .invalidate: cache.apply(.remove, to: stored)
            case .nothing: break
            }
        }
    }

    /// Updates a stored response after a 304 to the app's own conditional request.
    ///
    /// Section 4.3.4: "when a cache receives a 304 (Not Modified) response, it needs to identify stored responses that are suitable
    /// for updating".
    @inline(never)
    private static func renew(by answered: Answered, in session: SessionFacts) {
        let hop = answered.hop
        // Responses to the cache's own conditional requests are handled by ``CacheStage``.
        let isOwn = ["If-None-Match", "If-Modified-Since"].contains { name in
            hop.request.headers.contains(name) || session.headers.sessionValue(name) != nil
        }
        guard isOwn, !CacheControl(directives(hop, in: session)).noStore else { return }
        let requestHeaders = answered.sentFields ?? HeaderBlock()
        let renewal = ResponseRenewal(answered.exchange, answered.transaction.sent)
        let head = answered.head
        let (requestTime, responseTime) = answered.times
        withStored(answered) { stored, cache in
            let renewed = Revalidation.renewed(
                stored, withApp304: head.headers, requestHeaders: requestHeaders, requestTime: requestTime,
                responseTime: responseTime
            )
            guard let renewed else { return }
            cache.apply(renewal.outcome(Storability.mayKeep(renewed) ? renewed : nil), to: stored)
        }
    }

    /// Calls back with the stored response for a hop, if there is one: immediately, or after reading the disk.
    ///
    /// Does nothing for the app's own cache.
    private static func withStored(_ answered: Answered, _ change: @escaping @Sendable (StoredResponse, ResponseCache) -> Void) {
        guard let cache = answered.keeper.store, let url = answered.hop.request.url,
            let requestHeaders = answered.transaction.sent?.sealed(by: cache.seal)
        else { return }
        let now = answered.session.seconds(answered.instant)
        guard cache.mayHaveEntries(now: now, touchingDisk: false) else { return }
        let found = cache.lookUp(key: CacheKey.text(of: url), requestHeaders: requestHeaders, now: now, touchingDisk: false)
        switch found {
        case .hit(let hit): change(hit.response, cache)
        case .wait(let lookUp): lookUp { hit in if let hit { change(hit.response, cache) } }
        case .miss, .unavailable: break
        }
    }

    /// Removes the stored responses that an unsafe request has made outdated (section 4.4).
    @inline(never)
    static func invalidate(by head: ResponseHead, of exchange: Exchange, _ hop: Hop, in load: Load) {
        guard let url = hop.request.url else { return }
        let keys = Revalidation.invalidated(method: hop.request.method, url: url, status: head.status, headers: head.headers)
        guard !keys.isEmpty else { return }
        let keeper = ResponseTrust.keeper(of: exchange, hop, in: load)
        let everyones = ResponseTrust.sharedKeeper(in: load)
        let isOwn = !(keeper?.isSame(as: everyones) ?? false)
        let speaks = isOwn && ResponseTrust.mayChangeSharedStores(exchange, hop, in: load)
        for cache in [keeper?.store, speaks ? everyones?.store : nil] {
            for key in keys { cache?.remove(key: key) }
        }
    }
}

extension ResponseCache {
    /// Applies the outcome of a renewal to a stored response.
    func apply(_ outcome: ResponseRenewal.Outcome, to stored: StoredResponse) {
        switch outcome {
        case .update(let renewed): update(renewed, replacing: stored)
        case .remove: remove(key: stored.url, only: stored)
        case .nothing: break
        }
    }
}

/// How a stored part and a received part fit together: stored bytes, then a window of the received bytes, then stored bytes.
struct PartJoint {
    let before: Data
    let window: Range<Int64>
    let after: Data

    var length: Int64 { Int64(before.count + after.count) + Int64(window.count) }

    init?(_ combination: PartialContent.Combination, _ stored: Data) {
        var before = Data()
        var after = Data()
        var window: Range<Int64>?
        for piece in combination.pieces {
            switch piece.source {
            case .first:
                guard piece.range.lowerBound >= 0, piece.range.upperBound <= Int64(stored.count) else { return nil }
                let bytes = stored.dropFirst(Int(piece.range.lowerBound)).prefix(piece.range.count)
                if window == nil { before.append(bytes) } else { after.append(bytes) }
            case .second:
                guard window == nil else { return nil }
                window = piece.range
            }
        }
        self.before = before
        self.after = after
        self.window = window ?? 0..<0
    }
}

/// A window of a body that arrives in pieces.
struct PartWindow {
    private let window: Range<Int64>
    private var position: Int64 = 0

    init(_ window: Range<Int64>) { self.window = window }

    /// Whether the body was long enough; a chunked body ends wherever its server ends it.
    var isFilled: Bool { position >= window.upperBound }

    /// Returns the part of the next piece that is in the window.
    mutating func part(of piece: ByteBuffer) -> ByteBuffer? {
        let range = (position..<position + Int64(piece.readableBytes)).clamped(to: window)
        let start = position
        position += Int64(piece.readableBytes)
        guard !range.isEmpty else { return nil }
        return piece.getSlice(at: piece.readerIndex + Int(range.lowerBound - start), length: range.count)
    }
}

/// A body whose beginning or end was stored.
final class CompletedBody: ResponseBody {
    private let body: any ResponseBody
    private var before: Data
    private var after: Data
    private var window: PartWindow
    private let forget: () -> Void

    /// `forget` removes the stored part if the body is not the rest that the response announced.
    init(_ body: any ResponseBody, _ joint: PartJoint, forget: @escaping () -> Void) {
        self.body = body
        self.forget = forget
        before = joint.before
        after = joint.after
        window = PartWindow(joint.window)
    }

    func next() async throws(LoadError) -> ByteBuffer? {
        if !before.isEmpty {
            defer { before = Data() }
            return ByteBuffer(bytes: before)
        }
        while let piece = try await body.next() {
            if let part = window.part(of: piece) { return part }
        }
        guard window.isFilled else {
            forget()
            throw LoadError(.connectionLost, "the rest of a stored response ended before the end that the server announced")
        }
        guard !after.isEmpty else { return nil }
        defer { after = Data() }
        return ByteBuffer(bytes: after)
    }

    func cancel() { body.cancel() }
}
