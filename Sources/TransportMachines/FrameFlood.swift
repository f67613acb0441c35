//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import HTTPWire

/// Bounds what a peer can have us do with frames that carry nothing: PING, SETTINGS, empty frames, resets of what is gone.
///
/// Each takes a token, of which there are two thousand, and fifty more come each second; what carries something brings one along. No
/// honest peer comes near that: a keep-alive pings every few seconds.
package struct FrameFlood: Sendable, Hashable {
    package static let limit = 2_000
    private static let perSecond: Int64 = 50
    /// What servers' windows come to, and more: what was sent long ago excuses no flood.
    private static let mostUnansweredContent = 67_108_864
    /// How many answers may wait for a server that does not read.
    package static let mostUnreadAnswers = 10_000

    private var tokens = Self.limit
    /// Nanoseconds.
    private var filled: Int64
    /// Content that went out and that no WINDOW_UPDATE has answered: once of its stream, and once of the connection.
    private var unansweredContent = 0
    /// Answers to PING and SETTINGS that were written while the server read nothing.
    private var unreadAnswers = 0

    package init(now: Int64) { filled = now }

    /// A frame came that carries something.
    package mutating func earn() { tokens = min(Self.limit, tokens + 1) }

    /// A frame came that carries nothing.
    package mutating func spend(now: Int64) throws(HTTP2Failure) {
        if tokens == 0 {
            let earned = (now - filled) * Self.perSecond / 1_000_000_000
            guard earned > 0 else {
                throw HTTP2Failure(code: .enhanceYourCalm, message: "too many frames that carry nothing")
            }
            tokens = Int(min(Int64(Self.limit), earned))
            filled = now
        } else if tokens == Self.limit {
            filled = now
        }
        tokens -= 1
    }

    package mutating func sentContent(_ count: Int) {
        earn()
        unansweredContent = min(unansweredContent + 2 * count, Self.mostUnansweredContent)
    }

    /// A WINDOW_UPDATE came for which nothing waits: servers may say piece by piece that they took what was sent, also when all of it was.
    package mutating func spend(onUpdate increment: Int, now: Int64) throws(HTTP2Failure) {
        guard increment >= 256, increment <= unansweredContent else { return try spend(now: now) }
        unansweredContent -= increment
    }

    /// A frame that carries nothing wants an answer, which waits if the server does not read.
    package mutating func answer(isRead: Bool) throws(HTTP2Failure) {
        guard !isRead else { return }
        unreadAnswers += 1
        guard unreadAnswers <= Self.mostUnreadAnswers else {
            throw HTTP2Failure(code: .enhanceYourCalm, message: "frames ask for answers that are not read")
        }
    }

    /// The server reads again.
    package mutating func answersAreRead() { unreadAnswers = 0 }
}
