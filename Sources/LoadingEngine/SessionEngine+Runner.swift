//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
import HTTPTransport
import LoadingModel
import NIOCore

/// The entrances for callers that are already on the loop: the mailbox, the session's loads, and what these start on their own.
extension SessionEngine: LoadRunner, BackgroundLoading {
    /// Lets callers on the loop call the engine without the runtime's isolation check, which costs more than the call.
    //
    // `@unchecked`: accessed only on the loop.
    final class Entrance: @unchecked Sendable {
        fileprivate(set) var processMessages: (() -> Void)?
        fileprivate var proceed: ((NIOLoopBound<Load>) -> Void)?
    }

    func openEntrance(for session: SessionFacts) {
        session.background = self
        entrance.processMessages = { [unowned self] in processMessages() }
        entrance.proceed = { [unowned self] in proceed($0) }
    }

    nonisolated func proceed(_ load: Load) {
        let woken = NIOLoopBound(load, eventLoop: loop)
        if let proceed = entrance.proceed { proceed(woken) } else { assumeIsolated { $0.proceed(woken) } }
    }

    nonisolated func startInBackground(_ order: TaskOrder, client: any LoadClient) {
        assumeIsolated { $0.start(order, client: client) }
    }

    nonisolated func commandInBackground(_ command: TaskCommand, for task: TaskID) {
        assumeIsolated { $0.carryOut(command, for: task) }
    }
}
