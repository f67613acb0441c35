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

/// Stores responses as they come from the network, so far as the rules allow (RFC 9111, section 3), and forgets
/// those that a response shows to be outdated (section 4.4).
enum ResponseCaching {
    /// A body that is stored while it is delivered; nil where nothing is stored.
    static func keep(
        _ body: any ResponseBody, _ response: LoadResponse, _ head: ResponseHead, _ hop: Hop, _ exchange: Exchange, in load: Load
    ) -> (any ResponseBody)? {
        guard load.session.stores.cache != nil || load.wants(.cache), !CacheStage.namesAnotherHost(hop) else {
            return nil
        }
        switch hop.request.method {
        case "GET":
            // The app's own cache is asked by the task, which is the same for a redirect and what it leads to: it is given, as by Apple's
            // system, statuses from 200 to 299 alone.
            guard !load.isDownload, (200...299).contains(head.status) || !load.wants(.cache),
                Storability.mayStore(
                    requestMethod: "GET", requestHeaders: directives(hop, in: load.session), status: head.status,
                    headers: head.headers
                )
            else {
                if head.status != 304 {
                    forget(head, hop, in: load.session, at: load.control.lastProgress)
                } else if !load.wants(.cache), !load.isDownload {
                    // What the app keeps is the app's.
                    renew(by: head, hop, exchange, in: load.session)
                }
                return nil
            }
            return store(body, response, head, hop, exchange, in: load)
        case "HEAD":
            update(by: head, hop, exchange, in: load.session)
            return nil
        default:
            invalidate(by: head, hop, in: load.session)
            return nil
        }
    }

    /// The request's fields, with the directives that the session gives to those without.
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
        _ body: any ResponseBody, _ response: LoadResponse, _ head: ResponseHead, _ hop: Hop, _ exchange: Exchange, in load: Load
    ) -> (any ResponseBody)? {
        guard let url = hop.request.url else { return nil }
        // The credential of a challenge is in no request that could be compared with this one.
        if hop.authentication.server != nil, head.headers.hasToken("Authorization", in: .vary) { return nil }
        let stored = StoredResponse(
            url: CacheKey.text(of: url), requestHeaders: sentHeaders(hop, head, in: load.session, at: load.control.lastProgress),
            status: head.status, reason: head.reason, headers: head.headers,
            requestTime: WallClock.seconds(exchange.record.requestStart),
            responseTime: WallClock.seconds(exchange.record.responseStart ?? exchange.record.requestStart)
        )
        guard Storability.isWorthKeeping(stored) else {
            forget(head, hop, in: load.session, at: load.control.lastProgress)
            return nil
        }
        if stored.storedRange != nil, let joined = join(body, stored, response, hop, in: load) { return joined }
        return CachingBody(body, stored, response, expectedLength: response.expectedLength, hop, in: load)
    }

    /// The message's fields, composed once more where they matter: they are not kept while a load waits for its answer.
    private static func sentHeaders(
        _ hop: Hop, _ head: ResponseHead, in session: SessionFacts, at instant: NIODeadline
    ) -> HeaderBlock {
        guard head.headers.contains(.vary) else { return hop.request.headers }
        return sentHeaders(hop, withCookies: head.headers.hasToken("Cookie", in: .vary), in: session, at: instant)
    }

    private static func sentHeaders(
        _ hop: Hop, withCookies: Bool, in session: SessionFacts, at instant: NIODeadline
    ) -> HeaderBlock {
        guard let url = hop.request.url, let target = try? RequestTarget(url) else { return hop.request.headers }
        var extra: [(String, String)] = []
        if withCookies, let cookies = PrepareStage.cookies(for: target, hop, in: session, at: instant) {
            extra.append(("Cookie", cookies))
        }
        return session.headers.compose(
            request: hop.request.headers, target: target, method: hop.request.method, bodyLength: nil, extra: extra,
            leftOrigin: hop.followUp.leftOrigin
        )
    }

    /// What is stored of a URL is outdated once the origin answered something else that is not stored.
    private static func forget(_ head: ResponseHead, _ hop: Hop, in session: SessionFacts, at instant: NIODeadline) {
        guard mayReplace(hop, in: session), !hop.request.hasField(.range), let url = hop.request.url else { return }
        switch head.status {
        case 200...299, 404, 410: forget(url, in: session)
        case 300...399:
            // Another redirect takes the place of one. A success may be right again when what leads elsewhere for now is over.
            withStored(hop, in: session, at: instant) { stored, cache in
                if !stored.isSuccess { cache.remove(key: stored.url, only: stored) }
            }
        default: break
        }
    }

    static func forget(_ url: URL, in session: SessionFacts) { session.stores.cache?.remove(key: CacheKey.text(of: url)) }

    /// Whether something may be stored that the answer to a hop takes the place of.
    static func mayReplace(_ hop: Hop, in session: SessionFacts) -> Bool {
        if hop.cache.mayHaveMore { return true }
        // A reload did not look whether something is stored.
        return switch CacheStage.policy(hop, in: session) {
        case .reloadIgnoringLocal, .reloadIgnoringLocalAndRemote: true
        case .useProtocol, .returnCacheElseLoad, .returnCacheDontLoad, .reloadRevalidating: false
        }
    }

    // MARK: Parts

    /// A part that is stored together with one that was stored before.
    private static func join(
        _ body: any ResponseBody, _ part: StoredResponse, _ response: LoadResponse, _ hop: Hop, in load: Load
    ) -> (any ResponseBody)? {
        guard let cache = load.session.stores.cache, !load.wants(.cache) else { return nil }
        func join(with hit: ResponseCache.Hit) -> (any ResponseBody)? {
            guard let (combined, joint) = joint(hit, part, response) else {
                // What is complete is worth more than a part of it.
                return hit.response.isComplete && hit.response.isSuccess ? body : nil
            }
            return CachingBody(body, combined, response, expectedLength: joint.length, joint: joint, hop, in: load)
        }
        let found = cache.lookUp(key: part.url, requestHeaders: hop.request.headers, now: load.now, touchingDisk: false)
        switch found {
        case .hit(let hit): return join(with: hit)
        case .miss, .unavailable: return nil
        case .wait(let lookUp):
            return JoinedBody(body, lookUp, in: load.control, timeout: load.requestTimeout) { hit in
                hit.flatMap { join(with: $0) }
                    ?? CachingBody(body, part, response, expectedLength: response.expectedLength, hop, in: load)
            }
        }
    }

    /// The whole answer of a part that is stored and the rest that comes; nil where they do not fit.
    static func joined(
        _ hit: ResponseCache.Hit, _ answer: Answer, _ head: ResponseHead, _ hop: Hop, in load: Load
    ) -> Answer? {
        let times = answer.transaction.times
        let part = StoredResponse(
            url: hit.response.url, requestHeaders: hop.request.headers, status: head.status, reason: head.reason,
            headers: head.headers,
            requestTime: times.request, responseTime: times.response
        )
        guard let (combined, joint) = joint(hit, part, answer.response), combined.isComplete else { return nil }
        let response = LoadResponse(
            url: answer.response.url,
            kind: .http(ResponseHead(status: combined.status, reason: combined.reason, headers: combined.headers)),
            expectedLength: joint.length
        )
        let whole = CompletedBody(answer.body, joint)
        let body: any ResponseBody =
            Storability.mayKeep(combined)
            ? CachingBody(whole, combined, response, expectedLength: joint.length, hop, in: load) : whole
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
    private static func update(by head: ResponseHead, _ hop: Hop, _ exchange: Exchange, in session: SessionFacts) {
        let (requestTime, responseTime) = times(exchange)
        withStored(hop, in: session, at: exchange.control.lastProgress) { stored, cache in
            let outcome = Revalidation.updatedByHead(
                stored, status: head.status, headers: head.headers, requestTime: requestTime, responseTime: responseTime
            )
            switch outcome {
            case .update(let response): cache.update(response, replacing: stored)
            case .invalidate: cache.remove(key: stored.url, only: stored)
            case .nothing: break
            }
        }
    }

    /// Renews what is stored by a 304 that a condition of the app's own brought: "when a cache receives a 304 (Not Modified)
    /// response, it needs to identify stored responses that are suitable for updating" (section 4.3.4).
    @inline(never)
    private static func renew(by head: ResponseHead, _ hop: Hop, _ exchange: Exchange, in session: SessionFacts) {
        // What the cache asked itself, it deals with itself.
        let isOwn = ["If-None-Match", "If-Modified-Since"].contains { name in
            hop.request.headers.contains(name) || session.headers.sessionValue(name) != nil
        }
        guard isOwn, !CacheControl(directives(hop, in: session)).noStore else { return }
        let (requestTime, responseTime) = times(exchange)
        let instant = exchange.control.lastProgress
        let requestHeaders = sentHeaders(hop, head, in: session, at: instant)
        withStored(hop, in: session, at: instant) { stored, cache in
            let renewed = Revalidation.renewed(
                stored, byOthers304: head.headers, requestHeaders: requestHeaders, requestTime: requestTime,
                responseTime: responseTime
            )
            guard let renewed else { return }
            if Storability.mayKeep(renewed) {
                cache.update(renewed, replacing: stored)
            } else {
                cache.remove(key: stored.url, only: stored)
            }
        }
    }

    /// Calls back with what is stored for a hop, if anything is: at once, or once the disk has answered.
    private static func withStored(
        _ hop: Hop, in session: SessionFacts, at instant: NIODeadline,
        _ change: @escaping @Sendable (StoredResponse, ResponseCache) -> Void
    ) {
        guard let cache = session.stores.cache, let url = hop.request.url else { return }
        let now = WallClock.seconds(instant)
        guard cache.mayHaveAny(now: now, touchingDisk: false) else { return }
        let found = cache.lookUp(
            key: CacheKey.text(of: url), requestHeaders: sentHeaders(hop, withCookies: true, in: session, at: instant), now: now,
            touchingDisk: false
        )
        switch found {
        case .hit(let hit): change(hit.response, cache)
        case .wait(let lookUp): lookUp { hit in if let hit { change(hit.response, cache) } }
        case .miss, .unavailable: break
        }
    }

    private static func times(_ exchange: Exchange) -> (request: Double, response: Double) {
        (
            WallClock.seconds(exchange.record.requestStart),
            WallClock.seconds(exchange.record.responseStart ?? exchange.record.requestStart)
        )
    }

    @inline(never)
    private static func invalidate(by head: ResponseHead, _ hop: Hop, in session: SessionFacts) {
        guard let cache = session.stores.cache, let url = hop.request.url else { return }
        let keys = Revalidation.invalidated(method: hop.request.method, url: url, status: head.status, headers: head.headers)
        for key in keys { cache.remove(key: key) }
    }
}

/// How a stored part and one that comes lie together: bytes that are here, a window of what comes, bytes that are here.
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

/// The window of a body that comes in pieces.
struct PartWindow {
    private let window: Range<Int64>
    private var position: Int64 = 0

    init(_ window: Range<Int64>) { self.window = window }

    /// What of the next piece lies in the window.
    mutating func part(of piece: ByteBuffer) -> ByteBuffer? {
        let range = (position..<position + Int64(piece.readableBytes)).clamped(to: window)
        let start = position
        position += Int64(piece.readableBytes)
        guard !range.isEmpty else { return nil }
        return piece.getSlice(at: piece.readerIndex + Int(range.lowerBound - start), length: range.count)
    }
}

/// A body of which the beginning or the end was stored.
final class CompletedBody: ResponseBody {
    private let body: any ResponseBody
    private var before: Data
    private var after: Data
    private var window: PartWindow

    init(_ body: any ResponseBody, _ joint: PartJoint) {
        self.body = body
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
        guard !after.isEmpty else { return nil }
        defer { after = Data() }
        return ByteBuffer(bytes: after)
    }

    func cancel() { body.cancel() }
}
