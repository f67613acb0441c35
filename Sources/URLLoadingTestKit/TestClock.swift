//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

public import Foundation
internal import LoadingEngine
public import URLLoading

/// A clock that stands still until a test moves it.
///
/// A session whose configuration has it (`URLSessionConfiguration.testClock`) uses it in place of the system's clocks: a timeout of an
/// hour is tested in no time, and never runs out on a slow machine.
///
/// ```swift
/// let clock = TestClock()
/// configuration.testClock = clock
/// let load = Task { try await URLSession(configuration: configuration).data(from: url) }
/// _ = try await server.waitForRequests(1)
/// await clock.advance(by: .seconds(60))
/// // The load fails with `URLError.timedOut`.
/// ```
public final class TestClock: Clock {
    /// A point in time of a ``TestClock``.
    public struct Instant: InstantProtocol {
        /// The time since the clock was made.
        public var elapsed: Duration

        /// - Parameter elapsed: The time since the clock was made.
        public init(elapsed: Duration = .zero) { self.elapsed = elapsed }

        public func advanced(by duration: Duration) -> Instant { Instant(elapsed: elapsed + duration) }
        public func duration(to other: Instant) -> Duration { other.elapsed - elapsed }
        public static func < (left: Instant, right: Instant) -> Bool { left.elapsed < right.elapsed }
    }

    let steps: SteppedClock

    /// Makes a clock that stands still.
    ///
    /// - Parameter date: The time of day that it shows, for what cookies and stored responses go by; default now.
    public init(date: Date = Date()) { steps = SteppedClock(start: date.timeIntervalSinceReferenceDate) }

    init(_ steps: SteppedClock) { self.steps = steps }

    /// The time that the clock shows.
    public var now: Instant { Instant(elapsed: .nanoseconds(steps.elapsed)) }
    /// The time of day that the clock shows.
    public var date: Date { Date(timeIntervalSinceReferenceDate: steps.seconds) }
    /// A nanosecond.
    public var minimumResolution: Duration { .nanoseconds(1) }

    /// Moves the clock, and returns when what was due has been done: timeouts have ended their loads, pauses are over.
    ///
    /// - Parameter duration: How far; less than nothing is nothing.
    public func advance(by duration: Duration) async { await steps.step(by: Self.nanoseconds(duration)) }

    /// Waits until the clock shows an instant.
    ///
    /// - Throws: `CancellationError` where the Swift task is cancelled first.
    public func sleep(until deadline: Instant, tolerance: Duration? = nil) async throws {
        try await steps.sleep(until: Self.nanoseconds(deadline.elapsed))
    }

    /// Waits until so many wait for the clock at the same time: sessions that pause before another attempt, tasks with an
    /// `earliestBeginDate`, server-sent events between two connections, and ``sleep(until:tolerance:)``.
    ///
    /// Timeouts do not count: they run from when a task is resumed.
    ///
    /// - Parameter count: How many; default 1.
    /// - Throws: `CancellationError` where the Swift task is cancelled first.
    public func waitForSleepers(_ count: Int = 1) async throws { try await steps.waits(atLeast: count) }

    private static func nanoseconds(_ duration: Duration) -> Int64 {
        let (seconds, attoseconds) = duration.components
        let (whole, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        guard !overflow else { return seconds < 0 ? 0 : .max }
        let (sum, isTooLarge) = whole.addingReportingOverflow(attoseconds / 1_000_000_000)
        return isTooLarge ? .max : sum
    }
}

extension URLSessionConfiguration {
    /// The clock of the configuration's sessions; default nil, the system's.
    ///
    /// By it go `timeoutIntervalForRequest`, `timeoutIntervalForResource`, the pauses of `retryPolicy`, a task's `earliestBeginDate`, how
    /// fresh stored responses are, when cookies and strict transport security expire, and the pauses of server-sent events. By the system's clocks
    /// go the lives of connections and names, certificates, WebSocket pings, metrics, and what storages tell the app themselves. Sessions in the background
    /// have the system's time.
    public var testClock: TestClock? {
        get { steppedClock.map(TestClock.init) }
        set { steppedClock = newValue?.steps }
    }
}
