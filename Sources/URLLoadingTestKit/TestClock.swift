// SPDX-License-Identifier: Apache-2.0

public import Foundation
internal import LoadingEngine
public import URLLoading

/// A clock that stands still until a test advances it.
///
/// Sessions with this clock (`URLSessionConfiguration.testClock`) use it instead of the system's clocks: testing a timeout of an
/// hour takes no time, and no timeout expires because the machine is slow.
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

        /// Creates an instant.
        ///
        /// - Parameter elapsed: The time since the clock was made.
        public init(elapsed: Duration = .zero) { self.elapsed = elapsed }

        /// Returns the instant after a duration.
        public func advanced(by duration: Duration) -> Instant { Instant(elapsed: elapsed + duration) }
        /// Returns the duration from this instant to another one.
        public func duration(to other: Instant) -> Duration { other.elapsed - elapsed }
        /// Whether the first instant is earlier.
        public static func < (left: Instant, right: Instant) -> Bool { left.elapsed < right.elapsed }
    }

    let steps: SteppedClock

    /// Makes a clock that stands still until it is advanced.
    ///
    /// - Parameter date: The initial date, which cookies and stored responses use; default now.
    public init(date: Date = Date()) { steps = SteppedClock(start: date.timeIntervalSinceReferenceDate) }

    init(_ steps: SteppedClock) { self.steps = steps }

    /// The current time of the clock.
    public var now: Instant { Instant(elapsed: .nanoseconds(steps.elapsed)) }
    /// The current time of day of the clock.
    public var date: Date { Date(timeIntervalSinceReferenceDate: steps.seconds) }
    /// The resolution of the clock: a nanosecond.
    public var minimumResolution: Duration { .nanoseconds(1) }

    /// Advances the clock.
    ///
    /// The timeouts of tasks that were resumed before this call have begun by then, wherever their loads are. Returns when the
    /// tasks whose timeouts have passed have ended, their delegates and completion handlers have been told so, and the sleepers
    /// that were due have been resumed. Therefore do not call it while the delegate queue is suspended or waits for the caller.
    ///
    /// - Parameter duration: The duration; a negative duration has no effect.
    public func advance(by duration: Duration) async { await steps.step(by: Self.nanoseconds(duration)) }

    /// Waits until the clock reaches an instant.
    ///
    /// - Throws: `CancellationError` if the Swift task is cancelled first.
    public func sleep(until deadline: Instant, tolerance: Duration? = nil) async throws {
        try await steps.sleep(until: Self.nanoseconds(deadline.elapsed))
    }

    /// Waits until a number of sleepers are waiting for the clock at the same time.
    ///
    /// Sleepers are loads that pause before a retry, tasks with an `earliestBeginDate`, server-sent events that are about to
    /// reconnect, and calls of ``sleep(until:tolerance:)``. Timeouts do not count: they start as soon as a task is resumed.
    ///
    /// - Parameter count: The number of sleepers; default 1.
    /// - Throws: `CancellationError` if the Swift task is cancelled first.
    public func waitForSleepers(_ count: Int = 1) async throws { try await steps.waits(atLeast: count) }

    private static func nanoseconds(_ duration: Duration) -> Int64 {
        Int64(clamping: duration.attoseconds / 1_000_000_000)
    }
}

extension URLSessionConfiguration {
    /// The clock of the configuration's sessions; default nil: the system's clocks.
    ///
    /// It is used for `timeoutIntervalForRequest`, `timeoutIntervalForResource`, the pauses of `retryPolicy`, a task's
    /// `earliestBeginDate`, the age of stored responses, the expiration of cookies and HSTS policies, and the reconnection pauses
    /// of server-sent events. The system's clocks are still used for the lifetime of idle connections and of looked-up host names,
    /// the validity of certificates, WebSocket pings, metrics, and the dates that the storages report to the app. The
    /// daemon of background sessions uses only the system's clocks.
    public var testClock: TestClock? {
        get { steppedClock.map(TestClock.init) }
        set { steppedClock = newValue?.steps }
    }
}
