//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// Transfers that could run at once if slots were free.
///
/// Each session has a queue per host; each program orders its queues by their first elements, and the programs are ordered by their
/// turns. A search from the front is short: a host blocks its queues only while transfers to it run, so few are blocked at a time.
struct ReadyTransfers: Sendable {
    typealias ID = TransferScheduler.ID

    /// An instant; for equal ones the older transfer comes first.
    struct Rank: Hashable, Comparable, Sendable {
        var at: Double
        var id: ID

        static func < (left: Rank, right: Rank) -> Bool { (left.at, left.id) < (right.at, right.id) }
    }

    struct LineKey: Hashable, Sendable {
        var program: Int64
        var session: Int64
        var host: String
    }

    /// A program's turn: the program with the fewest running transfers is next, then the one that was served longest ago.
    struct Turn: Hashable, Comparable, Sendable {
        var running = 0
        var lastServed = 0
        var program: Int64

        static func < (left: Turn, right: Turn) -> Bool {
            (left.running, left.lastServed, left.program) < (right.running, right.lastServed, right.program)
        }
    }

    private var lines: [LineKey: OrderedLine<ID, Rank>] = [:]
    private var programs: [Int64: OrderedLine<LineKey, Rank>] = [:]
    private var turns = OrderedLine<Int64, Turn>()
    private var hosts: [String: Set<LineKey>] = [:]

    var isEmpty: Bool { lines.isEmpty }

    func has(_ program: Int64) -> Bool { programs[program] != nil }

    /// The first transfer of a queue.
    func front(of key: LineKey) -> ID? { lines[key]?.first?.id }

    mutating func insert(_ id: ID, at instant: Double, in key: LineKey, turn: Turn) {
        if lines[key] == nil { hosts[key.host, default: []].insert(key) }
        lines[key, default: OrderedLine()].insert(id, at: Rank(at: instant, id: id))
        if programs[key.program] == nil { turns.insert(key.program, at: turn) }
        placeLine(key)
    }

    mutating func remove(_ id: ID, from key: LineKey) {
        lines[key]?.remove(id)
        placeLine(key)
    }

    /// Updates the turn of a program that has ready transfers.
    mutating func move(to turn: Turn) {
        if programs[turn.program] != nil { turns.insert(turn.program, at: turn) }
    }

    private mutating func placeLine(_ key: LineKey) {
        if let front = lines[key]?.first {
            programs[key.program, default: OrderedLine()].insert(key, at: front.at)
            return
        }
        lines[key] = nil
        hosts[key.host]?.remove(key)
        if hosts[key.host]?.isEmpty == true { hosts[key.host] = nil }
        programs[key.program]?.remove(key)
        guard programs[key.program]?.isEmpty == true else { return }
        programs[key.program] = nil
        turns.remove(key.program)
    }

    /// Returns the next transfer, from the queues whose limits allow one.
    func next(full: Set<String>, hasRoom: (LineKey) -> Bool) -> ID? {
        // Every queue may belong to a host that has reached its limit.
        if lines.count == full.reduce(0, { $0 + (hosts[$1]?.count ?? 0) }) { return nil }
        var found: LineKey?
        _ = turns.first { program in
            found = programs[program]?.first(where: hasRoom)
            return found != nil
        }
        return found.flatMap { front(of: $0) }
    }

    /// All transfers to a host, oldest first.
    func ids(at host: String) -> [ID] { (hosts[host] ?? []).flatMap { lines[$0]?.ids ?? [] }.sorted() }

    func hasLine(at host: String, where isWanted: (LineKey) -> Bool) -> Bool { hosts[host]?.contains(where: isWanted) ?? false }
}
