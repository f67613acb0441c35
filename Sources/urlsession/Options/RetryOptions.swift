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
import URLLoading

/// `--retry` and what belongs to it: what failed in a way that may pass is tried again.
struct RetryOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Try so many times again what may pass: time-outs, unknown hosts, and answers of 408, 429, 500, 502, 503 and 504.",
            valueName: "count"
        )
    )
    var retry = 0

    @Flag(name: .customLong("retry-all-errors"), help: "With --retry: try again whatever failed.")
    var all = false

    @Flag(name: .customLong("retry-connrefused"), help: "With --retry: try again where a connection was refused.")
    var refused = false

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

    /// What is left of the attempts, and the rules for the next.
    struct Attempts: Sendable {
        fileprivate var left: Int
        fileprivate var pause = 1.0
        fileprivate let delay: Double?
        fileprivate let maximumTime: Double?
        private let options: RetryOptions
        private let begin = ContinuousClock.now

        fileprivate init(_ options: RetryOptions) {
            left = options.retry
            delay = options.delay
            maximumTime = options.maximumTime
            self.options = options
        }

        /// The seconds to wait before the next attempt, at least as many as the server wants; nil where none follows.
        func wait(atLeast seconds: Double? = nil) -> Double? {
            guard left > 0 else { return nil }
            // No longer than a day, whatever the server says.
            let wait = min(max(delay ?? pause, seconds ?? 0), 86_400)
            if let maximumTime, begin.duration(to: .now) / .seconds(1) + wait > maximumTime { return nil }
            return wait
        }

        /// The same after a response; nil, too, where it is no failure that may pass.
        ///
        /// - Parameters:
        ///   - response: The response.
        ///   - isFailure: Whether it is one in any case.
        /// - Returns: The seconds.
        func wait(after response: HTTPURLResponse, isFailure: Bool) -> Double? {
            // Those that curl tries again.
            guard [408, 429, 500, 502, 503, 504].contains(response.statusCode) || isFailure && options.all else { return nil }
            return wait(atLeast: response.retryAfter)
        }

        /// The same after a load that failed.
        ///
        /// What is wrong on this machine does not pass.
        fileprivate func wait(after failure: ToolFailure) -> Double? {
            if let wait = failure.retryWait { return wait }
            let mayPass = options.all ? ![0, 2, 3, 23, 26, 130].contains(failure.code) : failure.mayPass
            return mayPass || options.refused && failure.isRefusedConnection ? wait() : nil
        }
    }

    /// Runs a load, and again while it fails in a way that may pass.
    ///
    /// - Parameters:
    ///   - say: Is told what comes next, for the user to read.
    ///   - load: Is given what tells whether another attempt follows: a response is then a failure, and else delivered.
    /// - Throws: Why the last attempt failed.
    func repeating(say: (String) -> Void, _ load: (Attempts) async throws -> Void) async throws {
        var attempts = Attempts(self)
        while true {
            do {
                return try await load(attempts)
            } catch let failure as ToolFailure {
                guard let wait = attempts.wait(after: failure) else { throw failure }
                attempts.left -= 1
                say(
                    "\(failure.message ?? "it failed"); trying again in \(ByteText.rounded(wait, digits: 0)) s, "
                        + "\(Count.text(attempts.left, "attempt")) left after that")
                if wait > 0 { try await Task.sleep(for: .seconds(wait)) }
                attempts.pause = min(attempts.pause * 2, 600)
            }
        }
    }
}
