// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import HTTPWire
import SeededNumbers
import Testing

@Suite struct AlternativeServicesTests {
    private let origin = Origin(scheme: "https", host: "a.test", port: 443)

    private func fields(_ value: String, _ more: (String, String)...) -> HeaderBlock { HeaderBlock([("Alt-Svc", value)] + more) }

    private func ports(_ store: AlternativeServices, _ origin: Origin? = nil, at now: Double = 0) -> [Int] {
        store.services(of: origin ?? self.origin, now: now).map(\.port)
    }

    private func noted(_ fields: HeaderBlock...) -> AlternativeServices {
        var store = AlternativeServices()
        for field in fields { store.note(field, origin: origin, isVerified: true, now: 0) }
        return store
    }

    @Test func `alternatives are fresh for the time that the origin states, or for a day if it states none`() {
        let store = noted(fields("h3=\":1\"; ma=10, h2=\":2\""))
        #expect(ports(store, at: 9.9) == [1, 2])
        #expect(ports(store, at: 10) == [2])
        #expect(ports(store, at: 86_399) == [2])
        #expect(ports(store, at: 86_400) == [])
    }

    @Test func `the age of the response is subtracted`() {
        // The example of RFC 7838, section 3.1.
        let store = noted(fields("h2=\":443\"; ma=3600", ("Age", "30")))
        #expect(ports(store, at: 3_569) == [443])
        #expect(ports(store, at: 3_570) == [])
        #expect(ports(noted(fields("h2=\":1\"; ma=30", ("Age", "30")))) == [])
        #expect(ports(noted(fields("h2=\":1\"; ma=30", ("Age", "x"))), at: 29) == [1])
    }

    @Test func `no alternative is kept for more than thirty days`() {
        let store = noted(fields("h2=\":1\"; ma=99999999999"))
        #expect(ports(store, at: 2_591_999) == [1])
        #expect(ports(store, at: 2_592_000) == [])
        #expect(ports(noted(fields("h2=\":1\"; ma=5184000", ("Age", "3456000"))), at: 1_727_999) == [1])
    }

    @Test func `each field replaces the earlier alternatives`() {
        #expect(ports(noted(fields("h3=\":1\""), fields("h2=\":2\""))) == [2])
        #expect(ports(noted(fields("h3=\":1\""), fields("clear"))) == [])
        #expect(ports(noted(fields("h3=\":1\""), fields("h2=\":2\"; ma=0"))) == [])
        // A field that does not conform changes nothing; several fields count as one.
        #expect(ports(noted(fields("h3=\":1\""), fields("h2=\":x\""))) == [1])
        #expect(ports(noted(fields("h3=\":1\"", ("alt-svc", "h2=\":2\"")))) == [1, 2])
        #expect(ports(noted(HeaderBlock([("Age", "1")]))) == [])
    }

    @Test func `an origin is identified by scheme, host and port`() {
        let store = noted(fields("h3=\":1\""))
        #expect(ports(store, Origin(scheme: "https", host: "a.test", port: 444)) == [])
        #expect(ports(store, Origin(scheme: "https", host: "b.a.test", port: 443)) == [])
        #expect(ports(store, Origin(scheme: "http", host: "a.test", port: 443)) == [])
    }

    @Test func `alternatives are accepted only from a server with a valid certificate`() {
        var store = AlternativeServices()
        let clear = Origin(scheme: "http", host: "a.test", port: 80)
        store.note(fields("h3=\":1\""), origin: clear, isVerified: true, now: 0)
        store.note(fields("h3=\":1\""), origin: origin, isVerified: false, now: 0)
        #expect(ports(store, clear) == [])
        #expect(ports(store) == [])
        store.note(fields("h3=\":1\""), origin: origin, isVerified: true, now: 0)
        store.note(fields("clear"), origin: origin, isVerified: false, now: 0)
        #expect(ports(store) == [1])
    }

    @Test func `only persistent alternatives are kept when the network changes`() {
        var store = noted(fields("h3=\":1\"; persist=1, h2=\":2\""))
        let other = Origin(scheme: "https", host: "b.test", port: 443)
        store.note(fields("h3=\":3\""), origin: other, isVerified: true, now: 0)
        store.networkChanged()
        #expect(ports(store) == [1])
        #expect(ports(store, other) == [])
        store.removeAll()
        #expect(ports(store) == [])
    }

    @Test func `the numbers of alternatives and origins are limited`() {
        #expect(ports(noted(fields((1...100).map { "h2=\":\($0)\"" }.joined(separator: ",")))) == Array(1...8))
        #expect(ports(noted(fields("h2=\":1\", h2=\":1\"; ma=5, h2=\":2\""))) == [1, 2])
        var store = AlternativeServices()
        let origins = (0..<3_000).map { Origin(scheme: "https", host: "h\($0).test", port: 443) }
        for (number, origin) in origins.enumerated() {
            // Each later origin expires earlier than its predecessor.
            store.note(fields("h3=\":1\"; ma=\(10_000 - number)"), origin: origin, isVerified: true, now: 0)
        }
        #expect(origins.count { ports(store, $0) == [1] } == AlternativeServices.maximumOriginCount)
        #expect(ports(store, origins[0]) == [1])
        #expect(ports(store, origins[2_999]) == [1])
        // Expired entries make room for new ones.
        store.note(fields("h3=\":1\""), origin: origin, isVerified: true, now: 20_000)
        #expect(ports(store, at: 20_000) == [1])
        #expect(origins.allSatisfy { ports(store, $0) == [] })
    }
}
