// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import HTTPWire
import SeededNumbers
import Testing

@Suite struct CacheControlTests {
    private func control(_ lines: String...) -> CacheControl {
        CacheControl(CachingRow.headers(lines.map { "Cache-Control: " + $0 }.joined(separator: "\n")))
    }

    @Test func `max-age is read in every valid form, and in no other`() {
        let rows: [(String, Int?, invalid: Bool)] = [
            // RFC 9111, section 5.2: "cache-directive = token [ "=" ( token / quoted-string ) ]".
            ("max-age=3600", 3600, false), ("max-age=0", 0, false), ("max-age=007", 7, false),
            // "Cache directives are identified by a token, to be compared case-insensitively".
            ("MAX-AGE=5", 5, false), ("mAx-AgE=5", 5, false),
            // "For the directives defined below that define arguments, recipients ought to accept both forms, even if a
            // specific form is required for generation."
            ("max-age=\"3600\"", 3600, false), ("max-age=\"36\\00\"", 3600, false),
            // RFC 9110, section 5.6.1.2: "a recipient MUST parse and ignore a reasonable number of empty list elements".
            (", ,max-age=1,,", 1, false), ("public,max-age=1", 1, false), ("public ,\tmax-age=1 ", 1, false),
            // RFC 9111, section 1.2.2: "the cache MUST consider the value to be 2147483648 (2^31)".
            ("max-age=2147483648", 2_147_483_648, false), ("max-age=2147483649", 2_147_483_648, false),
            ("max-age=99999999999999999999999999", 2_147_483_648, false),
            // RFC 9111, section 4.2.1: "Caches are encouraged to consider responses that have invalid freshness information
            // (e.g., a max-age directive with non-integer content) to be stale."
            ("max-age", nil, true), ("max-age=", nil, true), ("max-age=-1", nil, true), ("max-age=1.5", nil, true),
            ("max-age=abc", nil, true), ("max-age=10a", nil, true), ("max-age=a10", nil, true), ("max-age=+1", nil, true),
            ("max-age='3600'", nil, true), ("max-age = 3600", nil, true), ("max-age =3600", nil, true),
            ("max-age= 3600", nil, true),
            ("max-age:3600", nil, true), ("max-age=3600;public", nil, true), ("max-age=3600 public", nil, true),
            ("max-age=\"3600\"x", nil, true), ("max-age=\"\"", nil, true), ("max-age=\" 3600\"", nil, true),
            ("max-age=0x10", nil, true),
            // RFC 9111, section 4.2.1: "When there is more than one value present for a given directive …, either the first
            // occurrence should be used or the response should be considered stale."
            ("max-age=1, max-age=2", 1, true), ("max-age=2, max-age=1", 1, true), ("max-age=2, max-age=2", 2, false),
            // The arguments of other directives do not matter.
            ("foo=max-age, bar", nil, false), ("foo=\"max-age=3600\"", nil, false), ("foo=\"a, max-age=3600, b\"", nil, false),
            ("foo=\"a\\\", max-age=3600\"", nil, false), ("x-max-age=3600", nil, false), ("max-agex=3600", nil, false),
            // An unterminated quoted string might contain anything.
            ("foo=\"a, max-age=3600", 3600, true), ("max-age=3600, foo=\"", 3600, true),
            // Members that are not directives are skipped.
            ("=, max-age=1", 1, false), ("\"max-age=5\", max-age=1", 1, false), ("@#, max-age=1", 1, false), ("", nil, false),
        ]
        for (text, seconds, invalid) in rows {
            let found = control(text)
            #expect(found.maxAge == seconds, "\(text)")
            #expect(found.hasInvalidFreshness == invalid, "\(text)")
        }
    }

    @Test func `several lines of the field are combined`() {
        let both = control("max-age=1", "no-store")
        #expect(both.maxAge == 1 && both.noStore && !both.hasInvalidFreshness)
        #expect(control("max-age=1", "max-age=2").hasInvalidFreshness)
        // A quoted string ends with its line.
        #expect(control("foo=\"", "no-store").noStore)
    }

    @Test func `every directive is read`() {
        let all = control(
            "no-cache, no-store, no-transform, only-if-cached, must-revalidate, must-understand, public, private",
            "proxy-revalidate, immutable, s-maxage=1, max-stale=2, min-fresh=3, stale-while-revalidate=4, stale-if-error=5, community=\"UCI\""
        )
        #expect(all.noCache && all.noStore && all.noTransform && all.onlyIfCached && all.mustRevalidate && all.mustUnderstand)
        #expect(all.isPublic && all.isPrivate && all.proxyRevalidate && all.immutable && all.isPresent)
        #expect(all.sharedMaxAge == 1 && all.maxStale == 2 && all.minFresh == 3)
        #expect(all.staleWhileRevalidate == 4 && all.staleIfError == 5 && all.maxAge == nil && !all.hasInvalidFreshness)
        #expect(CacheControl(HeaderBlock()) == CacheControl(CachingRow.headers("Server: max-age=1")))
        // An unexpected argument does not disable a restrictive directive.
        let odd = control("no-store=1, no-cache;, must-revalidate=\"x\"")
        #expect(odd.noStore && odd.noCache && odd.mustRevalidate)
    }

    @Test func `no-cache may list field names`() {
        let rows: [(String, all: Bool, [String])] = [
            ("no-cache", true, []), ("no-cache=\"Set-Cookie\"", false, ["Set-Cookie"]),
            ("no-cache=\"a, b\"", false, ["a", "b"]), ("no-cache=\"a\", no-cache=\"b\"", false, ["a", "b"]),
            // RFC 9111, section 5.2.2.4: "This directive uses the quoted-string form of the argument syntax"; the token form is
            // accepted, too.
            ("no-cache=Set-Cookie", false, ["Set-Cookie"]),
            // An argument without valid field names means all fields.
            ("no-cache=\"\"", true, []), ("no-cache=", true, []), ("no-cache=\"a b\"", true, []), ("no-cache=\",\"", true, []),
            ("no-cache, no-cache=\"a\"", true, ["a"]), ("no-cache=\"a\"x", true, []), ("no-cache=\"a", true, []),
        ]
        for (text, all, fields) in rows {
            let found = control(text)
            #expect(found.noCache == all && found.noCacheFields == fields, "\(text)")
        }
    }

    @Test func `permissive directives are read strictly`() {
        let rows: [(String, stale: Int?, revalidate: Int?, error: Int?)] = [
            // RFC 9111, section 5.2.1.2: "If no value is assigned to max-stale, then the client will accept a stale response of
            // any age."
            ("max-stale", CacheControl.maximumSeconds, nil, nil), ("max-stale=5", 5, nil, nil), ("max-stale=x", nil, nil, nil),
            ("max-stale, max-stale=5", 5, nil, nil), ("max-stale=-1", nil, nil, nil), ("max-stale=", nil, nil, nil),
            ("stale-while-revalidate=60", nil, 60, nil), ("stale-while-revalidate", nil, 0, nil),
            ("stale-while-revalidate=60, stale-while-revalidate=9", nil, 9, nil), ("stale-while-revalidate=x", nil, 0, nil),
            ("stale-if-error=\"60\"", nil, nil, 60), ("stale-if-error=1e9", nil, nil, 0), ("stale-if-error", nil, nil, 0),
        ]
        for (text, stale, revalidate, error) in rows {
            let found = control(text)
            #expect(found.maxStale == stale && found.staleWhileRevalidate == revalidate && found.staleIfError == error, "\(text)")
        }
        let fresh = control("min-fresh=5, min-fresh=9")
        #expect(fresh.minFresh == 9 && fresh.hasInvalidFreshness)
    }

    @Test func `Pragma counts only in requests without Cache-Control`() {
        // RFC 7234, section 5.4: "caches MUST consider the no-cache request pragma-directive as having the same effect as if
        // "Cache-Control: no-cache" were present". RFC 9111 only deprecates it.
        let rows = [
            ("Pragma: no-cache", true), ("pragma: foo, NO-CACHE", true), ("Pragma: foo", false), ("Pragma: no-cachex", false),
            ("Pragma: no-cache\nCache-Control: max-age=5", false), ("Pragma: no-cache\nCache-Control: ", false),
        ]
        for (text, noCache) in rows { #expect(CacheControl(request: CachingRow.headers(text)).noCache == noCache, "\(text)") }
        #expect(!CacheControl(CachingRow.headers("Pragma: no-cache")).noCache)
    }

    @Test func `no field value traps`() {
        let pieces = [
            "max-age", "no-cache", "no-store", "=", "\"", "\\", ",", " ", "\t", "0", "99999999999", "-", ";", "\u{FF}",
            "max-stale", "a",
        ]
        for seed in 0..<2000 as Range<UInt64> {
            var random = SeededNumbers(seed: seed)
            let text = random.text(of: pieces, upTo: 24)
            let found = control(text)
            for value in [found.maxAge, found.maxStale, found.minFresh, found.staleIfError].compactMap({ $0 }) {
                #expect((0...CacheControl.maximumSeconds).contains(value), "seed \(seed): \(text)")
            }
        }
    }
}
