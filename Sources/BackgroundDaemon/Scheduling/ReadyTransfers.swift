// SPDX-License-Identifier: Apache-2.0

/// Transfers that could run immediately if slots were free.
///
/// Each session has a queue per host; each program orders its queues by their first elements, and the programs are ordered by their
/// turns. A search from the front is short: a host blocks its queues only while transfers to the host are running, so few queues
/// are blocked at a time.
struct ReadyTransfers: Sendable {
    typealias ID = TransferScheduler.ID

    /// An instant; if two instants are equal, the older transfer comes first.
    struct Rank: Hashable, Comparable, Sendable {
        var at: Double
        var id: ID

        static func < (left: Rank, right: Rank) -> Bool { (left.at, left.id) < (right.at, right.id) }
    }

    struct QueueKey: Hashable, Sendable {
        var program: Int64
        var session: Int64
        var host: String
    }

    /// A program's turn: the program with the fewest running transfers is next; among equals, the program that was served longest
    /// ago.
    struct Turn: Hashable, Comparable, Sendable {
        var running = 0
        var lastServed = 0
        var program: Int64

        static func < (left: Turn, right: Turn) -> Bool {
            (left.running, left.lastServed, left.program) < (right.running, right.lastServed, right.program)
        }
    }

    private var queues: [QueueKey: PriorityQueue<ID, Rank>] = [:]
    private var programs: [Int64: PriorityQueue<QueueKey, Rank>] = [:]
    private var turns = PriorityQueue<Int64, Turn>()
    private var hosts: [String: Set<QueueKey>] = [:]

    var isEmpty: Bool { queues.isEmpty }

    func has(_ program: Int64) -> Bool { programs[program] != nil }

    /// Returns the first transfer of a queue.
    func front(of key: QueueKey) -> ID? { queues[key]?.first?.id }

    mutating func insert(_ id: ID, at instant: Double, in key: QueueKey, turn: Turn) {
        if queues[key] == nil { hosts[key.host, default: []].insert(key) }
        queues[key, default: PriorityQueue()].insert(id, at: Rank(at: instant, id: id))
        if programs[key.program] == nil { turns.insert(key.program, at: turn) }
        updateQueue(key)
    }

    mutating func remove(_ id: ID, from key: QueueKey) {
        queues[key]?.remove(id)
        updateQueue(key)
    }

    /// Updates the turn of a program that has ready transfers.
    mutating func move(to turn: Turn) {
        if programs[turn.program] != nil { turns.insert(turn.program, at: turn) }
    }

    private mutating func updateQueue(_ key: QueueKey) {
        if let front = queues[key]?.first {
            programs[key.program, default: PriorityQueue()].insert(key, at: front.at)
            return
        }
        queues[key] = nil
        hosts[key.host]?.remove(key)
        if hosts[key.host]?.isEmpty == true { hosts[key.host] = nil }
        programs[key.program]?.remove(key)
        guard programs[key.program]?.isEmpty == true else { return }
        programs[key.program] = nil
        turns.remove(key.program)
    }

    /// Returns the next transfer from the queues whose limits allow another transfer.
    func next(full: Set<String>, hasCapacity: (QueueKey) -> Bool) -> ID? {
        // If every queue belongs to a host that has reached its limit, no search is needed.
        if queues.count == full.reduce(0, { $0 + (hosts[$1]?.count ?? 0) }) { return nil }
        var found: QueueKey?
        _ = turns.first { program in
            found = programs[program]?.first(where: hasCapacity)
            return found != nil
        }
        return found.flatMap { front(of: $0) }
    }

    /// Returns all transfers to a host, oldest first.
    func ids(at host: String) -> [ID] { (hosts[host] ?? []).flatMap { queues[$0]?.ids ?? [] }.sorted() }

    func hasQueue(at host: String, where isWanted: (QueueKey) -> Bool) -> Bool { hosts[host]?.contains(where: isWanted) ?? false }
}
