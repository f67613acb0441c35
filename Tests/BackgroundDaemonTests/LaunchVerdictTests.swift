// SPDX-License-Identifier: Apache-2.0

import BackgroundProtocol
import Testing

@testable import BackgroundDaemon

/// Which sessions cause their program to be started, and when.
struct LaunchVerdictTests {
    private static let way = BackgroundSettings.Launch.systemdUnit("one")
    private static let other = BackgroundSettings.Launch.systemdUnit("two")
    /// A session whose transfers have all ended without the program having been told.
    private static func due(_ session: Int64, _ way: BackgroundSettings.Launch? = way) -> LaunchCandidate {
        LaunchCandidate(session: session, way: way, transfers: 2, ended: 2)
    }

    @Test func `a program that is not running is started when all transfers have ended or one has a question`() {
        for way in [Self.way, nil] {
            for isConnected in [false, true] {
                for isLaunched in [false, true] {
                    for (transfers, asking, ended, isReady) in [
                        (0, 0, 0, false), (2, 0, 0, false), (2, 0, 1, false), (2, 0, 2, true), (2, 1, 0, true), (2, 1, 1, true),
                    ] {
                        let candidate = LaunchCandidate(
                            session: 1, way: way, isConnected: isConnected, isLaunched: isLaunched, transfers: transfers,
                            asking: asking,
                            ended: ended)
                        #expect(candidate.isDue == (isReady && way != nil && !isConnected && !isLaunched), "\(candidate)")
                        var limit = LaunchLimit()
                        let verdict = limit.decide(1, among: [candidate], now: 0, patience: 60)
                        let expected: LaunchLimit.Verdict =
                            !candidate.isDue ? .none : .start([1])
                        #expect(verdict == expected)
                        #expect((limit == LaunchLimit()) == (expected == .none))
                    }
                }
            }
        }
    }

    @Test func `one start serves all sessions whose program is started in the same way`() {
        var limit = LaunchLimit()
        let sessions = [
            Self.due(3), Self.due(1), Self.due(2, Self.other), Self.due(4, nil),
            LaunchCandidate(session: 5, way: Self.way, transfers: 1),
        ]
        #expect(limit.decide(3, among: sessions, now: 0, patience: 60) == .start([1, 3]))
        #expect(limit.decide(9, among: sessions, now: 0, patience: 60) == .none)
    }

    @Test func `starts follow one another, and each is counted once`() {
        var limit = LaunchLimit()
        var first = Self.due(1)
        #expect(limit.decide(1, among: [first, Self.due(2, Self.other)], now: 0, patience: 60) == .start([1]))
        first.isLaunched = true
        // The other start waits even if the limit allows it, because the program has not handled the first start.
        for now in [1.0, 9, 50] {
            let wait = limit.decide(2, among: [first, Self.due(2, Self.other)], now: now, patience: 60)
            #expect(wait == .wait(now < 10 ? 10 - now : 1))
        }
        first.isLaunched = false
        first.isConnected = true
        #expect(limit.decide(2, among: [first, Self.due(2, Self.other)], now: 10, patience: 60) == .start([2]))
        #expect(limit.start(10, patience: 60) == 20)
    }
}

/// Ends that the program was told of, and the sync of the folder from which it has moved the files.
struct DeparturesTests {
    private static func one(_ number: Int64) -> PendingRemovals.Entry {
        PendingRemovals.Entry(number: number, task: Int(number), file: "f")
    }

    @Test func `ends that arrive during a sync wait and are processed together`() {
        var pendingRemovals = PendingRemovals()
        let first = pendingRemovals.next()
        #expect(first == nil && pendingRemovals.isEmpty)
        pendingRemovals.add(Self.one(1))
        #expect(pendingRemovals.next() == [Self.one(1)])
        pendingRemovals.add(Self.one(2))
        pendingRemovals.add(Self.one(3))
        #expect(pendingRemovals.next() == nil)
        #expect(pendingRemovals.synced(true) == true)
        #expect([1, 2, 3].allSatisfy { pendingRemovals.contains($0) })
        pendingRemovals.removed()
        #expect(!pendingRemovals.contains(1) && pendingRemovals.contains(2) && !pendingRemovals.isEmpty)
        #expect(pendingRemovals.next() == [Self.one(2), Self.one(3)])
        pendingRemovals.removed()
        #expect(pendingRemovals.isEmpty)
    }

    @Test func `attempts to sync a folder stop after three failures`() {
        var pendingRemovals = PendingRemovals()
        pendingRemovals.add(Self.one(1))
        for isLast in [false, false, true] {
            #expect(pendingRemovals.next() == (pendingRemovals.contains(2) ? [Self.one(1), Self.one(2)] : [Self.one(1)]))
            #expect(pendingRemovals.synced(false) == isLast)
            guard !isLast else { break }
            // Nothing is processed during the pause.
            #expect(pendingRemovals.next() == nil)
            if !pendingRemovals.contains(2) { pendingRemovals.add(Self.one(2)) }
            pendingRemovals.retry()
        }
        pendingRemovals.removed()
        pendingRemovals.add(Self.one(3))
        // Until a sync has succeeded, the next failure is not retried either.
        _ = pendingRemovals.next()
        let results = [pendingRemovals.synced(false), pendingRemovals.synced(true), pendingRemovals.synced(false)]
        #expect(results == [true, true, false])
    }
}
