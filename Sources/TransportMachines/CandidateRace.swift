// SPDX-License-Identifier: Apache-2.0

/// Decides which of a dial's candidates to start, and when: the ways to one connection, for example QUIC beside TCP.
///
/// The candidates start in order. The next one starts 200 ms after the previous one, counted from when that knew where to connect to,
/// or at once when one fails. After a candidate has reached the server, no other starts unless it fails: it decides whether to trust
/// the server, for which the app may take its time. The first that is connected wins, and the others are dropped, whether they have
/// started or not. ``PoolMachine`` sees one dial, whose capacity is that of the winner.
///
/// The race ends with `win` or `lose`, or silently after `cancelled`. After the end, every candidate has failed or is dropped, no
/// timer runs, and all later events return `[]`.
package struct CandidateRace: Sendable {
    package enum Event: Hashable, Sendable {
        case started
        /// A candidate knows where to connect to.
        case began(Int)
        /// A candidate has reached the server, and is not connected yet.
        case reached(Int)
        case connected(Int)
        case failed(Int)
        case timer
        case cancelled
    }

    package enum Action: Hashable, Sendable {
        case start(Int)
        /// The candidate's outcome no longer matters; no event about it should follow.
        case drop(Int)
        /// Starts the timer, or restarts it.
        case startTimer
        case stopTimer
        case win(Int)
        /// All candidates have failed.
        case lose
    }

    /// The time after which the next candidate starts, in nanoseconds.
    package static let headStart: Int64 = 200_000_000

    private let count: Int
    /// The number of candidates that have started.
    private var startedCount = 0
    private var running: [Int] = []
    /// The candidates that have reached the server.
    private var reached: Set<Int> = []
    private var isDelaying = false
    private var isOver = false

    package init(count: Int) { self.count = count }

    /// Whether a candidate was started, however it ended.
    package func hasStarted(_ candidate: Int) -> Bool { candidate < startedCount }

    package mutating func handle(_ event: Event) -> [Action] {
        guard !isOver else { return [] }
        switch event {
        case .started: return startedCount == 0 ? advance() : []
        case .began(let candidate):
            return isDelaying && running.last == candidate ? [.startTimer] : []
        case .reached(let candidate):
            guard running.contains(candidate) else { return [] }
            reached.insert(candidate)
            defer { isDelaying = false }
            return isDelaying ? [.stopTimer] : []
        case .connected(let candidate):
            guard running.contains(candidate) else { return [] }
            return finish(keeping: candidate) + [.win(candidate)]
        case .failed(let candidate):
            guard let place = running.firstIndex(of: candidate) else { return [] }
            running.remove(at: place)
            reached.remove(candidate)
            return reached.isEmpty ? advance() : []
        case .timer:
            guard isDelaying else { return [] }
            isDelaying = false
            return advance()
        case .cancelled: return finish(keeping: nil)
        }
    }

    /// Starts the next candidate, or loses if none is left.
    private mutating func advance() -> [Action] {
        guard startedCount < count else { return running.isEmpty ? finish(keeping: nil) + [.lose] : [] }
        let candidate = startedCount
        startedCount += 1
        running.append(candidate)
        let mayFollow = startedCount < count
        defer { isDelaying = mayFollow }
        return [.start(candidate)] + (mayFollow ? [.startTimer] : isDelaying ? [.stopTimer] : [])
    }

    private mutating func finish(keeping winner: Int?) -> [Action] {
        isOver = true
        let others = (running + Array(startedCount..<max(startedCount, count))).filter { $0 != winner }
        return others.map { .drop($0) } + (isDelaying ? [.stopTimer] : [])
    }
}
