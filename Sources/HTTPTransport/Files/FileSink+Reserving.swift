//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import HTTPWire

/// How far blocks of a file are reserved before they are written, so that it is in few pieces and a full disk is found out early; but a
/// server's word alone takes no space.
struct BlockReservation: Sendable {
    /// The least and the most that is reserved ahead.
    private static let aheadRange: ClosedRange<Int64> = (1 << 20)...(32 << 20)

    /// How long the file is to be; nil where none are reserved.
    private var expected: Int64?
    private(set) var end: Int64

    init(expected: Int64?, written: Int64) {
        self.expected = expected
        end = written
    }

    /// Which blocks are to be reserved before so many bytes are written: for these, and ahead of them as many again as there are then.
    func next(_ count: Int64, written: Int64) -> Range<Int64>? {
        let start = max(end, written)
        let written = written.addingSaturating(count)
        guard let expected, written > end else { return nil }
        let end = min(
            expected, written.addingSaturating(min(max(written, Self.aheadRange.lowerBound), Self.aheadRange.upperBound)))
        return end > start ? start..<end : nil
    }

    mutating func note(end: Int64) { self.end = end }

    /// The file system reserves none.
    mutating func stop() { expected = nil }

    /// What is given back of a file that fills the disk, so that a database beside it can note as much; never of what was there before.
    static func givenBack(of written: Int64, since start: Int64) -> Int64 {
        max(0, min(aheadRange.lowerBound, written / 8, written - start))
    }
}
