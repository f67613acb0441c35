// SPDX-License-Identifier: Apache-2.0

extension FixedWidthInteger {
    /// Returns the sum, clamped to the range of the type.
    ///
    /// Use this for counts, lengths and times from a server, a file, another process or the app: such numbers can have any value,
    /// and an overflow must not crash the process.
    @inlinable
    package func addingSaturating(_ other: Self) -> Self {
        let (sum, overflows) = addingReportingOverflow(other)
        guard overflows else { return sum }
        return other < 0 ? .min : .max
    }

    /// Returns the product, clamped to the range of the type.
    @inlinable
    package func multipliedSaturating(by other: Self) -> Self {
        let (product, overflows) = multipliedReportingOverflow(by: other)
        guard overflows else { return product }
        return (self < 0) == (other < 0) ? .max : .min
    }
}
