//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import SeededNumbers
import Testing
import TransportMachines

@Suite struct ServiceRecordsTests {
    /// `a.test`, as it stands in a message.
    private static let asked: [UInt8] = [1, 0x61, 4, 0x74, 0x65, 0x73, 0x74, 0]

    private static func number(_ value: Int) -> [UInt8] { [UInt8(value >> 8 & 255), UInt8(value & 255)] }

    private static func name(_ text: String) -> [UInt8] {
        text.split(separator: ".").flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) } + [0]
    }

    private static func record(
        _ data: [UInt8], owner: [UInt8] = [0xC0, 12], type: Int = 65, family: Int = 1, seconds: Int = 300
    ) -> [UInt8] {
        owner + number(type) + number(family) + number(seconds >> 16) + number(seconds) + number(data.count) + data
    }

    private static func message(_ records: [[UInt8]], flags: Int = 0x8180, questions: Int = 1, type: Int = 65) -> [UInt8] {
        [7, 7] + number(flags) + number(questions) + number(records.count) + [0, 0, 0, 0] + asked + number(type) + [0, 1]
            + records.joined()
    }

    private static func parameters(_ pairs: (Int, [UInt8])...) -> [UInt8] {
        pairs.flatMap { number($0.0) + number($0.1.count) + $0.1 }
    }

    /// Its priority and target, and what stands behind them.
    private static func service(_ priority: Int, _ target: String = "", _ parameters: [UInt8] = []) -> [UInt8] {
        number(priority) + name(target) + parameters
    }

    private static func read(_ data: [UInt8]...) -> ServiceRecords? { ServiceRecords(message: message(data.map { record($0) })) }

    private static func text(_ ids: [[UInt8]]) -> [String] { ids.map { String(decoding: $0, as: UTF8.self) } }

    // MARK: Records

    @Test func `a record says priority, target, protocols, port and hints`() throws {
        let data = Self.service(
            16, "foo.Example.org",
            Self.parameters(
                (0, [0, 1, 0, 4]), (1, [2] + Array("h2".utf8) + [5] + Array("h3-19".utf8)), (3, [0, 53]),
                (4, [192, 0, 2, 1, 192, 0, 2, 2]), (5, [1, 2]), (6, [UInt8](repeating: 1, count: 16)), (667, Array("hello".utf8)))
        )
        let records = try #require(Self.read(data))
        #expect(records.seconds == 300 && records.alias == nil)
        let service = try #require(records.services.first)
        #expect(
            records.services.count == 1 && service.priority == 16 && service.target == "foo.example.org" && service.port == 53)
        #expect(Self.text(service.protocolIDs) == ["h2", "h3-19", "http/1.1"])
        #expect(service.v4Hints == [[192, 0, 2, 1], [192, 0, 2, 2]] && service.v6Hints == [[UInt8](repeating: 1, count: 16)])
    }

    @Test func `without parameters the target is the name, and HTTP/1.1 is spoken`() throws {
        let service = try #require(Self.read(Self.service(1))?.services.first)
        #expect(service.target == "a.test" && service.port == nil && Self.text(service.protocolIDs) == ["http/1.1"])
        // It may be excluded (RFC 9460, section 7.1.1).
        let other = try #require(Self.read(Self.service(1, "", Self.parameters((1, [2, 0x68, 0x33]), (2, []))))?.services.first)
        #expect(Self.text(other.protocolIDs) == ["h3"])
    }

    @Test func `services are tried by priority, and an alias puts them aside`() {
        #expect(
            Self.read(Self.service(3, "c"), Self.service(1, "a"), Self.service(2, "b"))?.services.map(\.target) == [
                "a", "b", "c",
            ])
        let aliased = Self.read(Self.service(1), Self.service(0, "svc.Example", [1, 2, 3]))
        #expect(aliased?.alias == "svc.example" && aliased?.services == [])
        // "." in AliasMode: there is no such service (section 2.5.1).
        #expect(Self.read(Self.service(0)) == ServiceRecords())
        #expect(Self.read(Self.service(1), Self.service(0)) == ServiceRecords())
        #expect(Self.read(Self.service(0, "first"), Self.service(0, "second"))?.alias == "first")
        #expect(Self.read() == ServiceRecords())
    }

    @Test func `an answer about another name is none`() {
        let message = Self.message([Self.record(Self.service(1, "c"))])
        for (name, isMeant) in [("a.test", true), ("a.test.", true), ("b.test", false), ("a.test.corp.test", false), ("", false)]
        {
            #expect((ServiceRecords(message: message, to: name) != nil) == isMeant, "\(name)")
        }
    }

    @Test func `names with more pointers than labels are malformed`() {
        // Each of the pointers leads to the one before it.
        func message(_ count: Int) -> [UInt8] {
            // Behind the question, and what stands before a record's data.
            let start: Int = Self.message([]).count + 12
            var pointers: [UInt8] = Self.number(0xC000 + 12)
            for index in 1..<count {
                let target: Int = start + 2 * (index - 1)
                pointers += Self.number(0xC000 + target)
            }
            let carrier = Self.record(pointers, type: 16)
            let first: Int = start + 2 * (count - 1)
            let last = Self.record(Self.service(1, "c"), owner: Self.number(0xC000 + first))
            return Self.message([carrier, last])
        }
        #expect(ServiceRecords(message: message(100))?.services.count == 1)
        #expect(ServiceRecords(message: message(200)) == nil)
    }

    @Test func `records count that are of the name, or of the one that it stands for`() {
        let alias = Self.record(Self.name("b.test"), type: 5, seconds: 20)
        let own = Self.record(Self.service(1, "own"))
        let other = Self.record(Self.service(1, "other"), owner: Self.name("B.Test"), seconds: 100)
        #expect(ServiceRecords(message: Self.message([own, other]))?.services.map(\.target) == ["own"])
        let followed = ServiceRecords(message: Self.message([other, alias]))
        #expect(followed?.services.map(\.target) == ["other"] && followed?.seconds == 20)
        // In a circle there is an end.
        let circle = [alias, Self.record([0xC0, 12], owner: Self.name("b.test"), type: 5)]
        #expect(ServiceRecords(message: Self.message(circle)) == ServiceRecords())
        // Another class, another type.
        let strange = [Self.record([1], family: 3), Self.record([1], type: 1)]
        #expect(ServiceRecords(message: Self.message(strange)) == ServiceRecords())
        #expect(ServiceRecords(message: Self.message([Self.record(Self.service(1), seconds: 1 << 31)]))?.seconds == 0)
    }

    /// Section 2.2: the whole set is rejected.
    @Test(arguments: [
        ("a key twice", parameters((1, [1, 0x61]), (1, [1, 0x61]))),
        ("keys out of order", parameters((3, [1, 1]), (1, [1, 0x61]))),
        ("half a key", [0]), ("half a length", [0, 1, 0]), ("a value that ends too early", [0, 1, 0, 3, 1, 0x61]),
        ("no protocols", parameters((1, []))), ("an empty protocol", parameters((1, [0]))),
        ("a protocol that ends too early", parameters((1, [3, 0x61]))),
        ("a value of no-default-alpn", parameters((1, [1, 1]), (2, [1]))),
        ("a port of one byte", parameters((3, [1]))), ("a port of three", parameters((3, [1, 1, 1]))),
        ("no port", parameters((3, []))),
        ("no v4 hints", parameters((4, []))), ("half a v4 hint", parameters((4, [1, 2]))),
        ("no v6 hints", parameters((6, []))), ("a v4 hint for v6", parameters((6, [1, 2, 3, 4]))),
        ("nothing mandatory", parameters((0, []))), ("half a mandatory key", parameters((0, [1]))),
        ("mandatory itself", parameters((0, [0, 0]))), ("mandatory keys twice", parameters((0, [0, 1, 0, 1]), (1, [1, 1]))),
        ("mandatory keys out of order", parameters((0, [0, 3, 0, 1]), (1, [1, 1]), (3, [1, 1]))),
    ])
    func `a malformed record spoils the set`(what: String, parameters: [UInt8]) {
        #expect(Self.read(Self.service(1, "good"), Self.service(2, "bad", parameters)) == nil, "\(what)")
    }

    /// Sections 2.4.3 and 8.
    @Test(arguments: [
        ("a mandatory key that is not there", parameters((0, [0, 1]))),
        ("a mandatory key that is not understood", parameters((0, [2, 155]), (667, [1]))),
        ("a mandatory ech", parameters((0, [0, 5]), (5, [1]))),
        ("no-default-alpn without alpn", parameters((2, []))),
        ("port 0", parameters((3, [0, 0]))),
    ])
    func `a record that cannot be used is passed over`(what: String, parameters: [UInt8]) {
        #expect(
            Self.read(Self.service(1, "bad", parameters), Self.service(2, "good"))?.services.map(\.target) == ["good"], "\(what)")
    }

    @Test func `targets are names, in full`() {
        let tooLong = [UInt8]([63]) + [UInt8](repeating: 0x61, count: 63)
        let rows: [[UInt8]] = [
            [0, 1], [0, 1, 0xC0, 12], [0, 1, 5, 0x61], [0, 1, 64] + [UInt8](repeating: 0x61, count: 64) + [0],
            [0, 1, 1, 0x2E, 0],
            [0, 1, 1, 0, 0], [0, 1, 1, 0x20, 0], [0, 1, 0x80, 1], [0, 1] + tooLong + tooLong + tooLong + tooLong + [0], [], [0],
        ]
        for row in rows { #expect(Self.read(row) == nil, "\(row)") }
        #expect(Self.read([0, 1] + tooLong + [0])?.services.first?.target.count == 63)
    }

    // MARK: Messages

    @Test func `only a whole answer without an error, to one question for such records, is read`() {
        let records = [Self.record(Self.service(1))]
        #expect(ServiceRecords(message: Self.message(records))?.services.count == 1)
        for flags in [0x0180, 0x8183, 0x8182, 0x8380, 0x8980] {
            #expect(ServiceRecords(message: Self.message(records, flags: flags)) == nil, "\(flags)")
        }
        #expect(ServiceRecords(message: Self.message(records, questions: 0)) == nil)
        #expect(ServiceRecords(message: Self.message(records, questions: 2)) == nil)
        #expect(ServiceRecords(message: Self.message(records, type: 1)) == nil)
    }

    @Test func `names that point ahead, at themselves or in circles are none`() {
        for owner: [UInt8] in [[0xC0, 26], [0xFF, 0xFF], [0xC0, 28], [1, 0x61, 0xC0, 26], [0xC0]] {
            #expect(ServiceRecords(message: Self.message([Self.record(Self.service(1), owner: owner)])) == nil, "\(owner)")
        }
        let tail = Self.record(Self.service(1), owner: [0xC0, 14])
        #expect(ServiceRecords(message: Self.message([tail])) == ServiceRecords(), "the records of `test`")
    }

    @Test func `an answer that is cut at any byte is none`() throws {
        let parameters = Self.parameters((1, [2, 0x68, 0x32]), (3, [1, 1]), (4, [1, 2, 3, 4]))
        let alias = Self.record(Self.name("b.test"), type: 5)
        let whole = Self.message([alias, Self.record(Self.service(1, "c.test", parameters), owner: Self.name("b.test"))])
        #expect(ServiceRecords(message: whole)?.services.count == 1)
        for count in 0..<whole.count { #expect(ServiceRecords(message: Array(whole.prefix(count))) == nil, "\(count)") }
        // What stands behind the answers is not looked at.
        #expect(ServiceRecords(message: whole + [1, 2, 3])?.services.count == 1)
    }

    @Test func `a thousand records, hints and protocols are bounded`() throws {
        let hints = [UInt8](repeating: 9, count: 4_000)
        let many = Self.parameters((1, (0..<1_000).flatMap { _ in [2, 0x68, 0x32] as [UInt8] }), (4, hints), (6, hints))
        let records = try #require(Self.read(Self.service(1, "", many)))
        let service = try #require(records.services.first)
        #expect(service.v4Hints.count == 16 && service.v6Hints.count == 16 && service.protocolIDs.count == 9)
        let services = (1...1_000).map { Self.record(Self.service(1_001 - $0)) }
        #expect(ServiceRecords(message: Self.message(services))?.services.map(\.priority) == Array(1...8))
    }

    @Test func `random changes never trap`() {
        var numbers = SeededNumbers(seed: 9_460)
        let parameters = Self.parameters((0, [0, 1]), (1, [2, 0x68, 0x32]), (3, [1, 1]), (4, [1, 2, 3, 4]))
        let alias = Self.record([0xC0, 14], type: 5)
        let whole = Self.message([alias, Self.record(Self.service(1, "c.test", parameters), owner: [0xC0, 14])])
        for _ in 0..<50_000 {
            var message = whole
            for _ in 0..<Int.random(in: 1...4, using: &numbers) {
                message[Int.random(in: 0..<message.count, using: &numbers)] = UInt8.random(in: 0...255, using: &numbers)
            }
            if let records = ServiceRecords(message: message) {
                #expect(records.services.allSatisfy { $0.priority > 0 && !$0.target.isEmpty && $0.port != 0 })
            }
        }
    }

    @Test func `records of another port than 443 have a name of their own`() {
        #expect(ServiceRecords.name(host: "a.test", port: 443) == "a.test")
        #expect(ServiceRecords.name(host: "a.test", port: 8_443) == "_8443._https.a.test")
    }
}
