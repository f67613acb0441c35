//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
/// Counts the rounds by which keys are made of a password, all those of a file together: its writer decides how many there are.
struct RoundBudget {
    /// Ten times as many as an identity takes that was made to resist guessing (600,000 for each of its parts).
    private var left = 6_000_000

    /// More rounds than anybody uses for one key, and few enough to be done with in some seconds.
    static func isReasonable(_ rounds: Int) -> Bool { (1...3_000_000).contains(rounds) }

    /// Takes rounds of so many hashes each from what is left.
    mutating func spend(_ rounds: Int, times: Int) throws(IdentityFailure) {
        left -= rounds * times
        if left < 0 { throw .unsupported("a file of so many rounds") }
    }
}
