// SPDX-License-Identifier: Apache-2.0

/// Limits the total number of key derivation rounds for a file, because the file's author chooses the numbers.
struct RoundBudget {
    /// The number of rounds left.
    ///
    /// The initial number is ten times 600,000, the number for each part of an identity with strong protection.
    private var left = 6_000_000

    /// Whether the rounds of one key are within a limit that exceeds what any program uses, but allows only seconds of work.
    static func isReasonable(_ rounds: Int) -> Bool { (1...3_000_000).contains(rounds) }

    /// Subtracts rounds of `times` hashes each.
    mutating func spend(_ rounds: Int, times: Int) throws(IdentityFailure) {
        left -= rounds * times
        if left < 0 { throw .unsupported("a file with so many key derivation rounds") }
    }
}
