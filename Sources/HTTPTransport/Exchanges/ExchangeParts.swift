//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import HTTPWire
package import NIOCore

/// The 1xx responses that wait for the load.
package struct InformationalResponses {
    package static let limit = 100
    /// Of all their fields: a few bytes of HTTP/2 may stand for very many.
    private static let byteLimit = 262_144
    /// For so many bytes of an upload there may be one more, which tells how far the server is.
    private static let uploadStep: Int64 = 65_536
    private static let bytesPerStep = 512

    private var heads: [ResponseHead] = []
    private var count = 0
    private var byteCount = 0

    package init() {}

    package var isEmpty: Bool { heads.isEmpty }

    /// Answers false where that was one too many, or too much, for so many bytes of a body that were sent.
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

/// Whether more of a body is to be read, with the distance between the two marks as hysteresis.
package struct BodyReading {
    private var isWanted = true
    private var isBypassed = false

    package init() {}

    package mutating func bypass(_ isBypassed: Bool) { self.isBypassed = isBypassed }

    /// Nil where that is for others to say.
    package mutating func update(isSuspended: Bool, waiting: Int) -> Bool? {
        guard !isBypassed else { return nil }
        isWanted = !isSuspended && (isWanted ? waiting < Exchange.highWaterMark : waiting <= Exchange.lowWaterMark)
        return isWanted
    }
}

/// When a load is woken for pieces of a large body that follow each other closely.
package struct BodyWakes {
    /// Below this it is woken at once: the body is not bulk data, and the sender may be waiting for an answer.
    package static let smallestBulk = 16_384
    /// Bytes for which it is woken at once, however shortly after the last time.
    private static let gatheredBytes = 524_288
    /// How long anything else may lie before it is woken for it.
    private static let gatheringTime = TimeAmount.microseconds(500)

    private var last = NIODeadline.distantPast
    private var isPlanned = false

    package init() {}

    package mutating func note(_ now: NIODeadline) { last = now }

    package func areDue(for count: Int, now: NIODeadline) -> Bool {
        count >= Self.gatheredBytes || now >= last + Self.gatheringTime
    }

    /// When the next is due; nil where that is planned already.
    package mutating func plan() -> NIODeadline? {
        defer { isPlanned = true }
        return isPlanned ? nil : last + Self.gatheringTime
    }

    package mutating func planEnded() { isPlanned = false }
}
