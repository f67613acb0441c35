// SPDX-License-Identifier: Apache-2.0

import BackgroundProtocol

/// Limits how often a program may be launched for its session.
///
/// Each launch doubles the delay before the next launch, so that a program that crashes at each launch is not launched endlessly.
/// The delay starts over if the program is not launched for a period of twice the delay, to which the time that a launched program
/// may take is added. It also starts over when the user starts the program, because that creates a new limit. A program that has
/// processed everything it was launched for can soon be launched again.
package struct LaunchLimit: Codable, Hashable, Sendable {
    /// The delay after a first launch, in seconds.
    package static let firstDelay = 10.0
    package static let longestDelay = 86_400.0
    /// The delay, in seconds, after a launch whose program processed everything it was launched for.
    package static let settledDelay = 1.0

    /// The time of the last launch, in seconds since the reference date.
    private var last: Double?
    private var delay = 0.0

    package init() {}

    /// Returns the limit that applies, from the limits stored with the sessions of one program.
    package static func latest(_ limits: some Sequence<LaunchLimit>) -> LaunchLimit {
        limits.max { ($0.last ?? -.infinity, -$0.delay) < ($1.last ?? -.infinity, -$1.delay) } ?? LaunchLimit()
    }

    /// Limits a delay that was read from a damaged file.
    mutating func limitDelay() { delay = min(max(0, delay), Self.longestDelay) }

    /// Shortens the delay, because the program has processed everything it was launched for.
    package mutating func settle() { delay = min(delay, Self.settledDelay) }

    /// Records a launch of the program, if it is allowed now.
    ///
    /// - Parameters:
    ///   - now: Seconds since the reference date.
    ///   - patience: Seconds after which a launched program counts as hung; this time does not count as a quiet period.
    /// - Returns: Nil if the launch is allowed; otherwise the number of seconds until a launch is allowed.
    package mutating func start(_ now: Double, patience: Double) -> Double? {
        let elapsed = last.map { now - $0 } ?? .infinity
        if elapsed >= patience + delay * 2 { delay = 0 }
        // If the clock was set back, the elapsed time is unknown.
        guard elapsed >= delay || elapsed < 0 else { return delay - elapsed }
        last = now
        delay = min(max(Self.firstDelay, delay * 2), Self.longestDelay)
        return nil
    }
}

/// The properties of a session that decide whether its program is launched.
struct LaunchCandidate: Hashable, Sendable {
    var session: Int64
    /// How the program is launched; nil if the program must not be launched.
    var way: BackgroundSettings.Launch?
    /// Whether a process of the program has joined the session.
    var isConnected = false
    /// Whether the program was launched for the session, and has not processed its events yet.
    var isLaunched = false
    var transfers = 0
    /// How many transfers need the program's decision, and how many have a durable end.
    var asking = 0
    var ended = 0

    /// Whether to launch the program: it may be launched, has neither joined nor been launched yet, and all transfers have ended or
    /// one needs its decision.
    var isDue: Bool { needsProgram && !isLaunched }

    /// Whether the program, which may be launched, has events to process and has not joined; the daemon must not end before it has.
    var needsProgram: Bool { way != nil && !isConnected && transfers > 0 && (asking > 0 || ended == transfers) }
}

extension LaunchLimit {
    enum Verdict: Hashable, Sendable {
        case none
        /// The session is checked again after this many seconds.
        case wait(Double)
        /// Launches the program for these sessions.
        case start([Int64])
    }

    /// Decides whether to launch a program for one of its sessions, and which other sessions with the same launch method share the
    /// launch.
    ///
    /// Only one launch is in progress at a time: other launches follow when the program has processed its events, or has taken too
    /// long.
    mutating func decide(
        _ session: Int64, among sessions: [LaunchCandidate], now: Double, patience: Double
    ) -> Verdict {
        guard let one = sessions.first(where: { $0.session == session }), one.isDue else { return .none }
        var next = self
        let wait = next.start(now, patience: patience)
        guard wait == nil, !sessions.contains(where: \.isLaunched) else { return .wait(max(wait ?? 1, 0.01)) }
        self = next
        return .start(sessions.filter { $0.isDue && $0.way == one.way }.map(\.session).sorted())
    }
}
