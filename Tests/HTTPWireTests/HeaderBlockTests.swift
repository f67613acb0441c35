//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import HTTPWire
import Testing

@Suite struct `Header blocks` {
    private let block = HeaderBlock([("Accept", "a"), ("X", "1"), ("accept", "b"), ("Y", "")])

    @Test func `names compare without regard to case`() {
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

    @Test func `setting replaces every line at the place of the first`() {
        var block = block
        block.set("accept", "c")
        #expect(block.description == "accept: c\nX: 1\nY: ")
        block.set("Z", "2")
        #expect(block.description == "accept: c\nX: 1\nY: \nZ: 2")
        block.remove("x")
        block.remove("none")
        #expect(block.description == "accept: c\nY: \nZ: 2")
    }

    @Test func `blocks are joined in order`() {
        var joined = HeaderBlock([("A", "1")])
        joined.append(contentsOf: block)
        #expect(joined.fields.map(\.name) == ["A", "Accept", "X", "accept", "Y"])
        #expect(joined.fields.map(\.value) == ["1", "a", "1", "b", ""])
    }

    @Test func `tokens are found in lists`() {
        let block = HeaderBlock([("Connection", "keep-alive , Upgrade"), ("connection", ",close,")])
        for token in ["keep-alive", "upgrade", "CLOSE"] { #expect(block.hasToken(token, in: "connection")) }
        for token in ["keep", "alive", "clos", ""] { #expect(!block.hasToken(token, in: "connection")) }
    }

    @Test func `values that are not UTF-8 are ISO 8859-1`() {
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
}
