//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

extension FixedWidthInteger {
    /// The sum, or the number nearest to it that there is.
    ///
    /// For counts, lengths and times that come from outside: a server, a file, another process or the app may say anything, also what no sum
    /// can hold, and no load ends the program by it.
    @inlinable
    package func addingSaturating(_ other: Self) -> Self {
        let (sum, overflows) = addingReportingOverflow(other)
        guard overflows else { return sum }
        return other < 0 ? .min : .max
    }

    /// The product, or the number nearest to it that there is.
    @inlinable
    package func multipliedSaturating(by other: Self) -> Self {
        let (product, overflows) = multipliedReportingOverflow(by: other)
        guard overflows else { return product }
        return (self < 0) == (other < 0) ? .max : .min
    }
}
