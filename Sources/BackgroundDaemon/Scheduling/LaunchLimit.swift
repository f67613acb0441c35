//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import BackgroundProtocol

/// Says how often a program may be started for its session.
///
/// Each start doubles the time until the next one may be, so that a program that crashes at each is not started without end. Twice that
/// time passing without anything to start it for has it begin anew, and so does a start of the user's: another one of these. One that dealt
/// with all that it was started for is started again soon.
package struct LaunchLimit: Codable, Hashable, Sendable {
    /// Seconds after a first start.
    package static let firstDelay = 10.0
    package static let longestDelay = 86_400.0
    /// Seconds after a start that did what it was for.
    package static let settledDelay = 1.0

    /// When it was last started, in seconds since the reference date.
    private var last: Double?
    private var delay = 0.0

    package init() {}

    /// Of the limits of one program's sessions, which are kept one by one, the one that holds.
    package static func latest(_ limits: some Sequence<LaunchLimit>) -> LaunchLimit {
        limits.max { ($0.last ?? -.infinity, -$0.delay) < ($1.last ?? -.infinity, -$1.delay) } ?? LaunchLimit()
    }

    /// The program dealt with all that it was started for.
    package mutating func settle() { delay = min(delay, Self.settledDelay) }

    /// Has the program be started now, if it may.
    ///
    /// - Parameters:
    ///   - now: Seconds since the reference date.
    ///   - patience: Seconds after which a program that was started counts as hung: that it is looked at again then is no calm.
    /// - Returns: Nil where it may, or the seconds until then.
    package mutating func start(_ now: Double, patience: Double) -> Double? {
        let elapsed = last.map { now - $0 } ?? .infinity
        if elapsed >= patience + delay * 2 { delay = 0 }
        // A clock that was set back says nothing of how long it was.
        guard elapsed >= delay || elapsed < 0 else { return delay - elapsed }
        last = now
        delay = min(max(Self.firstDelay, delay * 2), Self.longestDelay)
        return nil
    }
}

/// A session, as far as it matters to whether its program is started for it.
struct LaunchCandidate: Hashable, Sendable {
    var session: Int64
    /// How the program is started; nil where it may not be.
    var way: BackgroundSettings.Launch?
    /// The program has the session.
    var isThere = false
    /// It was started for it, and has not dealt with what that was for.
    var isLaunched = false
    var transfers = 0
    /// Of these, those that need a decision, and whose end is durable.
    var asking = 0
    var ended = 0

    /// Everything is done, or something needs the program.
    var isDue: Bool {
        way != nil && !isThere && !isLaunched && transfers > 0 && (asking > 0 || ended == transfers)
    }
}

extension LaunchLimit {
    enum Verdict: Hashable, Sendable {
        case none
        /// It is looked at again after so many seconds.
        case wait(Double)
        /// For these sessions.
        case start([Int64])
    }

    /// Whether a program is started for one of its sessions, and for which others together with it: those that it would be started for in
    /// the same way.
    ///
    /// One start at a time: the others have their turn when the program has dealt with that, or it took too long.
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
