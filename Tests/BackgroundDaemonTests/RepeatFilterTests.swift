// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import BackgroundDaemon

/// Repeated lines of the daemon's log.
struct RepeatFilterTests {
    private typealias Line = RepeatFilter.Line

    private static func line(_ text: String) -> Line { Line(level: .info, text: text) }

    @Test func `a line that is repeated is written once, and then its count`() {
        var filter = RepeatFilter()
        var lines: [Line] = []
        for index in 0..<570 { lines += filter.admit(Self.line("again"), now: Double(index) / 570) }
        #expect(lines == [Self.line("again")])
        #expect(filter.admit(Self.line("other"), now: 5) == [Self.line("other")])
        #expect(filter.admit(Self.line("again"), now: 11) == [Self.line("again (569 more times)"), Self.line("again")])
        #expect(filter.admit(Self.line("other"), now: 16) == [Self.line("other")])
    }

    @Test func `a bounded number of lines is remembered, and no count is lost`() {
        var filter = RepeatFilter()
        var lines: [Line] = []
        for round in 0..<2 {
            for number in 0...RepeatFilter.limit {
                for _ in 0..<2 { lines += filter.admit(Self.line("\(number)"), now: Double(round)) }
            }
        }
        lines += filter.admit(Self.line("last"), now: 100)
        for number in 0...RepeatFilter.limit {
            let counts = lines.compactMap { line -> Int? in
                let words = line.text.split(separator: " ")
                guard words.first == "\(number)" else { return nil }
                return words.count > 1 ? Int(words[1].dropFirst()) : 1
            }
            #expect(counts.reduce(0, +) == 4, "\(number): \(counts)")
        }
    }
}
