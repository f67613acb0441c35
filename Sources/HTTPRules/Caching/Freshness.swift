// SPDX-License-Identifier: Apache-2.0

import HTTPWire

/// Computes the age and the freshness lifetime of stored responses (RFC 9111, section 4.2).
///
/// Age and lifetime are finite and not negative, whatever the server sent.
package enum Freshness {
    /// The lifetime without explicit freshness, as a fraction of the time since the last modification: "a typical setting of this
    /// fraction might be 10%" (section 4.2.2).
    private static let heuristicFraction = 0.1
    /// The maximum lifetime without explicit freshness, in seconds: one week, as in Firefox.
    private static let heuristicLimit: Double = 7 * 86_400
    private static let longestLifetime = Double(CacheControl.maximumSeconds)
    /// Greater than any lifetime, so that a response whose age cannot be computed is stale.
    private static let longestAge = 2 * longestLifetime

    /// The number of seconds after its generation during which a response is fresh (section 4.2.1).
    package static func lifetime(_ stored: StoredResponse) -> Double {
        lifetime(stored, CacheControl(stored.headers))
    }

    static func lifetime(_ stored: StoredResponse, _ control: CacheControl) -> Double {
        if let explicit = explicitLifetime(stored, control) { return explicit }
        return heuristicLifetime(stored, control)
    }

    /// The lifetime that the server specified, or nil.
    ///
    /// `s-maxage` is ignored, because it is for shared caches. "If a response includes a Cache-Control header field with the max-age
    /// directive, a recipient MUST ignore the Expires header field" (section 5.3).
    static func explicitLifetime(_ stored: StoredResponse, _ control: CacheControl) -> Double? {
        // "Caches are encouraged to consider responses that have invalid freshness information … to be stale."
        guard !control.hasInvalidFreshness else { return 0 }
        if let maxAge = control.maxAge { return Double(maxAge) }
        let expires = stored.headers.all("Expires")
        guard let first = expires.first else { return nil }
        // "A cache recipient MUST interpret invalid date formats, especially the value "0", as representing a time in the
        // past."
        guard expires.allSatisfy({ $0 == first }), let end = CacheDate.parse(first, now: stored.responseTime) else { return 0 }
        return bounded(end - date(stored), longestLifetime)
    }

    /// The lifetime without explicit freshness (section 4.2.2): a tenth of the time since the last modification, or the maximum for
    /// statuses that are permanent.
    ///
    /// Browsers keep permanent responses forever, which users complain about.
    ///
    /// The lifetime is zero unless the status is "defined as heuristically cacheable" or the response is marked `public`.
    private static func heuristicLifetime(_ stored: StoredResponse, _ control: CacheControl) -> Double {
        if Storability.isPermanent(stored.status) { return heuristicLimit }
        guard control.isPublic || Storability.isHeuristicallyCacheable(stored.status),
            let modified = CacheDate.parse("Last-Modified", in: stored.headers, now: stored.responseTime)
        else { return 0 }
        return bounded((date(stored) - modified) * heuristicFraction, heuristicLimit)
    }

    /// `Date`, or the time of receipt if the server has no clock (RFC 9110, section 6.6.1).
    private static func date(_ stored: StoredResponse) -> Double {
        CacheDate.parse("Date", in: stored.headers, now: stored.responseTime) ?? stored.responseTime
    }

    /// The number of seconds since the origin generated or last validated a response (section 4.2.3).
    ///
    /// If the clock was set back in the meantime, the difference counts as elapsed time: an unnecessary validation is better than a
    /// missing one.
    package static func currentAge(_ stored: StoredResponse, now: Double) -> Double {
        let apparentAge = max(0, stored.responseTime - date(stored))
        let responseDelay = max(0, stored.responseTime - stored.requestTime)
        let correctedAge = Double(ageValue(stored.headers)) + responseDelay
        let residentTime = abs(now - stored.responseTime)
        return bounded(max(apparentAge, correctedAge) + residentTime, longestAge)
    }

    /// The value of `Age`, or zero if it is absent.
    ///
    /// "A cache encountering a message with a list-based Age field value SHOULD use the first member of the field value,
    /// discarding subsequent ones. If the field value … is invalid …, a cache SHOULD ignore the field" (section 5.1).
    static func ageValue(_ headers: HeaderBlock) -> Int {
        guard let index = headers.index(of: .age) else { return 0 }
        let value = headers.bytes[headers.lines[index].value]
        return CacheControl.seconds(ASCII.trimmed(value.prefix { $0 != UInt8(ascii: ",") })) ?? 0
    }

    /// `response_is_fresh = (freshness_lifetime > current_age)` (section 4.2).
    package static func isFresh(_ stored: StoredResponse, now: Double) -> Bool {
        lifetime(stored) > currentAge(stored, now: now)
    }

    /// The number of seconds since a response became stale; zero if it is fresh.
    package static func staleness(_ stored: StoredResponse, now: Double) -> Double {
        max(0, currentAge(stored, now: now) - lifetime(stored))
    }

    private static func bounded(_ seconds: Double, _ limit: Double) -> Double {
        seconds.isNaN ? limit : min(max(0, seconds), limit)
    }
}
