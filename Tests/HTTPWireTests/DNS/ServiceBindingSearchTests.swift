// SPDX-License-Identifier: Apache-2.0

import HTTPWire
import SeededNumbers
import Testing

/// What HTTPS records say about HTTP/3, and which names are asked for them.
@Suite struct `Searches for HTTPS records` {
    private typealias Parameters = [(key: Int, value: [UInt8])]

    private static let h3: Parameters = [(1, DNSBytes.protocols("h3"))]

    /// Answers the questions of a search from a zone; returns the questions and the outcome.
    private func search(
        _ host: String, _ zone: [String: [[UInt8]]], port: Int = 443, seed: UInt64 = 1, seconds: [String: Int] = [:]
    ) throws -> (questions: [String], outcome: ServiceBindingSearch.Outcome) {
        var search = try #require(ServiceBindingSearch(host: host, port: port))
        var numbers = SeededNumbers(seed: seed)
        var questions: [String] = []
        while true {
            let name = try #require(search.question.host)
            questions.append(name)
            let records = (zone[name] ?? []).map { DNSBytes.Record(seconds: seconds[name] ?? 300, data: $0) }
            let answer = try ServiceBindings(DNSBytes.message(name, records), for: search.question)
            switch search.take(answer, using: &numbers) {
            case .ask(let next): #expect(next == search.question)
            case .end(let outcome): return (questions, outcome)
            }
        }
    }

    @Test(
        arguments: [
            ("no records", [], []), ("the host itself", [DNSBytes.binding(1, "", h3)], ["a.test:443"]),
            ("7.1: without alpn, only the default", [DNSBytes.binding(1, "")], []),
            ("without h3", [DNSBytes.binding(1, "", [(1, DNSBytes.protocols("h2", "h3-29", "H3"))])], []),
            (
                "7.1: h3 alone", [DNSBytes.binding(1, "", [(1, DNSBytes.protocols("h3")), (2, [])])], ["a.test:443"]
            ),
            ("another host", [DNSBytes.binding(1, "b.test", h3)], ["b.test:443"]),
            ("7.2: another port", [DNSBytes.binding(1, "", h3 + [(3, [1, 0])])], ["a.test:256"]),
            ("no port", [DNSBytes.binding(1, "", h3 + [(3, [0, 0])])], []),
            (
                "2.4.1: by priority",
                [DNSBytes.binding(9, "c.test", h3), DNSBytes.binding(1, "b.test"), DNSBytes.binding(2, "a.test", h3)],
                ["a.test:443", "c.test:443"]
            ),
            (
                "8: an unknown mandatory key",
                [DNSBytes.binding(1, "b.test", [(0, [0, 99])] + h3 + [(99, [])]), DNSBytes.binding(2, "", h3)], ["a.test:443"]
            ),
            ("a name that is not of a host", [[0, 1, 1, 0x2E, 0] + [0, 1, 0, 3, 2, 0x68, 0x33]], []),
            ("one place twice", [DNSBytes.binding(1, "", h3), DNSBytes.binding(2, "A.test", h3)], ["a.test:443"]),
            ("2.2: a malformed record", [DNSBytes.binding(1, "", h3), DNSBytes.binding(2, "", [(3, [])])], []),
        ] as [(String, [[UInt8]], [String])])
    func `records name the places of HTTP/3`(what: String, records: [[UInt8]], places: [String]) throws {
        let found = try search("A.test", ["a.test": records])
        #expect(found.outcome.endpoints.map { "\($0.host):\($0.port)" } == places, "\(what)")
        #expect(found.questions == ["a.test"])
    }

    @Test func `hints are passed on`() throws {
        let record = DNSBytes.binding(1, "", Self.h3 + [(4, [192, 0, 2, 1])])
        let endpoints = try search("a.test", ["a.test": [record]]).outcome.endpoints
        #expect(endpoints == [HTTPSEndpoint(host: "a.test", port: 443, addresses: ["192.0.2.1"])])
    }

    @Test func `records of equal priority take turns`() throws {
        let records =
            ["b.test", "c.test", "d.test"].map { DNSBytes.binding(1, $0, Self.h3) } + [DNSBytes.binding(2, "", Self.h3)]
        var firsts: Set<String> = []
        for seed in 0..<50 as Range<UInt64> {
            let hosts = try search("a.test", ["a.test": records], seed: seed).outcome.endpoints.map(\.host)
            #expect(hosts.last == "a.test" && hosts.count == 4)
            firsts.formUnion(hosts.prefix(1))
        }
        #expect(firsts.count == 3)
    }

    @Test func `there is a maximum of places`() throws {
        let records = (1...200).map { DNSBytes.binding($0, "n\($0).test", Self.h3) }
        #expect(try search("a.test", ["a.test": records]).outcome.endpoints.map(\.host) == (1...8).map { "n\($0).test" })
    }

    /// RFC 9460, section 9.1.
    @Test func `another port is a part of the name that is asked for`() throws {
        let zone = [
            "_8443._https.a.test": [DNSBytes.binding(1, "", Self.h3)],
            "_444._https.a.test": [DNSBytes.binding(1, "a.test", Self.h3)],
        ]
        // "If TargetName is '.', … the owner name of the record", with its prefix.
        #expect(
            try search("a.test", zone, port: 8_443).outcome.endpoints == [HTTPSEndpoint(host: "_8443._https.a.test", port: 8_443)]
        )
        #expect(try search("a.test", zone, port: 444).outcome.endpoints == [HTTPSEndpoint(host: "a.test", port: 444)])
        #expect(try search("a.test", zone).questions == ["a.test"])
    }

    /// RFC 9460, sections 2.4.2 and 3.
    @Test func `aliases are followed`() throws {
        let zone = [
            "a.test": [DNSBytes.binding(0, "b.test"), DNSBytes.binding(1, "", Self.h3)],
            "b.test": [DNSBytes.binding(0, "c.test")],
            "c.test": [DNSBytes.binding(1, "", Self.h3)],
        ]
        let found = try search("a.test", zone, seconds: ["b.test": 20, "c.test": 30])
        #expect(found.questions == ["a.test", "b.test", "c.test"])
        #expect(found.outcome.endpoints == [HTTPSEndpoint(host: "c.test", port: 443)] && found.outcome.seconds == 20)
        let ported = ["_8443._https.a.test": [DNSBytes.binding(0, "c.test")], "c.test": [DNSBytes.binding(1, "", Self.h3)]]
        #expect(try search("a.test", ported, port: 8_443).outcome.endpoints == [HTTPSEndpoint(host: "c.test", port: 8_443)])
    }

    @Test func `aliases that lead nowhere end`() throws {
        #expect(try search("a.test", ["a.test": [DNSBytes.binding(0, "")]]).outcome.endpoints.isEmpty)
        #expect(try search("a.test", ["a.test": [DNSBytes.binding(0, "a.test")]]).questions.count == 1)
        let ring = ["a.test": [DNSBytes.binding(0, "b.test")], "b.test": [DNSBytes.binding(0, "a.test")]]
        #expect(try search("a.test", ring).questions.count == 9)
        var chain: [String: [[UInt8]]] = [:]
        for index in 0..<8 { chain["n\(index).test"] = [DNSBytes.binding(0, "n\(index + 1).test")] }
        chain["n8.test"] = [DNSBytes.binding(1, "", Self.h3)]
        #expect(try search("n0.test", chain).outcome.endpoints.map(\.host) == ["n8.test"])
        chain["n8.test"] = [DNSBytes.binding(0, "n9.test")]
        chain["n9.test"] = [DNSBytes.binding(1, "", Self.h3)]
        #expect(try search("n0.test", chain).outcome.endpoints.isEmpty)
    }

    @Test(arguments: [("", 443), ("a b.test", 443), ("a.test", 0), ("a.test", 65_536), ("a.test", -1)])
    func `what is no host is not asked for`(host: String, port: Int) {
        #expect(ServiceBindingSearch(host: host, port: port) == nil)
    }
}
