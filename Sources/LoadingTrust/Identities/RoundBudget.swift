//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
/// Limits the total number of key derivation rounds for a file, because the file's author chooses the numbers.
struct RoundBudget {
    /// The number of rounds left, initially ten times that of an identity with strong protection, which has 600,000 for each part.
    private var left = 6_000_000

    /// Whether the rounds of one key are within the limit, which is above the number that any program uses, but takes only seconds.
    static func isReasonable(_ rounds: Int) -> Bool { (1...3_000_000).contains(rounds) }

    /// Subtracts rounds of `times` hashes each.
    mutating func spend(_ rounds: Int, times: Int) throws(IdentityFailure) {
        left -= rounds * times
        if left < 0 { throw .unsupported("a file with so many key derivation rounds") }
    }
}
