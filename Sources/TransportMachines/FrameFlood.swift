// SPDX-License-Identifier: Apache-2.0

package import HTTPWire

/// Limits the work that a peer can cause with frames that carry nothing: PING, SETTINGS, empty frames, resets of closed streams.
///
/// Each such frame takes a token from a bucket of 2,000, which refills at 50 per second. Each frame that carries something adds a
/// token. A well-behaved peer stays far below the limit: keep-alive pings are seconds apart.
package struct FrameFlood: Sendable, Hashable {
    package static let limit = 2_000
    private static let perSecond: Int64 = 50
    /// The cap for ``unacknowledgedContent``, so that content sent long ago does not excuse a flood; the cap exceeds the windows of
    /// servers.
    private static let maximumUnacknowledgedContent = 67_108_864
    /// The maximum number of replies that may be queued for a server that does not read.
    package static let maximumUnreadReplies = 10_000

    private let limit: Int
    private var tokens: Int
    /// When the bucket was last refilled, in nanoseconds.
    private var filled: Int64
    /// The number of sent content bytes that no WINDOW_UPDATE has covered yet, counted twice: for the stream and for the
    /// connection.
    private var unacknowledgedContent = 0
    /// The number of replies to PING and SETTINGS that were written while the server read nothing.
    private var unreadReplies = 0

    package init(now: Int64, limit: Int = Self.limit) {
        self.limit = limit
        tokens = limit
        filled = now
    }

    /// Counts a received frame that carries something.
    package mutating func earn(_ count: Int = 1) { tokens = min(limit, tokens + count) }

    /// Counts a received frame that carries nothing.
    package mutating func spend(now: Int64) throws(HTTP2Failure) {
        if tokens == 0 {
            let earned = (now - filled) * Self.perSecond / 1_000_000_000
            guard earned > 0 else {
                throw HTTP2Failure(code: .enhanceYourCalm, message: "too many frames that carry nothing")
            }
            tokens = Int(min(Int64(limit), earned))
            filled = now
        } else if tokens == limit {
            filled = now
        }
        tokens -= 1
    }

    package mutating func sentContent(_ count: Int) {
        earn()
        unacknowledgedContent = min(unacknowledgedContent + 2 * count, Self.maximumUnacknowledgedContent)
    }

    /// Counts a WINDOW_UPDATE that unblocks no content.
    ///
    /// Servers may acknowledge sent content in pieces, which costs no token.
    package mutating func spend(onUpdate increment: Int, now: Int64) throws(HTTP2Failure) {
        guard increment >= 256, increment <= unacknowledgedContent else { return try spend(now: now) }
        unacknowledgedContent -= increment
    }

    /// Counts a reply to a frame that carries nothing; the reply is queued if the server does not read.
    package mutating func answer(isRead: Bool) throws(HTTP2Failure) {
        guard !isRead else { return }
        unreadReplies += 1
        guard unreadReplies <= Self.maximumUnreadReplies else {
            throw HTTP2Failure(code: .enhanceYourCalm, message: "the server does not read the replies to its frames")
        }
    }

    /// Resets the number of unread replies, because the server reads again.
    package mutating func repliesWereRead() { unreadReplies = 0 }
}
