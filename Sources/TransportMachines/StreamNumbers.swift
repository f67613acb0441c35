// SPDX-License-Identifier: Apache-2.0

package import HTTPWire

/// The identifiers of a connection's streams (RFC 9113, section 5.1.1), and which of them the server's frames may refer to.
///
/// Frames may still be in flight for streams that we reset, or that failed (section 5.1).
package struct StreamNumbers: Sendable {
    package static let last: UInt32 = 0x7FFF_FFFF
    /// The number of resets that are remembered individually.
    private static let limit = 4_096

    /// The identifier of the next stream.
    package private(set) var next: UInt32 = 1
    private var reset: Set<UInt32> = []
    private var order: [UInt32] = []
    private var oldest = 0
    /// The highest reset stream that is no longer remembered individually.
    private var highestForgotten: UInt32 = 0

    package init() {}

    package mutating func open() { next += 2 }

    package mutating func reset(_ stream: UInt32) {
        guard reset.insert(stream).inserted else { return }
        guard order.count == Self.limit else { return order.append(stream) }
        reset.remove(order[oldest])
        highestForgotten = max(highestForgotten, order[oldest])
        order[oldest] = stream
        oldest = (oldest + 1) % Self.limit
    }

    /// Validates a frame for a stream that is not open.
    ///
    /// A frame that was in flight when we reset its stream is not an error. After END_STREAM, a frame is an error unless
    /// `mayBeOver` is set.
    package func accept(_ stream: UInt32, mayBeOver: Bool) throws(HTTP2Failure) {
        guard stream % 2 == 1, stream < next else {
            throw HTTP2Failure(code: .protocolError, message: "a frame is for a stream that was not opened (\(stream))")
        }
        guard mayBeOver || stream <= highestForgotten || reset.contains(stream) else {
            throw HTTP2Failure(code: .streamClosed, message: "a frame is for a stream that the server has ended (\(stream))")
        }
    }
}
