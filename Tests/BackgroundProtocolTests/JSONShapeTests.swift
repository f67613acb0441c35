//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import FoundationEssentials
import SeededNumbers
import Testing

@testable import BackgroundProtocol

@Suite struct JSONShapeTests {
    @Test(arguments: [
        "{}", " \t\r\n{ } \n", #"{"a":1}"#, #"{"a":[]}"#, #"{"a" : [ ] , "b" : { } }"#, #"{"":""}"#, #"{"a":[1,[2],{"b":[]}]}"#,
        #"{"a":true,"b":false,"c":null}"#, #"{"a":[0,-0,10,1.5,1e5,1E+5,1e-05,-0.0e0,123456789012345678901234567890]}"#,
        #"{"a":"\"\\\/\b\f\n\r\t\u0000\u00e4\uD83C\uDF0D"}"#, #"{"ä":"🌍","a":""# + "\u{7F}\u{80}\u{10FFFF}\"}",
        #"{"a":1,"a":2}"#, #"{"a":["]","}"]}"#,
    ])
    func `an object is taken`(text: String) {
        #expect(JSONShape.isObject(Array(text.utf8)))
    }

    @Test(arguments: [
        "", " ", "[]", "1", "null", #""a""#, "{", "}", "{]", "{}{}", "{},", "{}}", "{}1", "{,}", #"{"a"}"#, #"{"a":}"#,
        #"{"a":1,}"#,
        #"{,"a":1}"#, #"{"a" 1}"#, #"{"a":1 "b":2}"#, #"{"a":1:2}"#, "{a:1}", "{1:1}", "{null:1}", #"{"a":[}"#, #"{"a":[1}"#,
        #"{"a":[1,]}"#,
        #"{"a":[,1]}"#, #"{"a":[1 2]}"#, #"{"a":[1:2]}"#, #"{"a":{]}"#, #"{"a":[1]]}"#, #"{"a":{"b":1]}"#,
        #"{"a":01}"#, #"{"a":-}"#, #"{"a":+1}"#, #"{"a":.5}"#, #"{"a":1.}"#, #"{"a":1e}"#, #"{"a":1e+}"#, #"{"a":0x1}"#,
        #"{"a":NaN}"#,
        #"{"a":Infinity}"#, #"{"a":-Infinity}"#, #"{"a":--1}"#, #"{"a":1.2.3}"#, #"{"a":-01}"#,
        #"{"a":tru}"#, #"{"a":True}"#, #"{"a":truex}"#, #"{"a":nul"#, #"{"a":'b'}"#, #"{"a":"b}"#, #"{"a":"\"}"#, #"{"a":"\x"}"#,
        #"{"a":"\u12"}"#, #"{"a":"\u12g4"}"#, #"{"a":"\uD800"}"#, #"{"a":"\uD800\n"}"#, #"{"a":"\uD800\uD800"}"#,
        #"{"a":"\uDC00"}"#,
        #"{"a":"\uD8"#, #"{"a":"\"#, "{\"a\":\"\n\"}", "{\"a\":\"\u{0}\"}", "{\u{A0}}", "{\u{FEFF}}", "\u{FEFF}{}", "{}\u{0}",
        "{/**/}",
    ])
    func `anything else is not`(text: String) {
        #expect(!JSONShape.isObject(Array(text.utf8)))
    }

    @Test(arguments: [[0xFF], [0xC3], [0xC3, 0x28], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80]] as [[UInt8]])
    func `text that is no UTF-8 is not`(bytes: [UInt8]) {
        #expect(!JSONShape.isObject(Array(#"{"a":""#.utf8) + bytes + Array(#""}"#.utf8)))
    }

    @Test func `an object that is cut anywhere is not`() {
        let text = Array(#"{"a":[1.5e3,true,null,{"b":"\u00e4\uD83C\uDF0D ä"}],"c":-0}"#.utf8)
        #expect(JSONShape.isObject(text))
        for count in 0..<text.count { #expect(!JSONShape.isObject(Array(text.prefix(count)))) }
    }

    @Test(arguments: 0..<4 as Range<UInt64>)
    func `what is taken can be decoded`(seed: UInt64) throws {
        struct Anything: Decodable {}
        let pieces = [
            "{", "}", "[", "]", ",", ":", "\"", "\"a\"", "\"a\":", "1", "-", ".5", "e7", "true", "null", " ", "\\u00e4", "\\",
            "ä",
        ]
        var numbers = SeededNumbers(seed: seed)
        var taken = 0
        for _ in 0..<20_000 {
            let text = "{" + numbers.text(of: pieces, upTo: 8) + "}"
            guard JSONShape.isObject(Array(text.utf8)) else { continue }
            taken += 1
            #expect(throws: Never.self) { try JSONDecoder().decode(Anything.self, from: Data(text.utf8)) }
        }
        #expect(taken > 100)
    }
}
