// SPDX-License-Identifier: Apache-2.0

internal import BackgroundProtocol
internal import HTTPWire

/// The counts that a task's `Progress` shows: the sums of the bytes sent and received.
struct ProgressCounts: Equatable, Sendable {
    /// The total number of bytes; -1 if it is not known.
    let total: Int64
    let done: Int64

    /// Adds the counts; the sums saturate, because the expected counts come from the peer and may be any number.
    init(_ counts: TransferCounts, hasResponse: Bool, isComplete: Bool) {
        let done = counts.sent.addingSaturating(counts.received)
        let sending = max(counts.expectedToSend, counts.sent)
        if isComplete {
            self.total = max(done, 1)
            self.done = max(done, 1)
        } else if counts.expectedToReceive > 0, counts.expectedToSend >= 0 {
            // The total is known only if the counts of both directions are.
            total = sending.addingSaturating(max(counts.expectedToReceive, counts.received))
            self.done = done
        } else {
            total = sending > 0 && !hasResponse ? sending : -1
            self.done = done
        }
    }
}
