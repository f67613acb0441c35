// SPDX-License-Identifier: Apache-2.0

import BackgroundProtocol
import Testing

/// The hours in which transfers may run, by the wall clock.
struct TransferTermsTests {
    @Test(arguments: [
        ("22:00-06:00", "22:00-06:00"), ("22-6", "22:00-06:00"), ("0-24", "00:00-24:00"), ("9:5-9:06", "09:05-09:06"),
        ("23:59-0", "23:59-00:00"),
    ])
    func `hours are read in any common notation`(text: String, written: String) throws {
        #expect(try #require(DayHours(text)).text == written)
    }

    @Test(arguments: [
        "", "-", "22", "22-", "-6", "22-6-7", "24-6", "25-6", "22-24:01", "22:60-6", "22:000-6", "6-6", "06:00-6", "0-0", "22:-6",
        ":30-6", "+1-6", "a-b", "22:00:00-6", "22 - 6", "2٢-6",
    ])
    func `invalid hours are refused`(text: String) { #expect(DayHours(text) == nil) }

    private func terms(_ hours: String...) -> TransferTerms { TransferTerms(hours: hours.compactMap { DayHours($0) }) }

    private func second(_ hour: Int, _ minute: Int = 0, _ second: Int = 0) -> Int { hour * 3600 + minute * 60 + second }

    @Test func `hours may cross midnight, and their end is exclusive`() {
        let night = terms("22:00-06:00")
        for open in [second(22), second(23, 59, 59), 0, second(5, 59, 59)] { #expect(night.allow(second: open)) }
        for closed in [second(6), second(12), second(21, 59, 59)] { #expect(!night.allow(second: closed)) }
        let day = terms("08:30-17:00")
        for open in [second(8, 30), second(16, 59, 59)] { #expect(day.allow(second: open)) }
        for closed in [second(8, 29, 59), second(17), 0] { #expect(!day.allow(second: closed)) }
        #expect(terms("20-24").allow(second: second(23, 59, 59)) && !terms("20-24").allow(second: 0))
    }

    @Test func `without hours transfers may run at any time, and one matching range suffices`() {
        #expect(terms().allow(second: 0) && terms().change(after: 0) == nil)
        let two = terms("01:00-02:00", "03:00-04:00")
        #expect(two.allow(second: second(1)) && !two.allow(second: second(2)) && two.allow(second: second(3, 30)))
    }

    @Test func `the next check is when hours begin or end`() {
        let night = terms("22:00-06:00")
        #expect(night.change(after: second(21, 59, 59)) == 1)
        #expect(night.change(after: second(22)) == second(8))
        #expect(night.change(after: second(23)) == second(7))
        #expect(night.change(after: second(6)) == second(16))
        #expect(terms("20-24").change(after: second(23)) == second(1))
        // A leap second.
        #expect(terms("0-12").change(after: second(23, 59, 60)) == second(12))
    }

    @Test func `hours have begun if the clock is set forward past their start`() {
        // In spring the clock moves from 2:00 to 3:00.
        let early = terms("02:30-05:00")
        #expect(!early.allow(second: second(1, 59, 59)) && early.allow(second: second(3)))
    }
}
