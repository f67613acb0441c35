// SPDX-License-Identifier: Apache-2.0

import HTTPWire

/// One request and the response stored for it: the input of ``CacheDecision``.
struct CacheLookup {
    private let method: String
    private let headers: HeaderBlock
    private let policy: CacheDecision.Policy
    private let instant: Double
    /// The stored response, if method, `Vary` and range allow it to be used.
    private let usable: StoredResponse?
    /// The stored response, if it matches the request but contains only a part of the representation.
    private let partial: StoredResponse?
    private let request: CacheControl
    private let control: CacheControl

    init(method: String, headers: HeaderBlock, policy: CacheDecision.Policy, stored: StoredResponse?, now: Double) {
        self.method = method
        self.headers = headers
        self.policy = policy
        instant = now
        request = CacheControl(request: headers)
        control = CacheControl(stored?.headers ?? HeaderBlock())
        guard let stored, Self.maySatisfy(method, headers, stored, control) else {
            (usable, partial) = (nil, nil)
            return
        }
        let answers: Bool
        if method == "GET", headers.contains(.range), stored.isSuccess {
            answers = PartialContent.range(requestHeaders: headers, stored: stored, now: now) != nil
        } else {
            answers = stored.isComplete
        }
        usable = answers ? stored : nil
        partial = answers ? nil : stored
    }

    private static func maySatisfy(
        _ method: String,
        _ headers: HeaderBlock,
        _ stored: StoredResponse,
        _ control: CacheControl
    ) -> Bool {
        // "the request method associated with the stored response allows it to be used for the presented request" (section 4).
        // RFC 9110, section 9.3.1, allows the response to a GET to be used for HEAD. A 304 received later may have forbidden keeping
        // the response.
        (method == "GET" || method == "HEAD") && stored.method == "GET" && Storability.mayKeep(stored, control)
            && CacheKey.matches(stored, requestHeaders: headers)
    }

    func decide() -> CacheDecision {
        switch policy {
        case .reloadIgnoringLocal: return .fetch([])
        case .reloadIgnoringLocalAndRemote: return .fetch(ReloadFields.fields(besides: headers))
        case .reloadRevalidating: return revalidateByPolicy()
        case .returnCacheDontLoad:
            // "regardless of its age or expiration date".
            return usable != nil && !refusesStored ? .use : .fail
        case .returnCacheElseLoad:
            // A stale redirect or error response is not used.
            if let usable, !refusesStored, usable.isSuccess || usability(of: usable) == .fresh { return .use }
            return request.onlyIfCached ? .fail : decideByProtocol()
        case .useProtocol: return decideByProtocol()
        }
    }

    /// Whether the app's header fields require that stored responses be validated or bypassed.
    ///
    /// A stored response may satisfy a `no-store` request (section 5.2.1.5). However, an app that sends `no-store` wants to bypass the
    /// cache, and other clients also bypass it.
    private var refusesStored: Bool { request.noCache || request.noStore }

    private func decideByProtocol() -> CacheDecision {
        guard !request.onlyIfCached else { return onlyIfCached() }
        // An app that sends its own conditions has its own copy and expects the 304 (as in Fetch, section 4.5: such a request
        // bypasses the cache).
        guard !isConditional, !request.noStore else { return .fetch([]) }
        guard let usable else { return .fetch(completionFields) }
        switch usability(of: usable) {
        case .fresh: return .use
        case .servedStale where method == "GET" && !headers.contains(.range): return .useAndRevalidate(usable.validatorFields)
        case .servedStale, .invalid: return revalidate(usable)
        }
    }

    /// "A cache SHOULD either respond using a stored response consistent with the other constraints of the request or respond
    /// with a 504 (Gateway Timeout) status code" (section 5.2.1.7).
    private func onlyIfCached() -> CacheDecision {
        guard let usable, !refusesStored else { return .fail }
        return usability(of: usable) == .invalid ? .fail : .use
    }

    private func revalidateByPolicy() -> CacheDecision {
        // Intermediate caches must ask the origin as well, as for a browser's reload.
        let endToEnd = request.isPresent || headers.contains(.pragma) ? [] : [("Cache-Control", "max-age=0")]
        guard !isConditional, !request.noStore else { return .fetch(endToEnd) }
        guard let usable else { return .fetch(endToEnd) }
        // "Clients SHOULD NOT issue a conditional request during the response's freshness lifetime (e.g., upon a reload) unless
        // explicitly overridden by the user" (RFC 8246, section 2).
        if control.immutable, !request.noCache, Freshness.explicitLifetime(usable, control) != nil,
            usability(of: usable) == .fresh
        {
            return .use
        }
        guard method == "GET", usable.isSuccess, usable.hasValidator else { return .fetch(endToEnd) }
        return .revalidate(usable.validatorFields + endToEnd)
    }

    /// Decides how to validate a stored response.
    ///
    /// A HEAD request is sent unchanged, because its response also updates the stored response (section 4.3.5).
    private func revalidate(_ stored: StoredResponse) -> CacheDecision {
        guard stored.isSuccess else { return .fetch([]) }
        if method == "GET", stored.hasValidator { return .revalidate(stored.validatorFields) }
        // "When an error is encountered, a cached stale response MAY be used" (RFC 5861, section 4), with or without a validator.
        return (request.staleIfError ?? control.staleIfError) == nil ? .fetch([]) : .revalidate([])
    }

    /// The fields that request the missing part, if the request is for the whole representation.
    private var completionFields: [(String, String)] {
        guard method == "GET", !headers.contains(.range), !request.noCache, let partial else { return [] }
        return PartialContent.completionFields(of: partial)
    }

    private var isConditional: Bool {
        ["If-None-Match", "If-Modified-Since", "If-Match", "If-Unmodified-Since"].contains { headers.contains($0) }
    }

    // MARK: Freshness

    private enum Usability {
        /// Fresh, or no staler than the request accepts.
        case fresh
        /// No staler than the response allows during background revalidation.
        case servedStale
        case invalid
    }

    private func usability(of stored: StoredResponse) -> Usability {
        // A response with no-cache "MUST NOT be used to satisfy any other request without forwarding it for validation" (section
        // 5.2.2.4). A client that sends no-cache "prefers a stored response not be used … without successful validation" (section
        // 5.2.1.4). Browsers express this preference with max-age=0.
        guard !control.noCache, !request.noCache, !request.hasInvalidFreshness, request.maxAge != 0 || request.maxStale != nil
        else {
            return .invalid
        }
        let age = Freshness.currentAge(stored, now: instant)
        let lifetime = Freshness.lifetime(stored, control)
        // max-age of the request: "prefers a response whose age is less than or equal to the specified number of seconds".
        let isYoungEnough = request.maxAge.map { age <= Double($0) } ?? true
        if lifetime > age, isYoungEnough, lifetime - age >= Double(request.minFresh ?? 0) { return .fresh }
        // "once the response has become stale, a cache MUST NOT reuse that response … until it has been successfully
        // validated".
        guard !control.mustRevalidate, request.minFresh == nil else { return .invalid }
        // "Unless the max-stale request directive is also present, the client does not wish to receive a stale response."
        let accepted = min(lifetime, request.maxAge.map(Double.init) ?? lifetime)
        if let maxStale = request.maxStale, accepts(age - accepted, upTo: maxStale) { return .fresh }
        guard stored.isSuccess, request.maxAge == nil, let window = control.staleWhileRevalidate, age - lifetime <= Double(window)
        else {
            return .invalid
        }
        return .servedStale
    }

    private func accepts(_ staleness: Double, upTo limit: Int) -> Bool {
        limit == CacheControl.maximumSeconds || staleness <= Double(limit)
    }
}
