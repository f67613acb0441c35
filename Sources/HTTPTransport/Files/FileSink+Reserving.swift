//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import CLoadingSystem
import HTTPWire
import LoadingModel

/// Blocks are reserved before they are written, so that a file is in few pieces and a full disk is found out early; but a server's word
/// alone takes no space.
extension FileSink {
    /// The least and the most that is reserved ahead.
    private static let aheadRange: ClosedRange<Int64> = (1 << 20)...(32 << 20)

    /// Reserves blocks for bytes that are about to be written, and ahead of them as many again as there are then.
    ///
    /// To be called on the thread that writes.
    ///
    /// - Returns: 0, or the negative error where there is no space.
    func reserve(_ count: Int64) -> CInt {
        guard let (start, end) = nextReservation(count) else { return 0 }
        let status = cls_preallocate(descriptor, start, end - start)
        switch -status {
        case 0: noteReservation(end)
        case SystemFailure.noSpace, SystemFailure.overQuota, SystemFailure.inputOutput: return status
        // Reserving is a favour that not every file system does.
        default: noteReservation(nil)
        }
        return 0
    }

    /// What is given back of a file that fills the disk, so that a database beside it can note as much; never of what was there before.
    static func givenBack(of written: Int64, since start: Int64) -> Int64 {
        max(0, min(aheadRange.lowerBound, written / 8, written - start))
    }

    static func reservationEnd(written: Int64, expected: Int64) -> Int64 {
        let ahead = min(max(written, aheadRange.lowerBound), aheadRange.upperBound)
        return min(expected, written.addingSaturating(ahead))
    }
}
