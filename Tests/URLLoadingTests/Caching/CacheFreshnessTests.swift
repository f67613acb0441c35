// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Which stored responses a session reuses without asking the server (RFC 9111, sections 3 to 5).
///
/// The tests treat the cache as a black box: they load the same URL twice, and the server counts the requests.
@Suite(.timeLimit(.minutes(1)), .everyVersion)
struct CacheFreshnessTests {
    struct Row: Sendable, CustomStringConvertible {
        var fields: [(String, String)]
        var status: Int
        var isUsed: Bool
        var description: String { "\(status) " + fields.map { "\($0.0): \($0.1)" }.joined(separator: ", ") }

        init(_ isUsed: Bool, _ fields: (String, String)..., status: Int = 200) {
            self.fields = fields
            self.status = status
            self.isUsed = isUsed
        }

        init(_ isUsed: Bool, _ directives: String) { self.init(isUsed, ("Cache-Control", directives)) }
    }

    private func check(_ rows: [Row], _ wishes: [String: String] = [:]) async throws {
        try await withCachedScenario(
            reply: { request in
                let row = rows[Int(request.path.dropFirst()) ?? 0]
                let body = row.status == 204 ? "" : "\(request.order)"
                let fields = row.fields + [("X-Order", "\(request.order)")]
                return row.status == 204 ? .bare(204, fields) : .status(row.status, fields, body: body)
            }
        ) { (server, session, _) async throws in
            for (index, row) in rows.enumerated() {
                let request = URLRequest(server.url("/\(index)"))
                let first = try await session.text(request)
                let second = try await session.text(URLRequest(server.url("/\(index)"), headers: wishes))
                let isUsed =
                    first.response.value(forHTTPHeaderField: "X-Order") == second.response.value(forHTTPHeaderField: "X-Order")
                #expect(isUsed == row.isUsed, "\(row)")
                #expect(second.response.statusCode == row.status && (!isUsed || first.text == second.text), "\(row)")
            }
        }
    }

    @Test func `reuse depends on Cache-Control`() async throws {
        try await check([
            Row(false), Row(true, "max-age=600"), Row(true, "MaX-aGe=600"), Row(false, "max-age=0"),
            // Section 1.2.2: "MUST consider the value to be 2147483648".
            Row(true, "max-age=2147483647"), Row(true, "max-age=2147483648"), Row(true, "max-age=2147483649"),
            Row(true, "max-age=99999999999"), Row(true, "max-age=99999999999999999999999"), Row(true, "max-age=000600"),
            // Section 5.2: "both token and quoted-string syntax".
            Row(true, "max-age=\"600\""), Row(false, "max-age='600'"), Row(false, "max-age=\"600"),
            Row(false, "extension=\"max-age=600\", max-age=0"), Row(false, "max-age=0, extension=\"max-age=600\""),
            Row(true, "extension=\"no-store, no-cache\", max-age=600"), Row(true, "foobar, max-age=600"),
            Row(true, "max-age=600, foo=bar"), Row(true, ",, max-age=600 ,"), Row(true, "\tmax-age=600\t,public"),
            // Section 4.2.1: "encouraged to consider responses that have invalid freshness information … to be stale".
            Row(false, "max-age"), Row(false, "max-age="), Row(false, "max-age=-600"), Row(false, "max-age=600.0"),
            Row(false, "max-age=6e2"), Row(false, "max-age=a600"), Row(false, "max-age=600a"), Row(false, "max-age =600"),
            Row(false, "max-age= 600"), Row(false, "max-age=600, max-age=0"), Row(false, "max-age=0, max-age=600"),
            Row(true, "max-age=600, max-age=600"), Row(false, ("Cache-Control", "max-age=600"), ("Cache-Control", "max-age=0")),
            // These fields apply only to shared caches.
            Row(false, "s-maxage=600"), Row(false, "s-maxage=600, max-age=0"), Row(true, "max-age=600, s-maxage=0"),
            Row(false, ("Cache-Control", "s-maxage=600"), ("Cache-Control", "max-age=0")), Row(true, "private, max-age=600"),
            Row(true, "private=\"x-a\", max-age=600"), Row(true, "max-age=600, proxy-revalidate"),
            Row(true, ("Cache-Control", "max-age=600"), ("CDN-Cache-Control", "no-store")),
            Row(false, ("CDN-Cache-Control", "max-age=600")), Row(false, ("Surrogate-Control", "max-age=600")),
            // Directives that prevent reuse.
            Row(false, "no-store"), Row(false, "No-StOrE, max-age=600"), Row(false, "no-cache, max-age=600"),
            Row(false, "max-age=600, No-CaChE"), Row(false, "no-cache=\"\", max-age=600"),
            Row(true, "no-cache=\"x-a\", max-age=600"),
            Row(false, ("Cache-Control", "no-store"), ("Cache-Control", "max-age=600")),
            Row(true, "must-revalidate, max-age=600"),
            // Section 5.2.2.3: "SHOULD ignore the no-store directive".
            Row(true, "no-store, must-understand, max-age=600"), Row(true, "immutable, max-age=600"), Row(false, "immutable"),
            // Section 5.4: Pragma has a meaning only in requests.
            Row(true, ("Cache-Control", "max-age=600"), ("Pragma", "no-cache")),
            Row(true, ("Cache-Control", "max-age=600"), ("Set-Cookie", "a=b")),
            Row(true, ("Cache-Control", "max-age=600"), ("Content-Disposition", "attachment; filename=x")),
        ])
    }

    @Test func `reuse depends on Expires and Date`() async throws {
        let now = httpDate(0)
        func expires(_ isUsed: Bool, _ value: String, date: String? = nil) -> Row {
            Row(isUsed, ("Expires", value), ("Date", date ?? now))
        }
        try await check([
            expires(true, httpDate(600)), expires(false, httpDate(-600)), expires(false, now),
            expires(false, httpDate(300), date: httpDate(400)), expires(true, httpDate(500), date: httpDate(400)),
            // RFC 9110, section 6.6.1: without a valid Date, the time of receipt counts.
            Row(true, ("Expires", httpDate(600))), expires(true, httpDate(600), date: "foo"),
            expires(false, httpDate(-1), date: "foo"),
            // RFC 9111, section 5.3: "MUST ignore the Expires header field".
            Row(true, ("Cache-Control", "max-age=600"), ("Expires", httpDate(-7200)), ("Date", now)),
            Row(true, ("Cache-Control", "max-age=600"), ("Expires", "0"), ("Date", now)),
            Row(false, ("Cache-Control", "max-age=0"), ("Expires", httpDate(600)), ("Date", now)),
            // The three date formats; upper and lower case are equivalent (section 4.2).
            expires(true, "Thu, 18 Aug 2050 02:01:18 GMT"), expires(true, "Thursday, 18-Aug-50 02:01:18 GMT"),
            expires(true, "Thu Aug 18 02:01:18 2050"), expires(true, "Thu Aug  8 02:01:18 2050"),
            expires(true, "THU, 18 Aug 2050 02:01:18 GMT"), expires(true, "Thu, 18 AUG 2050 02:01:18 GMT"),
            expires(true, "Thu, 18 Aug 2050 02:01:18 gMT"), expires(true, "Tue, 19 Jan 2038 14:14:08 GMT"),
            expires(true, "Sun, 21 Nov 2286 04:46:39 GMT"),
            // Anything else is "a time in the past".
            expires(false, "0"), expires(false, "-1"), expires(false, ""), expires(false, "Thu, 18 Aug 2050 02:01:18 UTC"),
            expires(false, "Thu, 18 Aug 2050 02:01:18 AEST"), expires(false, "Thu, 18 Aug 2050 02:01:18"),
            expires(false, "Thu, 18 Aug 50 02:01:18 GMT"), expires(false, "Thu 18 Aug 2050 02:01:18 GMT"),
            expires(false, "Thu, 18  Aug  2050 02:01:18 GMT"), expires(false, "Thu, 18-Aug-2050 02:01:18 GMT"),
            expires(false, "Thu, 18 Aug 2050 02.01.18 GMT"), expires(false, "Thu, 18 Aug 2050 2:01:18 GMT"),
            Row(
                false, ("Expires", "Thu, 18 Aug 2050 02:01:18 GMT"), ("Expires", "Thu, 18 Aug 2050 02:01:19 GMT"), ("Date", now)),
        ])
    }

    @Test func `reuse depends on Age`() async throws {
        func age(_ isUsed: Bool, _ values: String..., lifetime: Int = 3600) -> Row {
            var row = Row(isUsed, ("Cache-Control", "max-age=\(lifetime)"), ("Date", httpDate(0)))
            row.fields += values.map { ("Age", $0) }
            return row
        }
        try await check([
            age(true, "0"), age(true, "3000"), age(false, "3600"), age(false, "7200"), age(false, "2147483647"),
            age(false, "2147483648"), age(false, "99999999999999999999"),
            // Section 5.1: "SHOULD use the first member"; "SHOULD ignore the field".
            age(false, "7200, 0"), age(true, "0, 7200"), age(false, "7200", "0"), age(true, "0", "7200"), age(true, "0", "0"),
            age(true, "abc"), age(true, "-7200"), age(true, "7200.0"),
            // Section 4.2.3: "apparent_age = max(0, response_time - date_value)".
            Row(false, ("Cache-Control", "max-age=3600"), ("Date", httpDate(-7200))),
            Row(true, ("Cache-Control", "max-age=3600"), ("Date", httpDate(7200))),
            Row(false, ("Date", httpDate(-10)), ("Expires", httpDate(10)), ("Age", "25")),
            Row(false, ("Date", httpDate(10)), ("Expires", httpDate(20)), ("Age", "15")),
        ])
    }

    @Test func `reuse depends on Last-Modified and the status`() async throws {
        let changed = ("Last-Modified", httpDate(-86_400))
        try await check([
            Row(true, changed, ("Date", httpDate(0))), Row(true, changed, status: 203), Row(true, changed, status: 204),
            // "Status codes that are defined as heuristically cacheable" (RFC 9110, section 15.1), and other status codes with
            // `public` (RFC 9111, section 5.2.2.9).
            Row(false, changed, status: 201), Row(false, changed, status: 202), Row(false, changed, status: 299),
            Row(true, changed, ("Cache-Control", "public"), status: 201),
            Row(false, changed, ("Expires", "0")), Row(false, changed, ("Cache-Control", "no-cache")),
            Row(false, ("Last-Modified", httpDate(600))), Row(false, ("Last-Modified", "yesterday")),
            Row(false, ("ETag", "\"v\"")),
            Row(true, changed, status: 404), Row(true, changed, status: 501), Row(false, changed, status: 500),
            Row(true, ("ETag", "\"v\""), status: 410), Row(false, ("ETag", "\"v\""), status: 404),
            // Responses with explicit freshness, for several final status codes.
            Row(true, ("Cache-Control", "max-age=600"), status: 203), Row(true, ("Cache-Control", "max-age=600"), status: 204),
            Row(true, ("Cache-Control", "max-age=600"), status: 299), Row(false, ("Expires", httpDate(-600)), status: 299),
            Row(true, ("Cache-Control", "max-age=600"), status: 400), Row(true, ("Cache-Control", "max-age=600"), status: 404),
            Row(true, ("Cache-Control", "max-age=600"), status: 410), Row(true, ("Cache-Control", "max-age=600"), status: 503),
            Row(true, ("Cache-Control", "max-age=600"), status: 302), Row(false, ("Cache-Control", "max-age=600"), status: 416),
            // Section 5.2.2.3: must-understand prevents storing if the status is unknown.
            Row(false, ("Cache-Control", "max-age=600, no-store, must-understand"), status: 299),
        ])
    }

    @Test func `a response whose Vary contains a star is not reused`() async throws {
        let fresh = ("Cache-Control", "max-age=600")
        try await check(
            [
                Row(false, fresh, ("Vary", "*")), Row(false, fresh, ("Vary", "*, *")),
                Row(false, fresh, ("Vary", "*"), ("Vary", "*")),
                Row(false, fresh, ("Vary", ", *")), Row(false, fresh, ("Vary", ""), ("Vary", "*")),
                Row(false, fresh, ("Vary", "*, Foo")), Row(false, fresh, ("Vary", "Foo, *")), Row(true, fresh, ("Vary", "Foo")),
                Row(true, fresh, ("Vary", "")), Row(false, fresh, ("Vary", "Bar")), Row(false, fresh, ("Vary", "Foo,bAr")),
            ], ["Bar": "1"])
    }

    @Test func `only insignificant differences between fields named by Vary are ignored`() async throws {
        struct Pair { var name: String, first: String?, second: String?, isSame: Bool }
        let pairs = [
            Pair(name: "Foo", first: "1", second: "1", isSame: true), Pair(name: "Foo", first: "1", second: "2", isSame: false),
            // "If … a header field is absent from a request, it can only match another request if it is also absent there."
            Pair(name: "Foo", first: "1", second: nil, isSame: false), Pair(name: "Foo", first: nil, second: "1", isSame: false),
            Pair(name: "Foo", first: nil, second: nil, isSame: true),
            // "adding or removing whitespace, where allowed in the header field's syntax".
            Pair(name: "Foo", first: "1,2", second: "1, 2", isSame: true),
            Pair(name: "Foo", first: "a", second: "A", isSame: false),
            Pair(name: "Accept-Language", first: "en, de", second: "en ,   de", isSame: true),
            Pair(name: "Accept-Language", first: "en, de", second: "eN, De", isSame: true),
            Pair(name: "Accept-Language", first: "en", second: "de", isSame: false),
        ]
        try await withCachedScenario(
            reply: { .ok("\($0.order)", Fields.fresh + [("Vary", "foo, ACCEPT-language")]) }
        ) { (server, session, _) async throws in
            for (index, pair) in pairs.enumerated() {
                func load(_ value: String?) async throws -> String {
                    let fields = value.map { [pair.name: $0] } ?? [:]
                    return try await session.text(URLRequest(server.url("/\(index)"), headers: fields)).text
                }
                let first = try await load(pair.first)
                #expect(try await (load(pair.second) == first) == pair.isSame, "\(pair)")
                // Each variant is kept, and serves its own requests.
                #expect(try await load(pair.first) == first, "\(pair)")
            }
        }
    }
}
