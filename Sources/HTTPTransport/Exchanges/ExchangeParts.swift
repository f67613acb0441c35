// SPDX-License-Identifier: Apache-2.0

package import HTTPWire
package import NIOCore

/// The queue of 1xx responses.
package struct InformationalResponses {
    package static let limit = 100
    /// The maximum total size of the responses' fields, because a few bytes of HTTP/2 can expand to many.
    private static let byteLimit = 262_144
    /// Allows one more response per this many bytes of an upload, for progress reports by the server.
    private static let uploadStep: Int64 = 65_536
    private static let bytesPerStep = 512

    private var heads: [ResponseHead] = []
    private var count = 0
    private var byteCount = 0

    package init() {}

    package var isEmpty: Bool { heads.isEmpty }

    /// Adds a response; returns false if the limits for this number of sent body bytes are exceeded.
    package mutating func append(_ head: ResponseHead, sentBodyBytes: Int64) -> Bool {
        count += 1
        byteCount += head.headers.bytes.count
        let steps = Int(clamping: sentBodyBytes / Self.uploadStep)
        guard count - Self.limit <= steps, byteCount - Self.byteLimit <= steps * Self.bytesPerStep else { return false }
        heads.append(head)
        return true
    }

    package mutating func popFirst() -> ResponseHead? { heads.isEmpty ? nil : heads.removeFirst() }
}

/// Decides whether to read more of a body, with hysteresis between the two water marks.
package struct BodyReading {
    private var isWanted = true
    private var isBypassed = false

    package init() {}

    package mutating func bypass(_ isBypassed: Bool) { self.isBypassed = isBypassed }

    /// Returns whether to read more; returns nil while the body is bypassed.
    package mutating func update(isSuspended: Bool, waiting: Int) -> Bool? {
        guard !isBypassed else { return nil }
        isWanted = !isSuspended && (isWanted ? waiting < Exchange.highWaterMark : waiting <= Exchange.lowWaterMark)
        return isWanted
    }
}

/// Decides when to wake a load for pieces of a large body that arrive in quick succession.
package struct BodyWakes {
    /// The minimum number of bytes of bulk data.
    ///
    /// For fewer bytes the load is woken at once, because the sender may be waiting for a reply.
    package static let smallestBulk = 16_384
    /// The minimum number of bytes for which the load is always woken at once.
    private static let gatheredBytes = 524_288
    /// The maximum time that fewer bytes than ``gatheredBytes`` wait.
    private static let gatheringTime = TimeAmount.microseconds(500)

    private var last = NIODeadline.distantPast
    private var isPlanned = false

    package init() {}

    package mutating func note(_ now: NIODeadline) { last = now }

    package func isDue(for count: Int, now: NIODeadline) -> Bool {
        count >= Self.gatheredBytes || now >= last + Self.gatheringTime
    }

    /// Returns the time of the next wake; nil if a wake is already scheduled.
    package mutating func plan() -> NIODeadline? {
        defer { isPlanned = true }
        return isPlanned ? nil : last + Self.gatheringTime
    }

    package mutating func planEnded() { isPlanned = false }
}
