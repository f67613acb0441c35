// SPDX-License-Identifier: Apache-2.0

import HTTPWire
import SeededNumbers
import Testing

/// Messages that answer questions for HTTPS records.
@Suite struct `Answers with HTTPS records` {
    private typealias Record = DNSBytes.Record

    private static let h3 = DNSBytes.binding(1, "", [(1, DNSBytes.protocols("h3", "h2"))])

    private func read(_ message: [UInt8], _ name: String = "a.test") throws -> ServiceBindings {
        try ServiceBindings(message, for: #require(DNSName(name)))
    }

    @Test func `records of the name are read, others are not`() throws {
        let answer = try read(
            DNSBytes.message(
                "A.test",
                [
                    Record(seconds: 300, data: Self.h3), Record(owner: DNSBytes.name("A.TEST"), seconds: 200, data: Self.h3),
                    Record(owner: DNSBytes.name("b.test"), seconds: 1, data: [1]), Record(kind: 3, seconds: 1, data: [1]),
                    Record(type: 46, seconds: 1, data: []),
                ]))
        #expect(answer.owner == DNSName("a.test") && answer.seconds == 200 && !answer.isMalformed)
        #expect(answer.records.map(\.protocols) == [["h3", "h2"].map { Array($0.utf8) }, ["h3", "h2"].map { Array($0.utf8) }])
    }

    @Test func `one malformed record makes all of them unusable`() throws {
        let answer = try read(DNSBytes.message("a.test", [Record(data: Self.h3), Record(seconds: 60, data: [0, 1])]))
        #expect(answer.records.isEmpty && answer.isMalformed && answer.seconds == 60)
    }

    @Test func `aliases are followed in any order`() throws {
        let answers = [
            Record(owner: DNSBytes.name("c.test"), data: Self.h3),
            .alias("c.test", of: DNSBytes.name("b.test"), seconds: 20), .alias("b.test", seconds: 30),
        ]
        let answer = try read(DNSBytes.message("a.test", answers))
        #expect(answer.owner == DNSName("c.test") && answer.records.count == 1 && answer.seconds == 20)
        // Aliases without records.
        let empty = try read(DNSBytes.message("a.test", [.alias("b.test", seconds: 30)]))
        #expect(empty.owner == DNSName("b.test") && empty.records.isEmpty && empty.seconds == nil)
    }

    @Test func `aliases that lead nowhere end`() throws {
        #expect(throws: ServiceBindings.Failure.malformed) { try read(DNSBytes.message("a.test", [.alias("a.test")])) }
        let ring = [Record.alias("b.test"), .alias("a.test", of: DNSBytes.name("b.test"))]
        #expect(throws: ServiceBindings.Failure.malformed) { try read(DNSBytes.message("a.test", ring)) }
        func chain(_ count: Int) -> [UInt8] {
            let links = (0..<count).map { Record.alias("n\($0 + 1).test", of: DNSBytes.name("n\($0).test")) }
            return DNSBytes.message("n0.test", links)
        }
        #expect(try read(chain(8), "n0.test").owner == DNSName("n8.test"))
        #expect(throws: ServiceBindings.Failure.malformed) { try read(chain(9), "n0.test") }
    }

    /// RFC 2308, section 5: the minimum of MINIMUM and the TTL of the SOA record.
    @Test(arguments: [(60, 3_600, 60), (3_600, 60, 60), (0, 60, 0)])
    func `the absence of records is valid for the time of the SOA record`(seconds: Int, minimum: Int, valid: Int) throws {
        let authority = Record.authority(seconds: seconds, minimum: minimum)
        for flags in [0x8180, 0x8183] {
            let answer = try read(DNSBytes.message("a.test", [], authorities: [authority], flags: flags))
            #expect(answer.records.isEmpty && answer.seconds == valid)
        }
        let aliased = try read(DNSBytes.message("a.test", [.alias("b.test", seconds: 5)], authorities: [authority]))
        #expect(aliased.seconds == min(5, valid))
    }

    @Test func `an absence without a SOA record has no time`() throws {
        #expect(try read(DNSBytes.message("a.test", [])).seconds == nil)
        let name = Record(type: 2, data: DNSBytes.name("ns.test"))
        #expect(try read(DNSBytes.message("a.test", [], authorities: [name])).seconds == nil)
        let half = Record(type: 6, data: DNSBytes.name("ns.test"))
        #expect(try read(DNSBytes.message("a.test", [], authorities: [half])).seconds == nil)
    }

    @Test func `a lifetime with the highest bit counts as none`() throws {
        #expect(try read(DNSBytes.message("a.test", [Record(seconds: 1 << 31, data: Self.h3)])).seconds == 0)
        #expect(try read(DNSBytes.message("a.test", [Record(seconds: 1 << 31 - 1, data: Self.h3)])).seconds == 1 << 31 - 1)
    }

    @Test(arguments: [
        ("a query", 0x0100, ServiceBindings.Failure.otherQuestion), ("a notification", 0xA180, .otherQuestion),
        ("truncated", 0x8380, .truncated), ("SERVFAIL", 0x8182, .code(2)), ("REFUSED", 0x8185, .code(5)),
        ("truncated, with a code", 0x8382, .truncated),
    ])
    func `a message that does not answer is refused`(what: String, flags: Int, failure: ServiceBindings.Failure) {
        #expect(throws: failure, "\(what)") {
            try read(DNSBytes.message("a.test", [Record(data: Self.h3)], flags: flags))
        }
    }

    @Test func `an answer to another question is refused`() {
        let failure = ServiceBindings.Failure.otherQuestion
        #expect(throws: failure) { try read(DNSBytes.message("b.test", [Record(data: Self.h3)])) }
        #expect(throws: failure) { try read(DNSBytes.message("a.test", [Record(data: Self.h3)], type: 64)) }
        var message = DNSBytes.message("a.test", [])
        message[5] = 0
        #expect(throws: failure) { try read(message) }
    }

    @Test func `names that refer to themselves end`() throws {
        // The owner is a pointer to itself, to a pointer behind it, and to a label that leads back to it.
        let place = DNSBytes.message("a.test", []).count
        for owner in [
            [0xC0, UInt8(place)], [0xC0, UInt8(place + 2)], [1, 0x61, 0xC0, UInt8(place)], [0xFF, 0xFF], [0x40, 0x61],
        ] {
            let message = DNSBytes.message("a.test", [Record(owner: owner, data: Self.h3)])
            #expect(throws: ServiceBindings.Failure.malformed, "\(owner)") { try read(message) }
        }
    }

    @Test func `a message of the maximum size is read`() throws {
        let count = (65_535 - DNSBytes.message("a.test", []).count) / Record(data: Self.h3).bytes.count
        let message = DNSBytes.message("a.test", Array(repeating: Record(data: Self.h3), count: count))
        #expect(try read(message).records.count == count)
    }

    @Test func `no part of a message and no changed byte is misread as more`() throws {
        let records = [
            Record.alias("b.test"), Record(owner: DNSBytes.name("b.test"), data: Self.h3),
            Record(owner: DNSBytes.name("b.test"), data: DNSBytes.binding(2, "c.test", [(4, [127, 0, 0, 1])])),
        ]
        let message = DNSBytes.message("a.test", records, authorities: [.authority(seconds: 1, minimum: 2)])
        #expect(try read(message).records.count == 2)
        for count in 0..<message.count - Record.authority(seconds: 1, minimum: 2).bytes.count {
            #expect(throws: ServiceBindings.Failure.malformed) { try read(Array(message.prefix(count))) }
        }
        var numbers = SeededNumbers(seed: 9_460)
        for _ in 0..<5_000 {
            var changed = message
            for _ in 0...numbers.next(below: 4) {
                changed[numbers.next(below: changed.count)] = UInt8(truncatingIfNeeded: numbers.next())
            }
            if let answer = try? read(changed) { #expect(answer.records.count <= 3) }
        }
    }
}
