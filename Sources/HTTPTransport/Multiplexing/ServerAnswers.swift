// SPDX-License-Identifier: Apache-2.0

/// Whether a server has answered a request on a connection, or refuses all.
struct ServerAnswers {
    private(set) var hasAnswered = false
    /// Whether the connection stopped taking requests before its server had answered one; `isLastFruitless` tells whether it was
    /// the last of too many such connections in a row.
    private var isFruitless = false
    private(set) var isLastFruitless = false

    mutating func serverAnswered() { hasAnswered = true }

    /// Records that the connection takes no more requests, or has ended.
    ///
    /// Returns whether the connection was fruitless: the server refuses all requests and has answered none of them. Returns nil if
    /// that was already recorded, or if a connection that was not fruitless ends without a request for calm.
    mutating func count(isRefusingAll: Bool, asksForCalm: Bool) -> Bool? {
        let isFruitless = isRefusingAll && !hasAnswered
        guard !self.isFruitless, isFruitless || asksForCalm else { return nil }
        self.isFruitless = isFruitless
        return isFruitless
    }

    mutating func wasLastFruitless(_ isLast: Bool) { isLastFruitless = isLast }
}
