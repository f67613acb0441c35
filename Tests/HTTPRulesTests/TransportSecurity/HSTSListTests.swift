// SPDX-License-Identifier: Apache-2.0

import Foundation
import HTTPRules
import SeededNumbers
import Testing

@Suite struct HSTSListTests {
    /// A field, its sender, a URL, and whether the URL is upgraded, with the rule of RFC 6797.
    @Test(arguments: [
        ("max-age=10", "https://example.com/", "http://example.com/", true, "8.3: congruent"),
        ("max-age=10", "https://example.com/", "http://EXAMPLE.com:8080/x", true, "8.2: case-insensitive; any port"),
        ("max-age=10", "https://example.com/", "http://www.example.com/", false, "8.3: superdomain without includeSubDomains"),
        ("max-age=10;includeSubDomains", "https://example.com/", "http://a.www.example.com/", true, "8.2: superdomain match"),
        ("max-age=10;includeSubDomains", "https://example.com/", "http://notexample.com/", false, "8.2: label for label"),
        ("max-age=10;includeSubDomains", "https://www.example.com/", "http://example.com/", false, "8.2: not upwards"),
        ("max-age=10", "https://example.com/", "http://example.com./", true, "the root's dot names the same host"),
        ("max-age=10;includeSubDomains", "https://example.com./", "http://www.example.com/", true, "and when it is noted"),
        ("max-age=10", "https://example.com/", "http://example。com/", true, "an ideographic full stop is a dot"),
        ("max-age=10", "https://bücher.example/", "http://xn--bcher-kva.example/", true, "8.2: A-labels are compared"),
        ("max-age=10", "https://xn--bcher-kva.example/", "http://BÜCHER.example/", true, "whichever way round"),
        ("max-age=10", "http://example.com/", "http://example.com/", false, "8.1: ignored over non-secure transport"),
        ("max-age=10", "https://127.0.0.1/", "http://127.0.0.1/", false, "8.1.1: an IPv4 address is not noted"),
        ("max-age=10", "https://[::1]/", "http://[::1]/", false, "8.1.1: nor an IPv6 address"),
        ("max-age=10;includeSubDomains", "https://0.0.1/", "http://127.0.0.1/", false, "nor what looks like the end of one"),
        ("max-age=0", "https://example.com/", "http://example.com/", false, "6.1.1: zero is no pin"),
        ("bad", "https://example.com/", "http://example.com/", false, "6.1: does not conform"),
    ])
    func `a host is upgraded after it sent HSTS`(field: String, from: String, url: String, isUpgraded: Bool, why: String) throws {
        let origin = try #require(Origin(requiredURL(from)), "\(from)")
        let target = try #require(Origin(requiredURL(url)), "\(url)")
        var list = HSTSList()
        let changes = list.note(field, host: origin.host, isVerified: origin.isSecure, now: 100)
        #expect(list.requiresUpgrade(host: target.host, now: 100) == isUpgraded, "\(why)")
        var copy = HSTSList()
        copy.apply(changes)
        #expect(copy.entries == list.entries)
    }

    @Test func `an entry expires after its max-age`() {
        var list = HSTSList()
        #expect(
            list.note("max-age=10", host: "h.example", isVerified: true, now: 100)
                == [.set(host: "h.example", .init(expires: 110, includesSubdomains: false, created: 100))])
        #expect(list.requiresUpgrade(host: "h.example", now: 109.9))
        #expect(!list.requiresUpgrade(host: "h.example", now: 110))
        #expect(list.removeExpired(now: 110) == [.removed(host: "h.example")])
    }

    @Test func `each response renews the entry and keeps its creation time`() {
        var list = HSTSList()
        _ = list.note("max-age=10;includeSubDomains", host: "h.example", isVerified: true, now: 100)
        _ = list.note("max-age=10", host: "h.example", isVerified: true, now: 105)
        #expect(list.entries["h.example"] == .init(expires: 115, includesSubdomains: false, created: 100))
        #expect(list.note("max-age=10", host: "h.example", isVerified: true, now: 105) == [])
        _ = list.note("max-age=10", host: "h.example", isVerified: true, now: 200)
        #expect(list.entries["h.example"]?.created == 200)
    }

    @Test func `an unchanged field updates the entry once an hour at most`() {
        let now = 1_000 * 3_600.0
        let year = "max-age=31536000"
        var list = HSTSList()
        #expect(list.note(year, host: "h.example", isVerified: true, now: now).count == 1)
        for later in [1.0, 60, 3_599] {
            #expect(list.note(year, host: "h.example", isVerified: true, now: now + later) == [], "\(later)")
        }
        #expect(list.note(year, host: "h.example", isVerified: true, now: now + 3_600).count == 1)
        #expect(list.entries["h.example"]?.expires == now + 3_600 + 31_536_000)
        // A changed field updates the entry at once.
        #expect(list.note(year + ";includeSubDomains", host: "h.example", isVerified: true, now: now + 3_601).count == 1)
        #expect(list.note("max-age=864000", host: "h.example", isVerified: true, now: now + 3_602).count == 1)
        // A lifetime of less than a day is exact to the second.
        #expect(list.note("max-age=3600", host: "h.example", isVerified: true, now: now + 3_603).count == 1)
        #expect(list.note("max-age=3600", host: "h.example", isVerified: true, now: now + 3_604).count == 1)
    }

    @Test func `a max-age of zero removes only the entry of its host`() {
        var list = HSTSList()
        _ = list.note("max-age=10;includeSubDomains", host: "h.example", isVerified: true, now: 0)
        _ = list.note("max-age=10", host: "a.h.example", isVerified: true, now: 0)
        #expect(list.note("max-age=0", host: "a.h.example", isVerified: true, now: 1) == [.removed(host: "a.h.example")])
        // The entry of the parent domain still covers the host.
        #expect(list.requiresUpgrade(host: "a.h.example", now: 1))
        #expect(list.note("max-age=0", host: "h.example", isVerified: false, now: 1) == [])
        #expect(list.note("max-age=0", host: "h.example.", isVerified: true, now: 1) == [.removed(host: "h.example")])
        #expect(!list.requiresUpgrade(host: "a.h.example", now: 1))
        #expect(list.note("max-age=0", host: "h.example", isVerified: true, now: 1) == [])
    }

    @Test func `an entry without subdomains does not hide the entry of a parent domain`() {
        var list = HSTSList()
        _ = list.note("max-age=10;includeSubDomains", host: "example.com", isVerified: true, now: 0)
        _ = list.note("max-age=5", host: "a.example.com", isVerified: true, now: 0)
        #expect(list.requiresUpgrade(host: "b.a.example.com", now: 7))
    }

    @Test func `a huge max-age is limited`() {
        var list = HSTSList()
        _ = list.note("max-age=999999999999999999999999", host: "h.example", isVerified: true, now: 0)
        #expect(list.requiresUpgrade(host: "h.example", now: 2_000_000_000))
        #expect(list.entries["h.example"]?.expires == 2_147_483_648)
    }

    @Test func `entries created after a time can be removed`() {
        var list = HSTSList()
        for (host, now) in [("a.example", 1.0), ("b.example", 2), ("c.example", 3)] {
            _ = list.note("max-age=10", host: host, isVerified: true, now: now)
        }
        #expect(list.removeEntries(createdAfter: 1) == [.removed(host: "b.example"), .removed(host: "c.example")])
        #expect(list.removeAll() == [.removed(host: "a.example")])
        #expect(list.entries.isEmpty)
    }

    @Test func `a site can neither fill the list nor evict the entry of another site`() {
        var list = HSTSList()
        _ = list.note("max-age=1", host: "other.example", isVerified: true, now: 0)
        _ = list.note("max-age=5;includeSubDomains", host: "site.example", isVerified: true, now: 0)
        for number in 0..<HSTSList.maximumPerDomain + 50 {
            _ = list.note("max-age=\(1000 + number)", host: "h\(number).site.example", isVerified: true, now: 0)
        }
        #expect(list.entries.count == HSTSList.maximumPerDomain + 2)
        #expect(list.entries["other.example"] != nil && list.entries["site.example"] != nil)
        #expect(list.entries["h49.site.example"] == nil && list.entries["h50.site.example"] != nil)
    }

    @Test func `invalid hosts of a stored list are ignored`() {
        let entry = HSTSList.Entry(expires: 10, includesSubdomains: true, created: 0)
        let list = HSTSList([
            "a.example": entry, "B.example": entry, "c.example.": entry, "": entry, "1.2.3.4": entry, "d..example": entry,
            "e.example": .init(expires: .infinity, includesSubdomains: true, created: 0),
        ])
        #expect(list.entries == ["a.example": entry])
    }

    /// Compares with a model of the definition: a host is known if its own entry is valid, or if a parent's entry that includes
    /// subdomains is valid.
    @Test func `every history matches the definition`() {
        let hosts = ["a.test", "b.a.test", "c.b.a.test", "x.test", "a.test.", "1.2.3.4", "test"]
        for seed in 0..<300 {
            var random = SeededNumbers(seed: UInt64(seed))
            var list = HSTSList()
            var copy = HSTSList()
            var model: [[Substring]: (expires: Double, includes: Bool)] = [:]
            var history: [String] = []
            var now = 0.0
            for _ in 0..<30 {
                now += Double(Int.random(in: 0...3, using: &random))
                let host = hosts[Int.random(in: 0..<hosts.count, using: &random)]
                let age = Int.random(in: 0...12, using: &random)
                let includes = Bool.random(using: &random)
                let isVerified = Int.random(in: 0..<4, using: &random) > 0
                history.append("\(now): \(host) \(age) \(includes) \(isVerified)")
                let field = "max-age=\(age)" + (includes ? "; includeSubDomains" : "")
                copy.apply(list.note(field, host: host, isVerified: isVerified, now: now))
                if isVerified, host != "1.2.3.4" {
                    model[host.split(separator: ".")] = age == 0 ? nil : (now + Double(age), includes)
                }
                for host in hosts + ["z.c.b.a.test", "y.test"] where host != "1.2.3.4" {
                    let labels = host.split(separator: ".")
                    let expected = labels.indices.contains { index in
                        guard let entry = model[Array(labels[index...])] else { return false }
                        return entry.expires > now && (index == 0 || entry.includes)
                    }
                    #expect(list.requiresUpgrade(host: host, now: now) == expected, "seed \(seed), \(host): \(history)")
                }
                #expect(copy.entries == list.entries, "seed \(seed): \(history)")
                #expect(!list.requiresUpgrade(host: "1.2.3.4", now: now))
            }
        }
    }
}
