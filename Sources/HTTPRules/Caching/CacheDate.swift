// SPDX-License-Identifier: Apache-2.0

import HTTPWire

/// Parses the dates used for freshness strictly: an invalid `Expires` counts as a time in the past (RFC 9111, section 5.3).
enum CacheDate {
    /// Seconds between 1970, the epoch of ``HTTPDate``, and 2001, the epoch of the caching rules.
    private static let referenceDate: Double = 978_307_200

    /// Returns seconds since the reference date, or nil if the text has none of the three forms of RFC 9110, section 5.6.7.
    ///
    /// "Although all date formats are specified to be case-sensitive, a cache recipient SHOULD match the field value
    /// case-insensitively", and "SHOULD consider a date with a zone abbreviation other than 'GMT' to be invalid" (RFC 9111,
    /// section 4.2; RFC 7234 accepted 'UTC'). The day of the week is not compared with the date.
    static func parse(_ text: String, now: Double) -> Double? {
        var text = text
        if let quick = text.withUTF8({ fixedDate(UnsafeRawBufferPointer($0)) }) { return quick }
        var bytes = Array(text.utf8)
        if ends(bytes, "gmt") { bytes.replaceSubrange((bytes.count - 3)..., with: "GMT".utf8) }
        guard hasForm(bytes) else { return nil }
        return HTTPDate.parse(String(decoding: bytes, as: UTF8.self), now: now + referenceDate).map { $0 - referenceDate }
    }

    /// Parses the date in a header field.
    static func parse(_ name: String, in headers: HeaderBlock, now: Double) -> Double? {
        guard let index = headers.index(of: name) else { return nil }
        let value = headers.lines[index].value
        if let quick = headers.bytes.withUnsafeBytes({ fixedDate(UnsafeRawBufferPointer(rebasing: $0[value])) }) { return quick }
        return parse(headers.value(at: index), now: now)
    }

    /// Parses the common form `Sun, 06 Nov 1994 08:49:37 GMT` without copying, because every lookup in the cache parses dates.
    ///
    /// Returns nil for every other text, which may still be a valid date.
    private static func fixedDate(_ bytes: UnsafeRawBufferPointer) -> Double? {
        guard matches(bytes, "aaa, 00 aaa 0000 00:00:00 GMT") else { return nil }
        func number(_ start: Int, _ count: Int) -> Int {
            (start..<start + count).reduce(0) { $0 * 10 + Int(bytes[$1] & 15) }
        }
        let (hour, minute, second) = (number(17, 2), number(20, 2), number(23, 2))
        guard let month = CivilDate.month(bytes[8..<11]), hour < 24, minute < 60, second < 60 else { return nil }
        let date = CivilDate(year: number(12, 4), month: month, day: number(5, 2))
        guard date.exists else { return nil }
        return Double((date.daysSince1970 - CivilDate.daysToReferenceDate) * 86_400 + hour * 3600 + minute * 60 + second)
    }

    /// Formats a time as an HTTP date.
    static func format(_ date: Double) -> String { HTTPDate.format(date + referenceDate) }

    private static func ends(_ bytes: [UInt8], _ zone: String) -> Bool {
        bytes.suffix(3).map(ASCII.lowercased).elementsEqual(zone.utf8)
    }

    private static func hasForm(_ bytes: [UInt8]) -> Bool {
        if matches(bytes, "aaa, 00 aaa 0000 00:00:00 GMT") || matches(bytes, "aaa aaa _0 00:00:00 0000") { return true }
        guard let comma = bytes.firstIndex(of: UInt8(ascii: ",")), (6...9).contains(comma),
            bytes[..<comma].allSatisfy({ ASCII.lowercased($0) &- UInt8(ascii: "a") < 26 })
        else { return false }
        return matches(bytes[comma...], ", 00-aaa-00 00:00:00 GMT")
    }

    /// Whether a text has a form in which `a` stands for a letter, `0` for a digit, and `_` for a digit or a space.
    ///
    /// Other characters of the form stand for themselves.
    private static func matches(_ bytes: some Collection<UInt8>, _ form: StaticString) -> Bool {
        guard bytes.count == form.utf8CodeUnitCount else { return false }
        for (offset, byte) in bytes.enumerated() {
            let isDigit = byte &- UInt8(ascii: "0") <= 9
            switch form.utf8Start[offset] {
            case UInt8(ascii: "a"): guard ASCII.lowercased(byte) &- UInt8(ascii: "a") < 26 else { return false }
            case UInt8(ascii: "0"): guard isDigit else { return false }
            case UInt8(ascii: "_"): guard isDigit || byte == 0x20 else { return false }
            case let expected: guard byte == expected else { return false }
            }
        }
        return true
    }
}
