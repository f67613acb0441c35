//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import ArgumentParser
import Foundation

/// `--retry` and what belongs to it: what failed in a way that may pass is tried again.
struct RetryOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Try so many times again what may pass: time-outs, unknown hosts, and answers of 408, 429, 500, 502, 503 and 504.",
            valueName: "count"
        )
    )
    var retry = 0

    @Option(
        name: .customLong("retry-delay"),
        help: ArgumentHelp(
            "Wait so long before each, by default 1 second, then 2, 4 and so on; longer where the server says so.",
            valueName: "seconds"
        )
    )
    var delay: Double?

    @Option(
        name: .customLong("retry-max-time"), help: ArgumentHelp("Begin no other after so long a time.", valueName: "seconds"))
    var maximumTime: Double?

    func validate() throws {
        if retry < 0 || [delay, maximumTime].contains(where: { $0.map { !($0 >= 0) } ?? false }) {
            throw ValidationError("--retry, --retry-delay and --retry-max-time begin at 0.")
        }
    }

    /// Runs a load, and again while it fails in a way that may pass.
    ///
    /// - Parameters:
    ///   - say: Is told what comes next, for the user to read.
    ///   - load: Is told whether an answer that may pass is a failure, since another attempt is left.
    /// - Throws: Why the last attempt failed.
    func repeating(
        say: (String) -> Void, _ load: (_ mayRetry: Bool) async throws -> Void
    ) async throws {
        let begin = ContinuousClock.now
        var left = retry
        var pause = 1.0
        while true {
            do {
                return try await load(left > 0)
            } catch let failure as ToolFailure {
                guard left > 0, let passing = failure.passing else { throw failure }
                // No longer than a day, whatever the server says.
                let wait = min(max(delay ?? pause, passing.after ?? 0), 86_400)
                if let maximumTime, begin.duration(to: .now) / .seconds(1) + wait > maximumTime { throw failure }
                left -= 1
                let attempts = Count.text(left, "attempt")
                say(
                    "\(failure.message ?? "it failed"); trying again in \(ByteText.rounded(wait, digits: 0)) s, "
                        + "\(attempts) left after that")
                if wait > 0 { try await Task.sleep(for: .seconds(wait)) }
                pause = min(pause * 2, 600)
            }
        }
    }
}

extension ToolFailure {
    /// That it may be gone the next time, and in how many seconds, where the server says that.
    struct Passing: Sendable {
        var after: Double?
    }

    /// The statuses that curl tries again.
    static func isPassing(_ status: Int) -> Bool { [408, 429, 500, 502, 503, 504].contains(status) }

    /// The seconds of a `Retry-After` (RFC 9110, section 10.2.3), which may be a number or a date.
    static func seconds(retryAfter text: String?, now: Date = Date()) -> Double? {
        guard let text = text?.trimmingCharacters(in: .whitespaces) else { return nil }
        if let seconds = Int(text) { return seconds > 0 ? Double(seconds) : nil }
        let reader = DateFormatter()
        reader.locale = Locale(identifier: "en_US_POSIX")
        reader.timeZone = TimeZone(secondsFromGMT: 0)
        reader.dateFormat = "EEE, dd MMM yyyy HH:mm:ss zzz"
        return reader.date(from: text).flatMap { max(0, $0.timeIntervalSince(now)) }
    }
}
