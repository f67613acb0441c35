//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import HTTPWire

/// Which downloads wait for room on the disk, and which of them are let in.
///
/// The disk is looked at while somebody waits, less and less often, and at once when something of the daemon's own is removed from it.
struct SpaceLine: Sendable {
    typealias ID = TransferScheduler.ID

    /// A download that is not over.
    struct Download: Hashable, Sendable {
        /// Held back: it looks again when it is released.
        var isHeld: Bool
        /// Bytes that there are of its file.
        var present: Int64
        /// It runs, or is about to: when others begin is not known, and they look for themselves then.
        var isUnderWay: Bool
    }

    enum Action: Hashable, Sendable {
        case look
        /// It waits for room no more; where that was missing, its pause is over, too.
        case letIn(ID, endsPause: Bool)
        /// The disk is looked at again after this many times the shortest pause.
        case pause(Int)
    }

    private enum Look { case none, going, outdated }

    /// Looks after which the time between two of them is no longer doubled.
    private static let doublings = 3

    /// Bytes that must be free before each is tried again.
    private var needs: [ID: Int64] = [:]
    /// Of these, those that a look at the disk found to be right.
    private var confirmed: Set<ID> = []
    /// Those that were let in, and how many bytes of their files they have when they have what they needed.
    private var goals: [ID: Int64] = [:]
    /// The disk has no room at all.
    private var isFull = false
    /// Bytes that are free; nil where that did not matter yet.
    private(set) var free: Int64?
    private var look = Look.none
    /// Looks since something changed.
    private var looks = 0

    init() {}

    var isWaitedFor: Bool { !needs.isEmpty || isFull }

    var waiting: [ID] { Array(needs.keys) }

    /// Bytes that one needs and that are not free; nil where that is not known.
    func missing(for id: ID) -> (needed: Int64, free: Int64)? {
        guard let needed = needs[id], let free, needed > free else { return nil }
        return (needed, free)
    }

    /// One found too little room.
    mutating func lack(_ id: ID, _ needed: Int64) -> [Action] {
        needs[id] = needed
        confirmed.remove(id)
        goals[id] = nil
        looks = 0
        return beginLook()
    }

    /// Something of the daemon's was removed from the disk.
    mutating func noteRemoval() -> [Action] {
        guard isWaitedFor else { return [] }
        looks = 0
        return beginLook()
    }

    /// Looks at the disk, unless a look under way will tell enough.
    mutating func beginLook() -> [Action] {
        guard look == .none else {
            look = .outdated
            return []
        }
        look = .going
        return [.look]
    }

    /// Those that need least are let in first, as far as what is free goes: together they would take it from each other.
    ///
    /// - Parameters:
    ///   - found: Bytes that are free; nil where there is no room at all.
    ///   - isFull: Whether that keeps any download from running.
    ///   - download: What one is like; nil where it is over.
    /// - Returns: What is to be done.
    mutating func found(_ found: Int64?, isFull: Bool, _ download: (ID) -> Download?) -> [Action] {
        free = found ?? 0
        self.isFull = isFull
        var actions: [Action] = []
        for id in needs.keys.sorted() where download(id)?.isHeld != false {
            forget(id)
            actions.append(.letIn(id, endsPause: false))
        }
        goals = goals.filter { download($0.key) != nil }
        // What those that were let in have not taken yet.
        var promised: Int64 = 0
        for (id, goal) in goals {
            guard let known = download(id), known.isUnderWay else { continue }
            promised = promised.addingSaturating(max(0, goal - known.present))
        }
        var rest = (found ?? 0) - promised
        for (id, needed) in needs.sorted(by: { ($0.value, $0.key) < ($1.value, $1.key) }) {
            guard needed <= rest else {
                confirmed.insert(id)
                continue
            }
            rest -= needed
            goals[id] = (download(id)?.present ?? 0).addingSaturating(needed)
            looks = 0
            // Where room was never missing, something else was wrong, which may be so still.
            actions.append(.letIn(id, endsPause: confirmed.contains(id)))
            forget(id)
        }
        let mustLookAgain = look == .outdated
        look = .none
        guard isWaitedFor else { return actions }
        guard !mustLookAgain else { return actions + beginLook() }
        actions.append(.pause(1 << min(looks, Self.doublings)))
        looks += 1
        return actions
    }

    private mutating func forget(_ id: ID) {
        needs[id] = nil
        confirmed.remove(id)
    }
}
