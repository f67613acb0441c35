// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import HTTPWire
import SeededNumbers
import Testing

@Suite struct MultipartReplaceTests {
    /// The events as text, with adjacent data joined.
    private func joined(_ events: [MultipartReplace.Event]) -> [String] {
        var result: [String] = []
        for event in events {
            switch event {
            case .part(let headers): result.append("part " + headers.description)
            case .partEnd: result.append("end")
            case .data(let bytes):
                let text = String(decoding: bytes, as: UTF8.self)
                if let last = result.last, last.hasPrefix("data ") {
                    result[result.count - 1] = last + text
                } else {
                    result.append("data " + text)
                }
            }
        }
        return result
    }

    private func split(_ text: String, boundary: String = "b", by count: Int = .max) throws -> [String] {
        var splitter = try MultipartReplace(boundary: boundary)
        var events: [MultipartReplace.Event] = []
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            events += splitter.feed(rest.prefix(count))
            rest = rest.dropFirst(count)
        }
        return joined(events + splitter.finish())
    }

    @Test func `parts are found wherever the input is split`() throws {
        // RFC 2046, section 5.1.1.
        let rows: [(String, [String])] = [
            (
                "--b\r\nA: 1\r\n\r\none\r\n--b\r\nA: 2\r\n\r\ntwo\r\n--b--\r\n",
                ["part A: 1", "data one", "end", "part A: 2", "data two", "end"]
            ),
            // The preamble and the epilogue are ignored.
            ("pre\n-- b\n--b \t\r\n\r\none\r\n--b--after\r\n--b\r\n\r\nx", ["part ", "data one", "end"]),
            // "The boundary delimiter MUST occur at the beginning of a line"; a longer line is not a delimiter.
            ("--b\n\n--bx\n-- b\r--b\r\n--", ["part ", "data --bx\n-- b\r--b\r\n--", "end"]),
            ("--b\r\n\r\na\r\n\r\n--b\r\n\r\n\r\n--b--", ["part ", "data a\r\n", "end", "part ", "end"]),
            // The first part has no body, and the second part ends with the response.
            ("--b\r\nA: 1\r\n\r\n--b\r\nA: 2\r\n\r\n", ["part A: 1", "end", "part A: 2", "end"]),
            ("--b\r\n\r\nrest\r\n--b", ["part ", "data rest", "end"]),
            ("--b\r\n\r\nrest\r\n--", ["part ", "data rest\r\n--", "end"]),
            ("--b\r\n\r\n--b", ["part ", "end"]), ("--b\r\nA: 1\r\n", []), ("", []), ("--b--", []), ("nothing", []), ("--b-", []),
            // Folded, malformed and empty fields.
            (
                "--b\r\n lead: x\r\nA: 1\r\n\t2\r\nbroken\r\n: v\r\nb c: d\r\nN: \0\r\nB:\r\n\r\n--b--",
                ["part A: 1 2\nB: ", "end"]
            ),
            ("--b\r\n\r\nx\r\n--b\rz\r\n--b--", ["part ", "data x\r\n--b\rz", "end"]),
        ]
        for (text, expected) in rows {
            for count in [Int.max, 1, 2, 3, 5, 7] {
                #expect(try split(text, by: count) == expected, "\(text.debugDescription) by \(count)")
            }
        }
    }

    @Test func `a boundary that is declared with its leading dashes is accepted, because cameras send it`() throws {
        #expect(
            try split("--b\r\n\r\none\r\n--b\r\n\r\ntwo\r\n--b--\r\n", boundary: "--b") == [
                "part ", "data one", "end", "part ", "data two", "end",
            ])
        #expect(try split("----b\r\n\r\none\r\n----b--\r\n", boundary: "--b") == ["part ", "data one", "end"])
        #expect(try split("--b \r\n\r\none\r\n--b--\r\n", boundary: "--b", by: 1) == ["part ", "data one", "end"])
        #expect(try split("--bc\r\n\r\none\r\n--bc--\r\n", boundary: "--bc", by: 1) == ["part ", "data one", "end"])
    }

    @Test func `data is delivered before the part ends`() throws {
        var splitter = try MultipartReplace(boundary: "frame")
        let events = splitter.feed("--frame\r\n\r\nabc\r\n--fr".utf8)
        #expect(joined(events) == ["part ", "data abc"])
        #expect(joined(splitter.feed("ed\r".utf8)) == ["data \r\n--fred"])
    }

    @Test func `header sections and padding are limited in size`() throws {
        let endless = String(repeating: "x", count: 2 * MultipartReplace.headerLimit)
        let long = "A: " + String(repeating: "x", count: MultipartReplace.headerLimit) + "\r\n\r\nz\r\n--b--\r\n"
        for rest in [endless, long] {
            for count in [1000, 1001, Int.max] {
                #expect(try split("--b\r\n" + rest, by: count) == ["part ", "data " + rest, "end"], "by \(count)")
                let events = try split("--b\r\nA: 1\r\n\r\none\r\n--b\r\n" + rest, by: count)
                #expect(events == ["part A: 1", "data one", "end", "part ", "data " + rest, "end"], "by \(count)")
            }
        }
        let padded = "\r\n--b" + String(repeating: " ", count: 200)
        #expect(try split("--b\r\n\r\nx" + padded, by: 50) == ["part ", "data x" + padded, "end"])
    }

    @Test(arguments: [1, 7, Int.max])
    func `a header section with too many lines is data, and one at the limit is not`(by count: Int) throws {
        let lines = { String(repeating: "A:1\n", count: $0) }
        let tooMany = "\(lines(MultipartReplace.lineLimit + 1))\nx"
        #expect(try split("--b\n" + tooMany, by: count) == ["part ", "data " + tooMany, "end"])
        let events = try split("--b\n\(lines(MultipartReplace.lineLimit))\nx\n--b\nB: 2\n\ny", by: count)
        #expect(events.count == 6 && events.dropFirst().prefix(4) == ["data x", "end", "part B: 2", "data y"])
    }

    @Test func `a folded line may span as many lines as the limit allows`() throws {
        let folds = String(repeating: " b\r\n", count: MultipartReplace.lineLimit - 1)
        let events = try split("--b\r\nA: b\r\n\(folds)\r\n", by: 100)
        #expect(events.first == "part A: " + Array(repeating: "b", count: MultipartReplace.lineLimit).joined(separator: " "))
    }

    @Test func `an invalid boundary is refused`() {
        for boundary in ["", String(repeating: "b", count: 201), "a\r\nb"] {
            #expect(throws: MultipartReplace.Malformed.badBoundary) { try MultipartReplace(boundary: boundary) }
        }
    }

    @Test func `the result does not depend on how a body is split`() throws {
        let pieces = ["--b", "--", "\r\n", "\r", "\n", "b", "-", "x", "A: 1\r\n", "\r\n\r\n", " ", "--b\r\n", "\r\n--b--"]
        for seed in 0..<2000 as Range<UInt64> {
            var random = SeededNumbers(seed: seed)
            let text = "--b\r\n" + random.text(of: pieces, upTo: 16)
            let whole = try split(text)
            for count in 1...4 {
                #expect(try split(text, by: count) == whole, "seed \(seed) by \(count): \(text.debugDescription)")
            }
        }
    }
}
