// SPDX-License-Identifier: Apache-2.0

import HTTPWire

/// Manages the downloads that wait for disk space, and decides which of them continue.
///
/// While a download waits, the disk is checked at increasing intervals, and at once when the daemon removes a file.
struct SpaceQueue: Sendable {
    typealias ID = TransferScheduler.ID

    /// A download that is not over.
    struct Download: Hashable, Sendable {
        /// Whether the download is suspended; it checks the disk again when it is resumed.
        var isHeld: Bool
        /// The number of bytes of the download's file that exist.
        var present: Int64
        /// Whether the download is running or about to run; other downloads start at an unknown time, and check the disk themselves
        /// when they start.
        var isUnderWay: Bool
    }

    enum Action: Hashable, Sendable {
        case check
        /// The download no longer waits for space; if space was the problem, the download's pause ends, too.
        case admit(ID, endsPause: Bool)
        /// The disk is checked again after this many times the shortest pause.
        case pause(Int)
    }

    private enum Check { case none, going, outdated }

    /// The number of checks after which the interval is no longer doubled.
    private static let doublings = 3

    /// The free bytes that each download needs before it is retried.
    private var needs: [ID: Int64] = [:]
    /// The downloads for which a check of the disk has found too little space.
    private var confirmed: Set<ID> = []
    /// The admitted downloads, each with the size that its file has when the download has used the space that it needed.
    private var goals: [ID: Int64] = [:]
    /// Whether the disk is completely full.
    private var isFull = false
    /// The number of free bytes; nil before the first check.
    private(set) var free: Int64?
    private var check = Check.none
    /// The number of checks since something changed.
    private var checks = 0

    init() {}

    var hasWaiters: Bool { !needs.isEmpty || isFull }

    var waiting: [ID] { Array(needs.keys) }

    /// Returns how many bytes a download needs and how many are free; nil if enough are free, or if either number is unknown.
    func missing(for id: ID) -> (needed: Int64, free: Int64)? {
        guard let needed = needs[id], let free, needed > free else { return nil }
        return (needed, free)
    }

    /// Records that a download found too little space.
    mutating func noteShortage(_ id: ID, _ needed: Int64) -> [Action] {
        needs[id] = needed
        confirmed.remove(id)
        goals[id] = nil
        checks = 0
        return beginCheck()
    }

    /// Checks the disk again, because the daemon removed a file.
    mutating func noteRemoval() -> [Action] {
        guard hasWaiters else { return [] }
        checks = 0
        return beginCheck()
    }

    /// Starts a check of the disk; if a check is already in progress, repeats that check afterwards.
    mutating func beginCheck() -> [Action] {
        guard check == .none else {
            check = .outdated
            return []
        }
        check = .going
        return [.check]
    }

    /// Admits downloads while the free space suffices, the smallest need first, so that they do not take space from each other.
    ///
    /// - Parameters:
    ///   - found: The number of free bytes; nil if there is no space at all.
    ///   - isFull: Whether there is so little space that no download can run.
    ///   - download: Returns the state of a download; nil if it is over.
    /// - Returns: The actions.
    mutating func found(_ found: Int64?, isFull: Bool, _ download: (ID) -> Download?) -> [Action] {
        free = found ?? 0
        self.isFull = isFull
        var actions: [Action] = []
        for id in needs.keys.sorted() where download(id)?.isHeld != false {
            forget(id)
            actions.append(.admit(id, endsPause: false))
        }
        goals = goals.filter { download($0.key) != nil }
        // The bytes that the admitted downloads have not written yet.
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
            checks = 0
            // If space was never short, another problem caused the failure, and may persist.
            actions.append(.admit(id, endsPause: confirmed.contains(id)))
            forget(id)
        }
        let mustCheckAgain = check == .outdated
        check = .none
        guard hasWaiters else { return actions }
        guard !mustCheckAgain else { return actions + beginCheck() }
        actions.append(.pause(1 << min(checks, Self.doublings)))
        checks += 1
        return actions
    }

    private mutating func forget(_ id: ID) {
        needs[id] = nil
        confirmed.remove(id)
    }
}
