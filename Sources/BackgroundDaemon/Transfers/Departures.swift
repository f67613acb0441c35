//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import LoadingModel

/// The transfers of a session that were told: their rows stay until it is on the disk that their files have left.
///
/// After a loss of power a file may be where it was again: then its row must be there, too, and its end is told again.
struct Departures: Sendable {
    struct One: Hashable, Sendable {
        var number: Int64
        var task: TaskID
        /// Nil where there was none.
        var file: String?
    }

    /// Times that the disk is given the folder: one that never takes it is not waited for, as programs wait for this.
    private static let limit = 3
    private var waiting: [One] = []
    private var inHand: [One] = []
    private var tasks: Set<TaskID> = []
    /// Times in a row that the folder could not be brought to the disk.
    private var failures = 0

    var isEmpty: Bool { tasks.isEmpty }
    func contains(_ task: TaskID) -> Bool { tasks.contains(task) }

    mutating func add(_ one: One) {
        waiting.append(one)
        tasks.insert(one.task)
    }

    /// The next batch; nil while a batch is under way, or when none is left.
    mutating func next() -> [One]? {
        guard inHand.isEmpty, !waiting.isEmpty else { return nil }
        (inHand, waiting) = (waiting, [])
        return inHand
    }

    /// Whether their rows may be removed, as the folder is on the disk, or is no longer waited for.
    mutating func synced(_ isOnDisk: Bool) -> Bool {
        failures = isOnDisk ? 0 : failures + 1
        return isOnDisk || failures >= Self.limit
    }

    /// Has those in hand dealt with again, together with others that have come.
    mutating func retry() { (waiting, inHand) = (inHand + waiting, []) }

    /// Their rows are gone.
    mutating func removed() {
        for one in inHand { tasks.remove(one.task) }
        inHand = []
    }
}
