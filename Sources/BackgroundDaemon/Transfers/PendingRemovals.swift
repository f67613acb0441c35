// SPDX-License-Identifier: Apache-2.0

import LoadingModel

/// The transfers of a session whose program knows their ends; their rows stay until the removal of their files is synced.
///
/// After a power failure, a removed file may be back: its row must then exist, too, and the transfer's end is reported again.
struct PendingRemovals: Sendable {
    struct Entry: Hashable, Sendable {
        var number: Int64
        var task: TaskID
        /// Nil if there was no file.
        var file: String?
    }

    /// The maximum number of attempts to sync the folder: programs wait for the sync, so a disk that keeps failing must not block
    /// them.
    private static let limit = 3
    private var waiting: [Entry] = []
    private var current: [Entry] = []
    private var tasks: Set<TaskID> = []
    /// The number of consecutive failures to sync the folder.
    private var failures = 0

    var isEmpty: Bool { tasks.isEmpty }
    func contains(_ task: TaskID) -> Bool { tasks.contains(task) }

    mutating func add(_ one: Entry) {
        waiting.append(one)
        tasks.insert(one.task)
    }

    /// Returns the next batch; nil while a batch is in progress, or if no transfer waits.
    mutating func next() -> [Entry]? {
        guard current.isEmpty, !waiting.isEmpty else { return nil }
        (current, waiting) = (waiting, [])
        return current
    }

    /// Returns whether the rows may be removed: the folder is synced, or the attempts are exhausted.
    mutating func synced(_ isOnDisk: Bool) -> Bool {
        failures = isOnDisk ? 0 : failures + 1
        return isOnDisk || failures >= Self.limit
    }

    /// Processes the current batch again, together with entries that were added later.
    mutating func retry() { (waiting, current) = (current + waiting, []) }

    /// Ends the batch, whose rows were removed.
    mutating func removed() {
        for one in current { tasks.remove(one.task) }
        current = []
    }
}
