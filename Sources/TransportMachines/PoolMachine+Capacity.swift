// SPDX-License-Identifier: Apache-2.0

/// The process-wide budget for connections: dials ask for a place in it, and the origins that need a place take turns.
extension PoolMachine {
    mutating func waitForCapacity(_ origin: OriginID) -> [Action] {
        if origins[origin]?.isStarved == false {
            origins[origin]?.isStarved = true
            starved.append(origin, isLast: isBackground(origin))
        }
        return requestCapacity()
    }

    /// Whether all leases that wait for the origin have a priority below those that apps set.
    private func isBackground(_ origin: OriginID) -> Bool { (origins[origin]?.queue.highestPriority ?? 0) < 0 }

    private mutating func requestCapacity() -> [Action] {
        guard !isRequestingCapacity, !starved.isEmpty else { return [] }
        isRequestingCapacity = true
        return [.requestCapacity]
    }

    /// Starts a dial for the first queued origin.
    ///
    /// An origin that needs another dial moves to the end of the queue.
    mutating func useCapacity() -> [Action] {
        isRequestingCapacity = false
        while let origin = starved.popFirst() {
            origins[origin]?.isStarved = false
            guard needsDial(origin) else { continue }
            let dial = dial(origin)
            if needsDial(origin) {
                origins[origin]?.isStarved = true
                starved.append(origin, isLast: isBackground(origin))
            }
            return [dial] + requestCapacity()
        }
        return [.returnCapacity]
    }

    /// Removes a dial that got no descriptor: the leases of its origin keep waiting, and the origin queues for a place again.
    mutating func starve(_ connection: ConnectionID) -> [Action] {
        guard let entry = connections[connection], case .dialing = entry.stage else { return [] }
        remove(connection)
        return dialIfNeeded(entry.origin)
    }

    /// Closes some of the idle connections, the longest idle first.
    mutating func closeLongestIdle() -> [Action] {
        var idle: [(since: Int64, id: ConnectionID)] = []
        for (id, connection) in connections {
            if case .idle(let since, _) = connection.stage { idle.append((since, id)) }
        }
        idle.sort { ($0.since, $0.id.number) < ($1.since, $1.id.number) }
        // With more connections, the search takes longer, so more of them are closed at a time.
        let count = idle.isEmpty ? 0 : 1 + idle.count / 64
        let left = idle.prefix(count).compactMap { sharedOrigin($0.id) }
        for entry in idle.prefix(count) { remove(entry.id) }
        if idle.count > count { idleSince = idle[count].since }
        return idle.prefix(count).map { .close($0.id) } + dial(for: left)
    }
}

/// The origins that wait for a place and take turns.
///
/// A background origin is served if no other origin waits, or after seven other origins in a row.
struct OriginQueue: Sendable {
    private static let longestRun = 7

    private var ordinary = OriginFIFO()
    private var background = OriginFIFO()
    /// The number of origins served in a row while background origins waited.
    private var run = 0

    var isEmpty: Bool { ordinary.isEmpty && background.isEmpty }

    mutating func append(_ origin: OriginID, isLast: Bool = false) {
        if isLast { background.append(origin) } else { ordinary.append(origin) }
    }

    mutating func popFirst() -> OriginID? {
        let isOwed = ordinary.isEmpty || run >= Self.longestRun
        if isOwed, let origin = background.popFirst() {
            run = 0
            return origin
        }
        run = background.isEmpty ? 0 : run + 1
        return ordinary.popFirst()
    }

    mutating func remove(_ origin: OriginID) {
        ordinary.remove(origin)
        background.remove(origin)
    }
}

/// Origins in FIFO order, without duplicates.
private struct OriginFIFO: Sendable {
    private var entries: [OriginID?] = []
    private var head = 0
    private var places: [OriginID: Int] = [:]
    /// The number of entries that were removed from the front of the array.
    private var dropped = 0

    var isEmpty: Bool { places.isEmpty }

    mutating func append(_ origin: OriginID) {
        guard places[origin] == nil else { return }
        places[origin] = dropped + entries.count
        entries.append(origin)
    }

    mutating func popFirst() -> OriginID? {
        while head < entries.count {
            let origin = entries[head]
            head += 1
            if head > 32, 2 * head > entries.count {
                entries.removeFirst(head)
                dropped += head
                head = 0
            }
            if let origin {
                places[origin] = nil
                return origin
            }
        }
        return nil
    }

    mutating func remove(_ origin: OriginID) {
        guard let place = places.removeValue(forKey: origin) else { return }
        entries[place - dropped] = nil
    }
}
