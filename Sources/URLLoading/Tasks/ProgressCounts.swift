//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

internal import HTTPWire

/// What `Progress` is told of a task: both directions together.
struct ProgressCounts: Equatable, Sendable {
    /// -1 where it is not known.
    let total: Int64
    let done: Int64

    /// What is expected is a server's word and may be any number, as far as one can be.
    init(
        sent: Int64, expectedToSend: Int64, received: Int64, expectedToReceive: Int64, hasResponse: Bool, isComplete: Bool
    ) {
        let done = sent.addingSaturating(received)
        let sending = max(expectedToSend, sent)
        if isComplete {
            self.total = max(done, 1)
            self.done = max(done, 1)
        } else if expectedToReceive > 0, expectedToSend >= 0 {
            // The whole is known once both directions are.
            total = sending.addingSaturating(max(expectedToReceive, received))
            self.done = done
        } else {
            total = sending > 0 && !hasResponse ? sending : -1
            self.done = done
        }
    }
}
