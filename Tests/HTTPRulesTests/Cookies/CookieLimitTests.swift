// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import HTTPRules

/// The limits, and the order of eviction of RFC 6265bis, section 5.7.
@Suite struct CookieLimitTests {
    @Test func `a response sets at most 50 cookies`() {
        var jar = CookieJar()
        let fields = ["\u{1}=x"] + (0..<60).map { "n\($0)=v" }
        #expect(jar.store(fields, from: CookieRequest(host: "a.com", isSecure: true), policy: .always, now: 1).count == 50)
        #expect(jar.all.map(\.name) == (0..<50).map { "n\($0)" })
    }

    @Test func `a full domain loses expired cookies, then insecure ones, then the least recently used`() {
        var jar = CookieJar()
        func add(_ name: String, secure: Bool, expires: Double? = nil, now: Double) -> [CookieJar.Change] {
            jar.set(Cookie(name: name, value: "", domain: "a.com", expires: expires, creation: now, isSecure: secure), now: now)
        }
        for number in 0..<CookieJar.maximumPerDomain - 3 { _ = add("s\(number)", secure: true, now: Double(number)) }
        _ = add("expired", secure: true, expires: 2000, now: 1000)
        _ = add("i1", secure: false, now: 1001)
        _ = add("i0", secure: false, now: 1002)
        _ = jar.header(for: CookieRequest(host: "a.com", isSecure: false), now: 1003)
        #expect(jar.count == 180)
        // Step 1: expired cookies.
        #expect(add("new0", secure: true, now: 3000).dropFirst() == [.removed(key("expired"))])
        // Step 2: cookies that are not secure; if their access times are equal, the older one.
        #expect(add("new1", secure: true, now: 3001).dropFirst() == [.removed(key("i1"))])
        #expect(add("new2", secure: true, now: 3002).dropFirst() == [.removed(key("i0"))])
        // Step 3: the others, with "the earliest last-access-time first".
        #expect(add("new3", secure: true, now: 3003).dropFirst() == [.removed(key("s0"))])
        #expect(jar.count == 180)
    }

    private func key(_ name: String, domain: String = "a.com") -> Cookie.Key {
        Cookie.Key(name: name, domain: domain, path: "/", isHostOnly: true)
    }

    @Test func `a full jar loses the least recently used cookie`() {
        var jar = CookieJar()
        for number in 0..<CookieJar.maximumCount {
            let isExpiring = number == 7
            let cookie = Cookie(
                name: "a",
                value: "\(number)",
                domain: "h\(number % 100).com",
                path: "/\(number / 100)",
                expires: isExpiring ? 9000 : nil,
                creation: Double(number),
                isSecure: number < 10
            )
            #expect(jar.set(cookie, now: Double(number)).count == 1)
        }
        // The first cookie was just used, so the next one is removed.
        _ = jar.header(for: CookieRequest(host: "h0.com", path: "/0", isSecure: true), now: 8000)
        func add(_ number: Int, now: Double) -> [CookieJar.Change] {
            Array(jar.set(Cookie(name: "new", value: "", domain: "n\(number).com", creation: now), now: now).dropFirst())
        }
        func stale(_ number: Int) -> [CookieJar.Change] {
            [.removed(Cookie.Key(name: "a", domain: "h\(number).com", path: "/0", isHostOnly: true))]
        }
        #expect(add(0, now: 8001) == stale(1))
        #expect(add(1, now: 9000) == stale(7))
        #expect(add(2, now: 9001) == stale(2))
        #expect(jar.count == CookieJar.maximumCount)
    }

    @Test func `a jar made of too many cookies keeps the most recent valid ones`() {
        let many = (0..<4000).map { Cookie(name: "a", value: "", domain: "h\($0).com", creation: Double($0)) }
        #expect(CookieJar(many).all == Array(many.suffix(3000)))
        let one = (0..<400).map { Cookie(name: "a\($0)", value: "", domain: "h.com", creation: Double($0)) }
        #expect(CookieJar(one).all == Array(one.suffix(180)))
        let bad = [
            Cookie(name: "a", value: "", domain: "com", isHostOnly: false), Cookie(name: "a\r", value: "", domain: "h.com"),
            Cookie(name: "a", value: "", domain: ""), Cookie(name: "a", value: "", domain: "h.com", expires: .nan),
        ]
        #expect(CookieJar(bad).count == 0)
        // If a domain has become a public suffix, its host-only cookies remain.
        #expect(CookieJar(bad + [Cookie(name: "a", value: "", domain: "com")]).count == 1)
    }

    @Test func `cookies are removed by key, by age, or all at once`() {
        let cookies = (0..<10).map { Cookie(name: "a\($0)", value: "", domain: "h\($0 % 3).com", creation: Double($0)) }
        var jar = CookieJar(cookies)
        #expect(jar.remove(cookies[4].key) == [.removed(cookies[4].key)] && jar.remove(cookies[4].key).isEmpty)
        #expect(Set(jar.removeCookies(createdAfter: 6)) == Set(cookies[7...].map { .removed($0.key) }))
        #expect(jar.all == Array(cookies[..<4] + cookies[5...6]))
        #expect(jar.removeAll().count == 6 && jar.count == 0 && jar.all.isEmpty)
        jar.apply([.set(cookies[1]), .set(cookies[2]), .removed(cookies[1].key), .removed(cookies[9].key)])
        #expect(jar.all == [cookies[2]])
    }
}
