// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import HTTPWire
import Testing

@Suite struct HTTP3ChoiceTests {
    /// What is known about `https://a.test`, and what follows.
    struct Row: Sendable, CustomTestStringConvertible {
        let testDescription: String
        var origin = Origin(scheme: "https", host: "a.test", port: 443)
        var field = ""
        var isAssumed = false
        var recorded: [HTTP3Endpoint] = []
        var broken: [(String, Int)] = []
        var endpoints: [String] = []
        var obstacles: [HTTP3Obstacle] = []
    }

    private static func record(_ host: String, _ port: Int = 443, _ addresses: [String] = []) -> HTTP3Endpoint {
        HTTP3Endpoint(host: host, port: port, source: .httpsRecord, addresses: addresses)
    }

    private static let rows = [
        Row("nothing is known", obstacles: [.unannounced]),
        Row("the app's assumption", isAssumed: true, endpoints: ["assumption a.test:443"]),
        Row("the origin's own host", field: "h3=\":443\"", endpoints: ["alternativeService a.test:443"]),
        Row("another host and port", field: "h3=\"b.test:444\"", endpoints: ["alternativeService b.test:444"]),
        Row(
            "the server's order", field: "h3=\"b.test:444\", h3=\":443\"",
            endpoints: ["alternativeService b.test:444", "alternativeService a.test:443"]),
        Row(
            "drafts and other protocols", field: "h3-29=\":443\", h2=\":443\", h3=\":443\", hq=\":1\"",
            endpoints: ["alternativeService a.test:443"],
            obstacles: [.otherProtocol("h3-29"), .otherProtocol("h2"), .otherProtocol("hq")]),
        Row(
            "several fields of one draft", field: "h3-29=\":443\", h3-29=\":444\"", obstacles: [.otherProtocol("h3-29")]),
        Row(
            "a port that any user may open", field: "h3=\":1024\", h3=\":1023\"",
            endpoints: ["alternativeService a.test:1023"], obstacles: [.unprivilegedPort(1_024)]),
        Row(
            "a port that any user may open, for an origin on such a port",
            origin: Origin(scheme: "https", host: "a.test", port: 8_443), field: "h3=\":1024\"",
            endpoints: ["alternativeService a.test:1024"]),
        Row(
            "a private address", field: "h3=\"10.0.0.1:443\", h3=\"192.0.2.1:443\"",
            endpoints: ["alternativeService 192.0.2.1:443"], obstacles: [.privateAddress("10.0.0.1")]),
        Row(
            "the private address of the origin itself", origin: Origin(scheme: "https", host: "10.0.0.1", port: 443),
            field: "h3=\"10.0.0.1:444\"", endpoints: ["alternativeService 10.0.0.1:444"]),
        Row(
            "a record, with its addresses", recorded: [record("a.test", 443, ["192.0.2.7"])],
            endpoints: ["httpsRecord a.test:443 192.0.2.7"]),
        Row(
            "all three, for different endpoints", field: "h3=\"c.test:443\"", isAssumed: true, recorded: [record("b.test")],
            endpoints: ["httpsRecord b.test:443", "assumption a.test:443", "alternativeService c.test:443"]),
        Row(
            "all three, for one endpoint", field: "h3=\":443\"", isAssumed: true,
            recorded: [record("a.test", 443, ["192.0.2.7"])],
            endpoints: ["alternativeService a.test:443 192.0.2.7"]),
        Row(
            "a record and an assumption, for one endpoint", isAssumed: true, recorded: [record("a.test")],
            endpoints: ["httpsRecord a.test:443"]),
        Row(
            "a broken endpoint", field: "h3=\":443\"", isAssumed: true, broken: [("a.test", 443)],
            obstacles: [.broken(host: "a.test", port: 443, until: 300)]),
        Row(
            "a broken endpoint beside another", field: "h3=\":443\", h3=\":444\"", broken: [("a.test", 443)],
            endpoints: ["alternativeService a.test:444"], obstacles: [.broken(host: "a.test", port: 443, until: 300)]),
        Row(
            "many endpoints", field: (1...8).map { "h3=\":\($0)\"" }.joined(separator: ","),
            endpoints: (1...4).map { "alternativeService a.test:\($0)" }),
        Row(
            "cleartext", origin: Origin(scheme: "http", host: "a.test", port: 80), isAssumed: true,
            recorded: [record("a.test")], obstacles: [.cleartext]),
    ]

    @Test(arguments: rows) func `endpoints are chosen`(row: Row) {
        var services = AlternativeServices()
        services.note(HeaderBlock([("Alt-Svc", row.field)]), origin: row.origin, isVerified: true, now: 0)
        var health = AlternativeHealth()
        for (host, port) in row.broken { health.failed(host, port, of: row.origin, now: 0) }
        let choice = HTTP3Choice(
            of: row.origin, announced: services.services(of: row.origin, now: 1), isAssumed: row.isAssumed,
            recorded: row.recorded, health: health, now: 1, allows: { !$0.hasPrefix("10.") })
        let texts = choice.endpoints.map { "\($0.source) \($0.host):\($0.port)" + $0.addresses.map { " " + $0 }.joined() }
        #expect(texts == row.endpoints)
        #expect(choice.obstacles == row.obstacles)
    }
}

extension HTTP3ChoiceTests.Row {
    init(
        _ description: String, origin: Origin = Origin(scheme: "https", host: "a.test", port: 443), field: String = "",
        isAssumed: Bool = false, recorded: [HTTP3Endpoint] = [], broken: [(String, Int)] = [], endpoints: [String] = [],
        obstacles: [HTTP3Obstacle] = []
    ) {
        testDescription = description
        self.origin = origin
        self.field = field
        self.isAssumed = isAssumed
        self.recorded = recorded
        self.broken = broken
        self.endpoints = endpoints
        self.obstacles = obstacles
    }
}
