// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import SeededNumbers
import Testing

@testable import BackgroundProtocol

@Suite struct JSONParserTests {
    private static func isObject(_ bytes: [UInt8]) -> Bool { JSONParser.object(bytes) != nil }

    @Test(arguments: [
        "{}", " \t\r\n{ } \n", #"{"a":1}"#, #"{"a":[]}"#, #"{"a" : [ ] , "b" : { } }"#, #"{"":""}"#, #"{"a":[1,[2],{"b":[]}]}"#,
        #"{"a":true,"b":false,"c":null}"#, #"{"a":[0,-0,10,1.5,1e5,1E+5,1e-05,-0.0e0,123456789012345678901234567890]}"#,
        #"{"a":"\"\\\/\b\f\n\r\t\u0000\u00e4\uD83C\uDF0D"}"#, #"{"ä":"🌍","a":""# + "\u{7F}\u{80}\u{10FFFF}\"}",
        #"{"a":1,"a":2}"#, #"{"a":["]","}"]}"#,
    ])
    func `an object is accepted`(text: String) {
        #expect(Self.isObject(Array(text.utf8)))
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
    func `anything else is refused`(text: String) {
        #expect(!Self.isObject(Array(text.utf8)))
    }

    @Test(arguments: [[0xFF], [0xC3], [0xC3, 0x28], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80]] as [[UInt8]])
    func `invalid UTF-8 is refused`(bytes: [UInt8]) {
        #expect(!Self.isObject(Array(#"{"a":""#.utf8) + bytes + Array(#""}"#.utf8)))
    }

    @Test func `a truncated object is refused`() {
        let text = Array(#"{"a":[1.5e3,true,null,{"b":"\u00e4\uD83C\uDF0D ä"}],"c":-0}"#.utf8)
        #expect(Self.isObject(text))
        for count in 0..<text.count { #expect(!Self.isObject(Array(text.prefix(count)))) }
    }

    /// The value of a text, as decoded by either parser.
    private indirect enum Anything: Decodable, Equatable {
        case nothing
        case boolean(Bool)
        case number(Double)
        case text(String)
        case list([Anything])
        case object([String: Anything])

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            if container.decodeNil() {
                self = .nothing
            } else if let value = try? container.decode(Bool.self) {
                self = .boolean(value)
            } else if let value = try? container.decode(Double.self) {
                self = .number(value)
            } else if let value = try? container.decode(String.self) {
                self = .text(value)
            } else if let value = try? container.decode([Anything].self) {
                self = .list(value)
            } else if let value = try? container.decode([String: Anything].self) {
                self = .object(value)
            } else {
                self = .number(.infinity)
            }
        }

        init(_ value: JSONValue) {
            switch value {
            case .null: self = .nothing
            case .boolean(let value): self = .boolean(value)
            case .number(let value): self = .number(Double(value) ?? .nan)
            case .text(let value): self = .text(value)
            case .list(let values): self = .list(values.map { Anything($0) })
            case .object(let fields):
                self = .object(Dictionary(fields.map { ($0.name, Anything($0.value)) }) { first, _ in first })
            }
        }
    }

    @Test(arguments: 0..<4 as Range<UInt64>)
    func `an accepted text has the value that Foundation reads`(seed: UInt64) throws {
        let pieces = [
            "{", "}", "[", "]", ",", ":", "\"", "\"a\"", "\"a\":", "1", "-", ".5", "e7", "true", "null", " ", "\\u00e4", "\\",
            "ä",
        ]
        var numbers = SeededNumbers(seed: seed)
        var taken = 0
        for _ in 0..<20_000 {
            let text = "{" + numbers.text(of: pieces, upTo: 8) + "}"
            guard let parsed = JSONParser.object(Array(text.utf8)) else { continue }
            taken += 1
            let known = try JSONDecoder().decode(Anything.self, from: Data(text.utf8))
            #expect(Anything(parsed) == known, "\(text)")
        }
        #expect(taken > 100)
    }
}
