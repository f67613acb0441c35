//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
package import LoadingModel
import NIOCore

/// The way in from other threads: what is posted is carried out on the loop in the order of posting, and posting never blocks.
extension SessionEngine: LoadingService {
    package nonisolated func submit(_ order: TaskOrder, client: any LoadClient) -> Bool { mailbox.post(.submit(order, client)) }

    package nonisolated func wake() { loop.execute { self.assumeIsolated { $0.attend() } } }

    package nonisolated func command(_ command: TaskCommand, for task: TaskID) { post(.command(command, task)) }

    package nonisolated func invalidate() { post(.invalidate) }

    package nonisolated func renew(_ renewal: Renewal, completion: @escaping @Sendable () -> Void) {
        post(.renew(renewal, completion))
    }

    private nonisolated func post(_ message: Mailbox.Message) {
        if mailbox.post(message) { wake() }
    }

    /// Carries out what was posted.
    func attend() {
        mailbox.take(into: &messages)
        for message in messages { carryOut(message) }
        // What a burst needed is not kept.
        messages.removeAll(keepingCapacity: messages.count <= 64)
    }

    private func carryOut(_ message: Mailbox.Message) {
        switch message {
        case .submit(let order, let client): start(order, client: client)
        case .command(let command, let task): carryOut(command, for: task)
        case .invalidate: stopTakingOrders()
        case .renew(let renewal, let completion): renew(renewal, completion)
        }
    }
}
