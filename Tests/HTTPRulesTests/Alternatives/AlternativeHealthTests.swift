// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import Testing

@Suite struct AlternativeHealthTests {
    private let origin = Origin(scheme: "https", host: "a.test", port: 443)

    private func end(_ health: AlternativeHealth, _ now: Double, host: String = "a.test", port: Int = 443) -> Double? {
        health.pauseEnd(host, port, of: origin, now: now)
    }

    @Test func `each failure doubles the pause, from five minutes to two days`() {
        var health = AlternativeHealth()
        var now = 1_000.0
        for pause in [300, 600, 1_200, 2_400, 4_800, 9_600, 19_200, 38_400, 76_800, 153_600, 172_800, 172_800] as [Double] {
            #expect(end(health, now) == nil)
            health.failed("a.test", 443, of: origin, now: now)
            #expect(end(health, now) == now + pause)
            #expect(end(health, now + pause - 0.5) == now + pause)
            now += pause
        }
    }

    @Test func `failures of attempts that began earlier do not count`() {
        var health = AlternativeHealth()
        health.failed("a.test", 443, of: origin, now: 0)
        health.failed("a.test", 443, of: origin, now: 299)
        #expect(end(health, 299) == 300)
        health.failed("a.test", 443, of: origin, now: 300)
        #expect(end(health, 300) == 900)
    }

    @Test func `a success and a new network clear the marks`() {
        var health = AlternativeHealth()
        health.succeeded("a.test", 443, of: origin)
        health.failed("a.test", 443, of: origin, now: 0)
        health.succeeded("a.test", 443, of: origin)
        #expect(end(health, 0) == nil)
        health.failed("a.test", 443, of: origin, now: 1)
        #expect(end(health, 1) == 301)
        health.removeAll()
        #expect(end(health, 1) == nil)
    }

    @Test func `a mark is for one host and port of one origin`() {
        var health = AlternativeHealth()
        health.failed("a.test", 443, of: Origin(scheme: "https", host: "b.test", port: 443), now: 0)
        #expect(end(health, 1) == nil)
        health.failed("a.test", 444, of: origin, now: 0)
        health.failed("b.test", 443, of: origin, now: 0)
        #expect(end(health, 1) == nil)
        #expect(end(health, 1, port: 444) == 300 && end(health, 1, host: "b.test") == 300)
    }

    @Test func `the mark that ends first makes room`() {
        var health = AlternativeHealth()
        // The mark of port 1 ends last.
        health.failed("a.test", 1, of: origin, now: 0)
        health.failed("a.test", 1, of: origin, now: 300)
        let count = AlternativeHealth.maximumCount
        for port in 2...count + 2 { health.failed("a.test", port, of: origin, now: Double(port) / 10) }
        #expect((1...count + 2).filter { end(health, 250, port: $0) != nil } == [1] + Array(4...count + 2))
    }
}

@Suite struct AssumedOriginsTests {
    @Test func `the number of origins is limited, and the first make room`() {
        var assumed = AssumedOrigins()
        let origins = (0..<AssumedOrigins.maximumCount * 2 + 1).map { Origin(scheme: "https", host: "h\($0).test", port: 443) }
        for origin in origins {
            assumed.note(origin)
            assumed.note(origin)
        }
        #expect(origins.firstIndex(where: assumed.contains) == AssumedOrigins.maximumCount + 1)
        #expect(origins.count(where: assumed.contains) == AssumedOrigins.maximumCount)
        assumed.removeAll()
        #expect(!origins.contains(where: assumed.contains))
        assumed.note(Origin(scheme: "http", host: "a.test", port: 80))
        #expect(!assumed.contains(Origin(scheme: "http", host: "a.test", port: 80)))
    }
}
