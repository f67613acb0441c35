// SPDX-License-Identifier: Apache-2.0

import HTTPWire

/// Tracks how far blocks of a file are reserved ahead of writing, to limit fragmentation and to detect a full disk early.
///
/// The length that a server announces does not reserve space by itself.
struct BlockReservation: Sendable {
    /// The minimum and maximum number of bytes that are reserved ahead.
    private static let aheadRange: ClosedRange<Int64> = (1 << 20)...(32 << 20)

    /// The expected length of the file; nil if no blocks are reserved.
    private var expected: Int64?
    private(set) var end: Int64

    init(expected: Int64?, written: Int64) {
        self.expected = expected
        end = written
    }

    /// Returns the range of bytes to reserve before writing `count` bytes; nil if nothing has to be reserved.
    ///
    /// Together with the blocks that are already reserved, the range covers those bytes, and as many further bytes as the file then
    /// has (within ``aheadRange``), but nothing beyond the expected length.
    func next(_ count: Int64, written: Int64) -> Range<Int64>? {
        let start = max(end, written)
        let written = written.addingSaturating(count)
        guard let expected, written > end else { return nil }
        let end = min(
            expected, written.addingSaturating(min(max(written, Self.aheadRange.lowerBound), Self.aheadRange.upperBound)))
        return end > start ? start..<end : nil
    }

    mutating func note(end: Int64) { self.end = end }

    /// Stops reserving, because the file system does not support it.
    mutating func stop() { expected = nil }

    /// Returns the number of bytes to release from a file that fills the disk, so that a database on that disk can record the
    /// state.
    ///
    /// The first `start` bytes are never released.
    static func bytesToRelease(of written: Int64, since start: Int64) -> Int64 {
        max(0, min(aheadRange.lowerBound, written / 8, written - start))
    }
}
