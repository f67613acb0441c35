// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import URLLoading

/// `--retry` and related options: loads that failed temporarily are retried.
struct RetryOptions: ParsableArguments {
    @Option(
        "--retry <count>",
        "Retry temporary failures this many times: timeouts, unknown hosts, and status 408, 429, 500, 502, 503 and 504.")
    var retry = 0

    @Flag("--retry-all-errors", "With --retry: retry all failures.")
    var all = false

    @Flag("--retry-connrefused", "With --retry: also retry if a connection was refused.")
    var refused = false

    @Option(
        "--retry-delay <seconds>",
        "How long to wait before each retry, by default 1 second, then 2, 4 and so on; longer if the server says so.")
    var delay: Double?

    @Option("--retry-max-time <seconds>", "Start no retry after this time.")
    var maximumTime: Double?

    func validate() throws {
        if retry < 0 || [delay, maximumTime].contains(where: { $0.map { !($0 >= 0) } ?? false }) {
            throw ValidationError("--retry, --retry-delay and --retry-max-time must not be negative.")
        }
    }

    /// The remaining retries, and their rules.
    struct Attempts: Sendable {
        var left = 0
        var delay: Double?
        var maximumTime: Double?
        var retriesAll = false
        var retriesRefused = false
        fileprivate var pause = 1.0
        private let begin = ContinuousClock.now

        /// Returns the seconds to wait before the next retry, at least as many as the server demands; nil if there is no retry.
        func wait(atLeast seconds: Double? = nil) -> Double? {
            guard left > 0 else { return nil }
            // The wait is at most a day, whatever the server demands.
            let wait = min(max(delay ?? pause, seconds ?? 0), 86_400)
            if let maximumTime, begin.duration(to: .now) / .seconds(1) + wait > maximumTime { return nil }
            return wait
        }

        /// Returns the seconds to wait before a retry after a response; nil if the response is not a temporary failure, or there is
        /// no retry.
        ///
        /// - Parameters:
        ///   - response: The response.
        ///   - isFailure: Whether an HTTP error counts as a failure.
        /// - Returns: The seconds.
        func wait(after response: HTTPURLResponse, isFailure: Bool) -> Double? {
            // The codes that curl retries.
            guard [408, 429, 500, 502, 503, 504].contains(response.statusCode) || isFailure && retriesAll else { return nil }
            return wait(atLeast: response.retryAfter)
        }

        /// Returns the seconds to wait after a failed load.
        ///
        /// Failures on this machine, such as write errors, are never retried.
        fileprivate func wait(after failure: ToolFailure) -> Double? {
            if let wait = failure.retryWait { return wait }
            let isTemporary = retriesAll ? ![0, 2, 3, 23, 26, 130].contains(failure.code) : failure.isTemporary
            return isTemporary || retriesRefused && failure.isRefusedConnection ? wait() : nil
        }
    }

    /// Runs a load, and retries it while it fails temporarily.
    ///
    /// - Parameters:
    ///   - say: Called with a message for the user before a retry.
    ///   - load: Called with the remaining attempts, which determine whether a response is delivered, or is a failure to retry.
    /// - Throws: The failure of the last attempt.
    func repeating(say: (String) -> Void, _ load: (Attempts) async throws -> Void) async throws {
        var attempts = Attempts(
            left: retry, delay: delay, maximumTime: maximumTime, retriesAll: all, retriesRefused: refused)
        while true {
            do {
                return try await load(attempts)
            } catch let failure as ToolFailure {
                guard let wait = attempts.wait(after: failure) else { throw failure }
                attempts.left -= 1
                say(
                    "\(failure.message ?? "the load failed"); retrying in \(ByteText.rounded(wait, digits: 0)) s, "
                        + "\(Count.text(attempts.left, "attempt")) left after that")
                if wait > 0 { try await Task.sleep(for: .seconds(wait)) }
                attempts.pause = min(attempts.pause * 2, 600)
            }
        }
    }
}
