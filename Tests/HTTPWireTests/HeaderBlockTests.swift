// SPDX-License-Identifier: Apache-2.0

import HTTPWire
import SeededNumbers
import Testing

@Suite struct `Header blocks` {
    private let block = HeaderBlock([("Accept", "a"), ("X", "1"), ("accept", "b"), ("Y", "")])

    @Test func `names are case-insensitive`() {
        #expect(block.first("ACCEPT") == "a")
        #expect(block.all("aCCept") == ["a", "b"])
        #expect(block.joined("accept") == "a, b")
        #expect(block.joined("x") == "1")
        #expect(block.joined("z") == nil)
        #expect(block.contains("y"))
        #expect(!block.contains("yy"))
        #expect(HeaderBlock([("A", "1")]) == HeaderBlock([("a", "1")]))
        #expect(HeaderBlock([("A", "1")]) != HeaderBlock([("a", "2")]))
        #expect(HeaderBlock([("A", "1")]).hashValue == HeaderBlock([("a", "1")]).hashValue)
    }

    @Test func `setting a field replaces all its lines at the position of the first`() {
        var block = block
        block.set("accept", "c")
        #expect(block.description == "accept: c\nX: 1\nY: ")
        block.set("Z", "2")
        #expect(block.description == "accept: c\nX: 1\nY: \nZ: 2")
        block.remove("x")
        block.remove("none")
        #expect(block.description == "accept: c\nY: \nZ: 2")
    }

    @Test func `appending a block keeps the order`() {
        var joined = HeaderBlock([("A", "1")])
        joined.append(contentsOf: block)
        #expect(joined.fields.map(\.name) == ["A", "Accept", "X", "accept", "Y"])
        #expect(joined.fields.map(\.value) == ["1", "a", "1", "b", ""])
    }

    @Test func `hasToken finds tokens in lists`() {
        let block = HeaderBlock([("Connection", "keep-alive , Upgrade"), ("connection", ",close,")])
        for token in ["keep-alive", "upgrade", "CLOSE"] { #expect(block.hasToken(token, in: .connection)) }
        for token in ["keep", "alive", "clos", ""] { #expect(!block.hasToken(token, in: .connection)) }
    }

    @Test func `values that are not UTF-8 are decoded as ISO 8859-1`() {
        let block = HeaderBlock(
            bytes: [0x61, 0xE9, 0x62, 0xC3, 0xA9],
            lines: [
                HeaderBlock.Line(nameStart: 0, nameLength: 1, valueStart: 1, valueLength: 2),
                HeaderBlock.Line(nameStart: 2, nameLength: 1, valueStart: 3, valueLength: 2),
            ]
        )
        #expect(block.fields.map(\.value) == ["éb", "é"])
    }

    @Test func `blocks with other names or more fields differ`() {
        #expect(HeaderBlock([("a", "1")]) != HeaderBlock([("b", "1")]))
        #expect(HeaderBlock([("a", "1")]) != HeaderBlock([("a", "1"), ("a", "1")]))
    }

    @Test(arguments: UInt64(0)..<200)
    func `index finds a name after any sequence of changes`(seed: UInt64) {
        var numbers = SeededNumbers(seed: seed)
        let names = [
            "Host", "host", "ETag", "Etag", "Date", "Age", "Via", "X-A", "x-b", "Content-Type", "Content-Length", "", "_", "-",
            "0",
        ]
        func fields() -> [(name: String, value: String)] {
            (0..<Int.random(in: 0..<6, using: &numbers)).map { (names.randomElement(using: &numbers) ?? "", "\($0)") }
        }
        var block = HeaderBlock(fields())
        for _ in 0..<4 {
            switch Int.random(in: 0..<4, using: &numbers) {
            case 0: block.append(contentsOf: HeaderBlock(fields()))
            case 1: block.remove(names.randomElement(using: &numbers) ?? "")
            case 2: block.set(names.randomElement(using: &numbers) ?? "", "set")
            default: block = HeaderBlock(bytes: block.bytes, lines: block.lines)
            }
            for name in names {
                let present = block.fields.firstIndex { $0.name.lowercased() == name.lowercased() }
                #expect(block.index(of: name) == present, "\(name) in \(block.fields), seed \(seed)")
                #expect(block.index(of: name.uppercased()) == present, "\(name) in \(block.fields), seed \(seed)")
            }
        }
    }
}
