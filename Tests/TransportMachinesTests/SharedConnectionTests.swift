// SPDX-License-Identifier: Apache-2.0

import Testing
import TransportMachines

/// Connections that carry several leases at a time.
@Suite struct SharedConnectionTests {
    private let origin = OriginID(0)
    private let connection = ConnectionID(0)

    private func wanted(_ number: Int) -> PoolMachine.Event {
        .wanted(LeaseID(number), origin, priority: 0.5, mayBeShared: true)
    }

    private func grants(_ actions: [PoolMachine.Action]) -> [Int] {
        actions.compactMap { if case .grant(let lease, _, _) = $0 { lease.number } else { nil } }
    }

    @Test func `random histories keep every rule`() {
        var (grants, seconds) = (0, 0)
        for seed in 0..<1_000 as Range<UInt64> {
            var history = SharedPoolHistory(seed: seed)
            history.run(steps: 200)
            grants += history.sharedGrants
            seconds += history.seconds
            guard history.faults.isEmpty else {
                Issue.record("seed \(seed): \(history.faults)\n\(history.log)")
                return
            }
        }
        #expect(grants > 10_000 && seconds > 100)
    }

    // MARK: A second connection

    private func dials(_ actions: [PoolMachine.Action]) -> Int { actions.count { if case .dial = $0 { true } else { false } } }

    @Test func `a second connection is dialled when the queue stalls, but no third`() {
        var pool = PoolMachine(maximumPerHost: 6)
        _ = pool.handle(wanted(0))
        _ = pool.handle(.opened(connection, capacity: 1))
        #expect(pool.handle(wanted(1)).contains(.queueIsBlocked(origin)))
        #expect(dials(pool.handle(wanted(2))) == 0)
        #expect(dials(pool.handle(.queueCheckIsDue(origin))) == 1)
        #expect(grants(pool.handle(.opened(ConnectionID(1), capacity: 1))) == [1])
        #expect(dials(pool.handle(.queueCheckIsDue(origin))) == 0)
        #expect(dials(pool.handle(.isDoubtful(connection))) == 0)
        #expect(grants(pool.handle(.leaseLimitChanged(ConnectionID(1), 2))) == [2])
    }

    @Test func `a moving queue causes no second connection`() {
        var pool = PoolMachine(maximumPerHost: 6)
        _ = pool.handle(wanted(0))
        _ = pool.handle(.opened(connection, capacity: 1))
        for number in 1..<4 { _ = pool.handle(wanted(number)) }
        #expect(grants(pool.handle(.released(connection, reusable: true, now: 0, keepAlive: nil))) == [1])
        // The queue is watched again.
        #expect(pool.handle(.queueCheckIsDue(origin)).contains(.queueIsBlocked(origin)))
        #expect(dials(pool.handle(.queueCheckIsDue(origin))) == 1)
    }

    @Test func `a second connection that fails refuses no lease, and is dialled again`() {
        var pool = PoolMachine(maximumPerHost: 6)
        _ = pool.handle(wanted(0))
        _ = pool.handle(.opened(connection, capacity: 1))
        _ = pool.handle(wanted(1))
        _ = pool.handle(.queueCheckIsDue(origin))
        let actions = pool.handle(.dialFailed(ConnectionID(1)))
        #expect(actions.contains(.queueIsBlocked(origin)))
        #expect(!actions.contains { if case .refuse = $0 { true } else { false } })
        #expect(dials(pool.handle(.queueCheckIsDue(origin))) == 1)
    }

    @Test func `a lease gets another dial at once if the existing connection is doubtful`() {
        var pool = PoolMachine(maximumPerHost: 6)
        _ = pool.handle(wanted(0))
        _ = pool.handle(.opened(connection, capacity: 10))
        _ = pool.handle(.leaseLimitChanged(connection, 0))
        #expect(dials(pool.handle(.isDoubtful(connection))) == 0)
        #expect(dials(pool.handle(wanted(1))) == 1)
        #expect(grants(pool.handle(.opened(ConnectionID(1), capacity: 10))) == [1])
    }

    @Test func `a lease waits for capacity after a doubtful peer has responded`() {
        var pool = PoolMachine(maximumPerHost: 6)
        _ = pool.handle(wanted(0))
        _ = pool.handle(.opened(connection, capacity: 10))
        _ = pool.handle(.isDoubtful(connection))
        _ = pool.handle(.leaseLimitChanged(connection, 1))
        #expect(dials(pool.handle(wanted(1))) == 0)
    }

    @Test func `a session limited to one connection per host dials no second one`() {
        var pool = PoolMachine(maximumPerHost: 1)
        _ = pool.handle(wanted(0))
        _ = pool.handle(.opened(connection, capacity: 1))
        _ = pool.handle(wanted(1))
        #expect(dials(pool.handle(.queueCheckIsDue(origin))) == 0)
    }

    @Test func `one dial serves all waiting leases, as far as the peer's capacity allows`() {
        var pool = PoolMachine(maximumPerHost: 6)
        #expect(pool.handle(wanted(0)) == [.dial(connection, origin), .connecting(LeaseID(0))])
        for number in 1..<5 { #expect(pool.handle(wanted(number)) == [.connecting(LeaseID(number))]) }
        #expect(grants(pool.handle(.opened(connection, capacity: 1))) == [0])
        #expect(grants(pool.handle(.leaseLimitChanged(connection, 3))) == [1, 2])
        #expect(grants(pool.handle(.released(connection, reusable: true, now: 0, keepAlive: nil))) == [3])
    }

    @Test func `a connection without concurrency lets waiting leases dial their own`() {
        var pool = PoolMachine(maximumPerHost: 3)
        for number in 0..<5 { _ = pool.handle(wanted(number)) }
        let actions = pool.handle(.opened(connection))
        #expect(grants(actions) == [0])
        #expect(actions.count { if case .dial = $0 { true } else { false } } == 2)
    }

    @Test func `after a lease gave up on a dial, the others get dials of their own`() {
        var pool = PoolMachine(maximumPerHost: 3)
        for number in 0..<6 { _ = pool.handle(wanted(number)) }
        let isDial = { (action: PoolMachine.Action) in if case .dial = action { true } else { false } }
        #expect(!pool.handle(.withdrawn(LeaseID(0))).contains(where: isDial))
        #expect(pool.handle(.withdrawn(LeaseID(1), isLate: true)).count(where: isDial) == 2)
        #expect(!pool.handle(.withdrawn(LeaseID(2), isLate: true)).contains(where: isDial))
        // If a dialled connection can be shared, the other dials are cancelled.
        let actions = pool.handle(.opened(ConnectionID(2), capacity: 10))
        #expect(grants(actions) == [3, 4, 5])
        #expect(actions.contains(.cancelDial(ConnectionID(0))) && actions.contains(.cancelDial(ConnectionID(1))))
    }

    @Test func `draining connections do not count toward the limit`() {
        var pool = PoolMachine(maximumPerHost: 1)
        for number in 0..<4 {
            // Each connection has one request, which ends only later.
            #expect(pool.handle(wanted(number)) == [.dial(ConnectionID(number), origin), .connecting(LeaseID(number))])
            #expect(grants(pool.handle(.opened(ConnectionID(number), capacity: 10))) == [number])
            _ = pool.handle(.drains(ConnectionID(number)))
        }
        #expect(pool.count(origin) == 4)
        for number in 0..<4 {
            let ended = PoolMachine.Event.released(ConnectionID(number), reusable: true, now: 0, keepAlive: nil)
            #expect(pool.handle(ended) == [.close(ConnectionID(number))])
        }
        #expect(pool.isEmpty && !pool.isKnown(origin))
    }

    @Test func `a failed dial refuses one lease, and the others get dials of their own`() {
        var pool = PoolMachine(maximumPerHost: 3)
        for number in 0..<5 { _ = pool.handle(wanted(number)) }
        let actions = pool.handle(.dialFailed(connection))
        #expect(actions.contains(.refuse(LeaseID(0), failedDial: connection)))
        #expect(actions.count { if case .dial = $0 { true } else { false } } == 3)
    }

    @Test func `a draining connection is closed with its last lease, and another is dialled`() {
        var pool = PoolMachine(maximumPerHost: 6)
        _ = pool.handle(wanted(0))
        _ = pool.handle(.opened(connection, capacity: 1))
        #expect(pool.handle(wanted(1)).contains(.connecting(LeaseID(1))))
        #expect(pool.handle(.drains(connection)).contains(.dial(ConnectionID(1), origin)))
        #expect(pool.handle(.released(connection, reusable: true, now: 0, keepAlive: nil)) == [.close(connection)])
    }

    @Test func `a lease is connecting while it waits for a peer without capacity, and otherwise paused`() {
        var pool = PoolMachine(maximumPerHost: 6)
        _ = pool.handle(wanted(0))
        _ = pool.handle(.opened(connection, capacity: 1))
        _ = pool.handle(.leaseLimitChanged(connection, 1))
        #expect(pool.handle(wanted(1)) == [.queueIsBlocked(origin)])
        _ = pool.handle(.leaseLimitChanged(connection, 0))
        #expect(pool.handle(.released(connection, reusable: true, now: 0, keepAlive: nil)).contains(.connecting(LeaseID(1))))
        #expect(grants(pool.handle(.leaseLimitChanged(connection, 1))) == [1])
    }
}
