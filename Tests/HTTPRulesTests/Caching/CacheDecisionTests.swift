// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import HTTPWire
import Testing

@Suite struct CacheDecisionTests {
    typealias Policy = CacheDecision.Policy

    private static let conditions = "revalidate If-None-Match: \"a\", If-Modified-Since: " + CachingRow.date(-9)
    private static let tagged = "Date: {0}\nETag: \"a\"\nLast-Modified: {-9}\n"

    private func word(
        _ stored: String?,
        age: Double = 0,
        request: String = "",
        method: String = "GET",
        policy: Policy = .useProtocol,
        status: Int = 200
    ) -> String {
        CacheDecision.decide(
            method: method,
            requestHeaders: CachingRow.headers(request),
            policy: policy,
            stored: stored.map { CachingRow.stored($0, status: status) },
            now: CachingRow.start + age
        ).word
    }

    @Test func `redirects and errors are used while fresh, and never revalidated`() {
        let fields = Self.tagged + "Cache-Control: max-age=60, stale-while-revalidate=600, stale-if-error=600"
        for status in [301, 302, 307, 308, 404, 410, 503] {
            let rows: [(age: Double, request: String, policy: Policy, String)] = [
                (59, "", .useProtocol, "use"), (61, "", .useProtocol, "fetch"),
                (59, "Cache-Control: no-cache", .useProtocol, "fetch"),
                (61, "Cache-Control: max-stale=9", .useProtocol, "use"),
                (61, "Cache-Control: only-if-cached", .useProtocol, "fail"),
                // A stored redirect or error also answers a range request: only a 200 has parts (RFC 9110, section 14.2).
                (59, "Range: bytes=0-4", .useProtocol, "use"), (61, "Range: bytes=0-4", .useProtocol, "fetch"),
                (59, "", .returnCacheElseLoad, "use"), (61, "", .returnCacheElseLoad, "fetch"),
                (61, "", .returnCacheDontLoad, "use"),
                (59, "", .reloadRevalidating, "fetch Cache-Control: max-age=0"), (59, "", .reloadIgnoringLocal, "fetch"),
            ]
            for (age, request, policy, expected) in rows {
                let found = word(fields, age: age, request: request, policy: policy, status: status)
                #expect(found == expected, "\(status) at \(age), \(request), \(policy)")
            }
        }
    }

    @Test func `a fresh response is used, and a stale one is revalidated`() {
        let fresh = Self.tagged + "Cache-Control: max-age=60"
        let rows: [(String?, age: Double, String)] = [
            (nil, 0, "fetch"),
            // RFC 9111, section 4: "the stored response is one of: fresh; allowed to be served stale; successfully validated".
            (fresh, 0, "use"), (fresh, 59, "use"), (fresh, 60, Self.conditions), (fresh, 1e6, Self.conditions),
            // RFC 9111, section 4.3.1: the fields of the conditional request.
            ("Date: {0}\nCache-Control: max-age=60", 61, "fetch"),
            ("Date: {0}\nCache-Control: max-age=60\nETag: W/\"a\"", 61, "revalidate If-None-Match: W/\"a\""),
            ("Date: {0}\nCache-Control: max-age=60\nETag: a", 61, "revalidate If-None-Match: a"),
            ("Date: {0}\nCache-Control: max-age=60\nETag: ", 61, "fetch"),
            (
                "Date: {0}\nCache-Control: max-age=60\nLast-Modified: {-9}", 61,
                "revalidate If-Modified-Since: " + CachingRow.date(-9)
            ),
            // RFC 9111, section 4.2.2.
            ("Date: {0}\nLast-Modified: {-1000}", 99, "use"),
            ("Date: {0}\nLast-Modified: {-1000}", 101, "revalidate If-Modified-Since: " + CachingRow.date(-1000)),
            // A response that has neither freshness nor validators cannot be used.
            ("Date: {0}", 0, "fetch"), ("", 0, "fetch"), ("Date: {0}\nExpires: 0", 0, "fetch"),
            // RFC 9111, section 5.2.2.4: "MUST NOT be used to satisfy any other request without forwarding it for validation".
            (Self.tagged + "Cache-Control: no-cache, max-age=60", 0, Self.conditions),
            (Self.tagged + "Cache-Control: max-age=60\nCache-Control: no-cache", 0, Self.conditions),
            ("Date: {0}\nCache-Control: no-cache, max-age=60", 0, "fetch"),
            // With field names, only those fields are withheld.
            (Self.tagged + "Cache-Control: no-cache=\"X\", max-age=60", 0, "use"),
            (Self.tagged + "Cache-Control: no-cache=\"X\", max-age=60", 60, Self.conditions),
            // RFC 9111, section 5.2.2.2: must-revalidate only concerns stale responses.
            (Self.tagged + "Cache-Control: max-age=60, must-revalidate", 59, "use"),
            (Self.tagged + "Cache-Control: max-age=60, must-revalidate", 60, Self.conditions),
            // These directives do not restrict a private cache.
            (Self.tagged + "Cache-Control: private, max-age=60", 59, "use"),
            (Self.tagged + "Cache-Control: max-age=60, s-maxage=0, proxy-revalidate", 59, "use"),
            // RFC 9111, section 4.2.3: the Age field of other caches counts.
            (Self.tagged + "Cache-Control: max-age=60\nAge: 50", 9, "use"),
            (Self.tagged + "Cache-Control: max-age=60\nAge: 50", 10, Self.conditions),
            // RFC 9111, section 4.2.1: contradictory directives make the response stale.
            (Self.tagged + "Cache-Control: max-age=60, max-age=90", 0, Self.conditions),
            (Self.tagged + "Cache-Control: max-age=1h", 0, Self.conditions),
            // A later 304 said that the response must not be stored.
            (Self.tagged + "Cache-Control: max-age=60, no-store", 0, "fetch"),
            (Self.tagged + "Cache-Control: max-age=60\nVary: *", 0, "fetch"),
        ]
        for (stored, age, expected) in rows { #expect(word(stored, age: age) == expected, "\(stored ?? "nothing") at \(age)") }
    }

    @Test func `request directives are honored`() {
        let fresh = Self.tagged + "Cache-Control: max-age=60"
        let strict = Self.tagged + "Cache-Control: max-age=60, must-revalidate"
        let rows: [(String, String, age: Double, String)] = [
            // RFC 9111, section 5.2.1.4: "prefers a stored response not be used to satisfy the request without successful
            // validation".
            ("Cache-Control: no-cache", fresh, 0, Self.conditions), ("Pragma: no-cache", fresh, 0, Self.conditions),
            ("Pragma: no-cache\nCache-Control: max-stale", fresh, 0, "use"), ("Pragma: x", fresh, 0, "use"),
            ("Cache-Control: no-cache", "Date: {0}\nCache-Control: max-age=60", 0, "fetch"),
            // RFC 9111, section 5.2.1.5: a request with no-store bypasses the cache.
            ("Cache-Control: no-store", fresh, 0, "fetch"),
            // RFC 9111, section 5.2.1.1: "prefers a response whose age is less than or equal to the specified number of seconds".
            ("Cache-Control: max-age=30", fresh, 30, "use"), ("Cache-Control: max-age=30", fresh, 31, Self.conditions),
            ("Cache-Control: max-age=90", fresh, 61, Self.conditions), ("Cache-Control: max-age=0", fresh, 0, Self.conditions),
            ("Cache-Control: max-age=x", fresh, 0, Self.conditions),
            ("Cache-Control: max-age=5, max-age=50", fresh, 0, Self.conditions),
            // RFC 9111, section 5.2.1.3: "its freshness lifetime is no less than its current age plus the specified time".
            ("Cache-Control: min-fresh=20", fresh, 40, "use"), ("Cache-Control: min-fresh=20", fresh, 41, Self.conditions),
            ("Cache-Control: min-fresh=99999999999", fresh, 0, Self.conditions),
            // RFC 9111, section 5.2.1.2: "accept a response that has exceeded its freshness lifetime by no more than the
            // specified number".
            ("Cache-Control: max-stale=10", fresh, 70, "use"), ("Cache-Control: max-stale=10", fresh, 71, Self.conditions),
            ("Cache-Control: max-stale", fresh, 1e8, "use"), ("Cache-Control: max-stale=\"10\"", fresh, 70, "use"),
            ("Cache-Control: max-stale=0", fresh, 60, "use"), ("Cache-Control: max-stale=x", fresh, 61, Self.conditions),
            ("Cache-Control: max-stale=10", "Date: {0}\nETag: \"a\"\nExpires: 0", 5, "use"),
            // "Unless the max-stale request directive is also present, the client does not wish to receive a stale response."
            ("Cache-Control: max-age=30, max-stale=10", fresh, 40, "use"),
            ("Cache-Control: max-age=30, max-stale=10", fresh, 41, Self.conditions),
            ("Cache-Control: max-age=90, max-stale=10", fresh, 70, "use"),
            ("Cache-Control: max-age=0, max-stale=10", fresh, 10, "use"),
            // RFC 9111, section 4.2.4: unless it is "prohibited by an explicit in-protocol directive".
            ("Cache-Control: max-stale", strict, 61, Self.conditions),
            ("Cache-Control: max-stale", Self.tagged + "Cache-Control: no-cache", 0, Self.conditions),
            ("Cache-Control: max-stale, no-cache", fresh, 0, Self.conditions),
            // Directives for shared caches prohibit nothing.
            ("Cache-Control: max-stale=10", fresh + ", proxy-revalidate, s-maxage=1", 65, "use"),
            // RFC 9111, section 5.2.1.7: "a stored response consistent with the other constraints of the request", or a 504.
            ("Cache-Control: only-if-cached", fresh, 0, "use"), ("Cache-Control: only-if-cached", fresh, 61, "fail"),
            ("Cache-Control: only-if-cached, max-stale=9", fresh, 61, "use"),
            ("Cache-Control: only-if-cached, no-cache", fresh, 0, "fail"),
            ("Cache-Control: only-if-cached, max-age=5", fresh, 6, "fail"),
            ("Cache-Control: only-if-cached, no-store", fresh, 0, "fail"),
            ("Cache-Control: only-if-cached", Self.tagged + "Cache-Control: no-cache", 0, "fail"),
            ("Cache-Control: only-if-cached", fresh + ", stale-while-revalidate=9", 61, "use"),
            // Unknown directives are ignored.
            ("Cache-Control: foo=\"no-cache\"", fresh, 0, "use"), ("Cache-Control: private, public", fresh, 0, "use"),
        ]
        for (request, stored, age, expected) in rows {
            #expect(word(stored, age: age, request: request) == expected, "\(request) / \(stored) at \(age)")
        }
        #expect(word(nil, request: "Cache-Control: only-if-cached") == "fail")
        #expect(word(fresh, request: "Cache-Control: only-if-cached", method: "POST") == "fail")
    }

    @Test func `a stale response is used while it is revalidated, if the response allows that`() {
        let stored = Self.tagged + "Cache-Control: max-age=60, stale-while-revalidate=30"
        let background = "background" + Self.conditions.dropFirst("revalidate".count)
        let rows: [(String, String, age: Double, String)] = [
            // RFC 5861, section 3: "caches MAY serve the response … after it becomes stale, up to the indicated number of
            // seconds".
            (stored, "", 59, "use"), (stored, "", 60, background), (stored, "", 90, background),
            (stored, "", 91, Self.conditions),
            ("Date: {0}\nCache-Control: max-age=60, stale-while-revalidate=30", "", 61, "background"),
            ("Date: {0}\nExpires: {60}\nCache-Control: stale-while-revalidate=\"30\"", "", 61, "background"),
            (stored + "\nCache-Control: must-revalidate", "", 61, Self.conditions),
            (stored + "\nCache-Control: no-cache", "", 61, Self.conditions),
            (stored, "Cache-Control: no-cache", 61, Self.conditions), (stored, "Cache-Control: max-age=90", 61, Self.conditions),
            (stored, "Cache-Control: min-fresh=1", 61, Self.conditions), (stored, "Cache-Control: max-stale=5", 61, "use"),
            (stored, "Cache-Control: max-stale=5", 70, background), (stored, "Cache-Control: no-store", 61, "fetch"),
            // A part, or a HEAD response, could not replace the stored response.
            (stored, "Range: bytes=0-4", 61, Self.conditions),
        ]
        for (stored, request, age, expected) in rows {
            #expect(word(stored, age: age, request: request) == expected, "\(stored) / \(request) at \(age)")
        }
        #expect(word(stored, age: 61, method: "HEAD") == "fetch")
    }

    @Test func `a stale response that may replace an error is revalidated, even without a validator`() {
        let plain = "Date: {0}\nCache-Control: max-age=60"
        let rows: [(String, String, age: Double, method: String, String)] = [
            // RFC 5861, section 4: "a cached stale response MAY be used to satisfy the request, regardless of other freshness
            // information".
            (plain + ", stale-if-error=600", "", 61, "GET", "revalidate"),
            (plain + ", stale-if-error=600", "", 61, "HEAD", "revalidate"),
            (plain + ", stale-if-error=600\nETag: \"a\"", "", 61, "HEAD", "revalidate"),
            (plain + ", stale-if-error=600\nETag: \"a\"", "", 61, "GET", "revalidate If-None-Match: \"a\""),
            (plain, "Cache-Control: stale-if-error=600", 61, "GET", "revalidate"),
            (plain + ", stale-if-error=600", "", 59, "GET", "use"), (plain, "", 61, "GET", "fetch"),
            (plain + ", stale-if-error=600", "Cache-Control: no-store", 61, "GET", "fetch"),
            (plain + ", stale-if-error=600", "If-None-Match: \"b\"", 61, "GET", "fetch"),
        ]
        for (stored, request, age, method, expected) in rows {
            #expect(word(stored, age: age, request: request, method: method) == expected, "\(method) \(stored) / \(request)")
        }
        // A load that requires validation must receive the error.
        let stored = plain + ", stale-if-error=600"
        #expect(word(stored, age: 61, policy: .reloadRevalidating) == "fetch Cache-Control: max-age=0")
    }

    @Test func `a request with the app's own conditions bypasses the cache`() {
        let fresh = Self.tagged + "Cache-Control: max-age=60"
        for field in [
            "If-None-Match: \"a\"", "If-None-Match: *", "If-Modified-Since: {0}", "If-Match: \"a\"", "If-Unmodified-Since: {0}",
        ] {
            #expect(word(fresh, request: field) == "fetch", "\(field)")
            #expect(word(fresh, age: 61, request: field) == "fetch", "\(field)")
            #expect(word(fresh, request: field, policy: .reloadRevalidating) == "fetch Cache-Control: max-age=0", "\(field)")
            // Policies that accept any stored response still return it.
            #expect(word(fresh, request: field, policy: .returnCacheDontLoad) == "use", "\(field)")
            #expect(word(fresh, request: field, policy: .returnCacheElseLoad) == "use", "\(field)")
            #expect(word(fresh, request: field + "\nCache-Control: only-if-cached") == "use", "\(field)")
        }
        // If-Range has no effect without Range.
        #expect(word(fresh, request: "If-Range: \"b\"") == "use")
    }

    @Test func `a stored GET answers HEAD, and no other method`() {
        let fresh = Self.tagged + "Cache-Control: max-age=60"
        // RFC 9110, section 9.3.2: a stored GET has all fields of the response to a HEAD.
        #expect(word(fresh, method: "HEAD") == "use")
        #expect(word(fresh, method: "HEAD", policy: .returnCacheDontLoad) == "use")
        #expect(word(fresh, age: 61, method: "HEAD") == "fetch")
        for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "get", "FOO"] {
            #expect(word(fresh, method: method) == "fetch", "\(method)")
            #expect(word(fresh, method: method, policy: .returnCacheElseLoad) == "fetch", "\(method)")
            #expect(word(fresh, method: method, policy: .returnCacheDontLoad) == "fail", "\(method)")
        }
    }

    @Test func `each of Apple's cache policies is followed`() {
        let fresh = Self.tagged + "Cache-Control: max-age=60"
        let plain = "Date: {0}\nCache-Control: max-age=60"
        let reload = "fetch Cache-Control: no-cache, Pragma: no-cache"
        let rows: [(Policy, String?, age: Double, request: String, String)] = [
            (.useProtocol, fresh, 0, "", "use"), (.useProtocol, fresh, 61, "", Self.conditions),
            (.useProtocol, nil, 0, "", "fetch"),
            (.reloadIgnoringLocal, fresh, 0, "", "fetch"), (.reloadIgnoringLocal, nil, 0, "", "fetch"),
            (.reloadIgnoringLocal, fresh, 0, "Cache-Control: only-if-cached", "fetch"),
            (.reloadIgnoringLocalAndRemote, fresh, 0, "", reload), (.reloadIgnoringLocalAndRemote, nil, 0, "", reload),
            (.reloadIgnoringLocalAndRemote, fresh, 0, "Cache-Control: max-age=5", "fetch"),
            // "regardless of its age or expiration date".
            (.returnCacheElseLoad, fresh, 1e8, "", "use"), (.returnCacheElseLoad, nil, 0, "", "fetch"),
            (.returnCacheElseLoad, Self.tagged + "Cache-Control: no-cache", 0, "", "use"),
            (.returnCacheElseLoad, "", 1e8, "", "use"),
            (.returnCacheElseLoad, fresh, 0, "Cache-Control: no-cache", Self.conditions),
            (.returnCacheElseLoad, fresh, 0, "Cache-Control: no-store", "fetch"),
            (.returnCacheElseLoad, nil, 0, "Cache-Control: only-if-cached", "fail"),
            (.returnCacheElseLoad, fresh, 1e8, "Cache-Control: only-if-cached", "use"),
            (.returnCacheElseLoad, fresh + "\nVary: Accept", 0, "Accept: x", "fetch"),
            (.returnCacheDontLoad, fresh, 1e8, "", "use"), (.returnCacheDontLoad, nil, 0, "", "fail"),
            (.returnCacheDontLoad, fresh + ", must-revalidate", 1e8, "", "use"),
            (.returnCacheDontLoad, fresh, 0, "Cache-Control: no-cache", "fail"),
            (.returnCacheDontLoad, fresh, 0, "Cache-Control: no-store", "fail"),
            (.returnCacheDontLoad, fresh + "\nVary: Accept", 0, "Accept: x", "fail"),
            (.returnCacheDontLoad, fresh + "\nVary: *", 0, "", "fail"),
            (.returnCacheDontLoad, fresh, 0, "Range: bytes=0-4", "use"),
            (.returnCacheDontLoad, fresh, 0, "Range: items=0-4", "fail"),
            // "may be used provided the origin source validates its validity".
            (.reloadRevalidating, fresh, 0, "", Self.conditions + ", Cache-Control: max-age=0"),
            (.reloadRevalidating, plain, 0, "", "fetch Cache-Control: max-age=0"),
            (.reloadRevalidating, nil, 0, "", "fetch Cache-Control: max-age=0"),
            (.reloadRevalidating, fresh, 0, "Cache-Control: max-age=5", Self.conditions),
            (.reloadRevalidating, fresh, 0, "Pragma: no-cache", Self.conditions),
            (.reloadRevalidating, fresh, 0, "Cache-Control: no-store", "fetch"),
        ]
        for (policy, stored, age, request, expected) in rows {
            #expect(
                word(stored, age: age, request: request, policy: policy) == expected,
                "\(policy) \(stored ?? "nothing") \(request)")
        }
    }

    @Test func `an immutable response is not revalidated while it is fresh`() {
        let stored = Self.tagged + "Cache-Control: max-age=60, immutable"
        let asked = Self.conditions + ", Cache-Control: max-age=0"
        // RFC 8246, section 2: "Clients SHOULD NOT issue a conditional request during the response's freshness lifetime (e.g.,
        // upon a reload) unless explicitly overridden by the user (e.g., a force reload)."
        #expect(word(stored, age: 59, policy: .reloadRevalidating) == "use")
        #expect(word(stored, age: 60, policy: .reloadRevalidating) == asked)
        #expect(word(stored, age: 60) == Self.conditions)
        #expect(word(stored, policy: .reloadIgnoringLocal) == "fetch")
        #expect(word(stored, request: "Cache-Control: no-cache") == Self.conditions)
        #expect(word(stored, request: "Cache-Control: no-cache", policy: .reloadRevalidating) == Self.conditions)
        // The directive has no effect on heuristic freshness.
        let guessed = "Date: {0}\nLast-Modified: {-100000}\nETag: \"a\"\nCache-Control: immutable"
        #expect(word(guessed, policy: .reloadRevalidating).hasPrefix("revalidate"))
    }

    @Test func `the more restrictive policy wins`() {
        let order: [Policy] = [
            .useProtocol, .returnCacheElseLoad, .reloadRevalidating, .reloadIgnoringLocal, .reloadIgnoringLocalAndRemote,
            .returnCacheDontLoad,
        ]
        #expect(Set(order.map(\.rawValue)) == [0, 1, 2, 3, 4, 5] && order.count == Policy.allCases.count)
        for (rank, policy) in order.enumerated() {
            for (other, session) in order.enumerated() {
                let expected = order[max(rank, other)]
                #expect(Policy.stricter(policy, session) == expected, "\(policy) in a session of \(session)")
            }
        }
        #expect(Policy(rawValue: 4) == .reloadIgnoringLocalAndRemote && Policy(rawValue: 5) == .reloadRevalidating)
        #expect(
            Policy(rawValue: 1) == .reloadIgnoringLocal && Policy(rawValue: 2) == .returnCacheElseLoad
                && Policy(rawValue: 6) == nil)
    }

    @Test func `a stored part answers range requests, and is completed for other requests`() {
        let part = "Date: {0}\nETag: \"a\"\nCache-Control: max-age=60\nContent-Range: bytes 0-99/200"
        let rest = "fetch Range: bytes=100-, If-Range: \"a\""
        let rows: [(String, String, age: Double, policy: Policy, String)] = [
            // RFC 9111, section 4: a partial response must not answer a request for the whole.
            (part, "", 0, .useProtocol, rest), (part, "", 61, .useProtocol, rest), (part, "", 0, .returnCacheElseLoad, rest),
            (part, "", 0, .returnCacheDontLoad, "fail"), (part, "", 0, .reloadIgnoringLocal, "fetch"),
            (part, "Cache-Control: only-if-cached", 0, .useProtocol, "fail"),
            (part, "Range: bytes=10-19", 0, .useProtocol, "use"),
            (part, "Range: bytes=10-19", 61, .useProtocol, "revalidate If-None-Match: \"a\""),
            (part, "Range: bytes=10-120", 0, .useProtocol, "fetch"),
            (part, "Range: bytes=10-19\nIf-Range: \"b\"", 0, .useProtocol, "fetch"),
            (part, "Range: bytes=10-19\nIf-Range: \"a\"", 0, .useProtocol, "use"),
            // RFC 9111, section 3.4, requires a strong validator.
            ("Date: {0}\nETag: W/\"a\"\nCache-Control: max-age=60\nContent-Range: bytes 0-99/200", "", 0, .useProtocol, "fetch"),
            ("Date: {0}\nETag: \"a\"\nContent-Range: bytes 50-149/200", "", 0, .useProtocol, "fetch"),
        ]
        for (stored, request, age, policy, expected) in rows {
            #expect(
                word(stored, age: age, request: request, policy: policy, status: 206) == expected,
                "\(stored) / \(request), \(policy)")
        }
        #expect(word(part, method: "HEAD", status: 206) == "fetch")
    }
}
