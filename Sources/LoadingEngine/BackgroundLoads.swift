// SPDX-License-Identifier: Apache-2.0

import LoadingModel
import Synchronization

/// The IDs of loads that belong to no task of the app.
enum BackgroundLoads {
    private static let count = Atomic<Int>(0)

    static func next() -> TaskID { Int.min + count.add(1, ordering: .relaxed).newValue }

    static func include(_ id: TaskID) -> Bool { id < 0 }
}

/// Runs loads that belong to no task of the app.
///
/// This is the session's engine, as the session's own loads see it: `SessionEngine+Mailbox.swift`. Called on the session's loop.
protocol BackgroundLoading: AnyObject {
    func startInBackground(_ order: TaskOrder, client: any LoadClient)
    func commandInBackground(_ command: TaskCommand, for task: TaskID)
}
