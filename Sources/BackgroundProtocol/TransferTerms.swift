// SPDX-License-Identifier: Apache-2.0

/// When the daemon's transfers may run, and their total rate.
package struct TransferTerms: Sendable, Hashable {
    /// The hours of each day; empty if transfers may run at any time.
    package var hours: [DayHours] = []
    /// The limit in bytes per second; nil for no limit.
    package var rate: Int64?

    package init(hours: [DayHours] = [], rate: Int64? = nil) {
        self.hours = hours
        self.rate = rate
    }

    /// Whether transfers may run at a given time of day.
    ///
    /// - Parameter second: The local time in seconds since midnight.
    /// - Returns: Whether that time is within the hours.
    package func allow(second: Int) -> Bool { hours.isEmpty || hours.contains { $0.contains(second) } }

    /// The seconds until the next start or end of the hours; nil if there are no hours.
    package func change(after second: Int) -> Int? {
        hours.flatMap { [$0.start * 60, $0.end * 60] }.map { bound in
            let rest = (bound - second) % DayHours.day
            return rest > 0 ? rest : rest + DayHours.day
        }.min()
    }
}

/// A period of each day, in local time.
package struct DayHours: Sendable, Hashable {
    /// The seconds of a day.
    static let day = 86_400
    private static let minutes = 1_440

    /// The start in minutes since midnight; an end that is not after the start is on the next day.
    package let start: Int
    package let end: Int

    /// Parses `22:00-06:00` or `22-6`; 24:00 is midnight.
    ///
    /// Nil if the text is malformed, or the start equals the end.
    ///
    /// - Parameter text: The text.
    package init?(_ text: some StringProtocol) {
        let ends = String(text)[...].utf8.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false).map(Self.minute)
        guard ends.count == 2, let start = ends[0], let end = ends[1], start < Self.minutes, start != end else { return nil }
        self.start = start
        self.end = end
    }

    private static func minute(_ text: Substring.UTF8View) -> Int? {
        let parts = text.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false).map(number)
        guard let hour = parts.first ?? nil, parts.count <= 2, let minute = parts.count == 2 ? parts[1] : 0, minute < 60
        else { return nil }
        let sum = hour * 60 + minute
        return sum <= minutes ? sum : nil
    }

    private static func number(_ text: Substring.UTF8View) -> Int? {
        let isNumber = (1...2).contains(text.count) && text.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        return isNumber ? Int(Substring(text)) : nil
    }

    /// Whether a time of day is in the period, which includes its start but not its end.
    func contains(_ second: Int) -> Bool {
        let (start, end) = (start * 60, end * 60)
        return start < end ? start <= second && second < end : start <= second || second < end
    }

    package var text: String { "\(Self.text(of: start))-\(Self.text(of: end))" }

    private static func text(of minute: Int) -> String {
        [minute / 60, minute % 60].map { $0 < 10 ? "0\($0)" : "\($0)" }.joined(separator: ":")
    }
}

extension TransferTerms {
    /// A description for display.
    package var text: String {
        let time = hours.isEmpty ? "at any time" : hours.map(\.text).joined(separator: ", ")
        return time + (rate.map { ", \($0) bytes a second" } ?? ", as fast as they can")
    }
}
