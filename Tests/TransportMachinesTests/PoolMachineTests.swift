// SPDX-License-Identifier: Apache-2.0

import Testing
import TransportMachines

private let second: Int64 = 1_000_000_000
private let origin = OriginID(1)
private let otherOrigin = OriginID(2)

@Suite struct PoolMachineTests {
    @Test func `a connection is dialled, granted when open, and granted again when released`() {
        var pool = PoolMachine(maximumPerHost: 2)
        #expect(pool.requestLease(1) == [.dial(ConnectionID(0), origin)])
        #expect(pool.send(.opened(ConnectionID(0))) == [.grant(LeaseID(1), ConnectionID(0), reused: false)])
        #expect(pool.release(0) == [.startTimer(after: 60 * second)])
        #expect(pool.requestLease(2) == [.grant(LeaseID(2), ConnectionID(0), reused: true)])
        #expect(pool.release(0, now: 5) == [])
    }

    @Test func `background loads get capacity last, and are not starved`() {
        var pool = PoolMachine(maximumPerHost: 100, requestsCapacity: true)
        let background = OriginID(1)
        #expect(pool.handle(.wanted(LeaseID(0), background, priority: -1.5)) == [.requestCapacity])
        for lease in 1...10 { _ = pool.handle(.wanted(LeaseID(lease), OriginID(1 + lease), priority: 0)) }
        var order: [Int] = []
        for _ in 0...10 {
            for case .dial(_, let origin) in pool.handle(.capacityGranted) { order.append(origin.number) }
        }
        #expect(order == [2, 3, 4, 5, 6, 7, 8, 1, 9, 10, 11])
    }

    @Test func `the most recently used idle connection is granted first`() {
        var pool = PoolMachine(maximumPerHost: 2)
        pool.lease(1, 2)
        _ = pool.release(1)
        _ = pool.release(0)
        #expect(pool.requestLease(3) == [.grant(LeaseID(3), ConnectionID(0), reused: true)])
        #expect(pool.requestLease(4) == [.grant(LeaseID(4), ConnectionID(1), reused: true)])
    }

    @Test func `above the limit, leases wait by priority, and then by order of arrival`() {
        var pool = PoolMachine(maximumPerHost: 1)
        pool.lease(1)
        for (lease, priority) in [(2, 0.5), (3, 0.5), (4, 1.0), (5, 0.1)] as [(Int, Float)] {
            #expect(pool.requestLease(lease, priority: priority) == [])
        }
        #expect(pool.send(.reprioritized(LeaseID(5), 0.75)) == [])
        for lease in [4, 5, 2, 3] {
            #expect(pool.release(0) == [.grant(LeaseID(lease), ConnectionID(0), reused: true)])
        }
    }

    @Test func `a priority that is not a number counts as the default`() {
        var pool = PoolMachine(maximumPerHost: 1)
        pool.lease(1)
        _ = pool.requestLease(2, priority: 0.4)
        _ = pool.requestLease(3, priority: .nan)
        #expect(pool.release(0) == [.grant(LeaseID(3), ConnectionID(0), reused: true)])
    }

    @Test func `leases move to another origin with the dial that will serve them`() {
        var pool = PoolMachine(maximumPerHost: 2)
        for lease in 1...3 { _ = pool.requestLease(lease) }
        // The lease left behind gets the dial that stays, and no other.
        #expect(
            pool.send(.regrouped([LeaseID(1), LeaseID(3)], [ConnectionID(1)], otherOrigin, mayBeShared: false))
                == [.dial(ConnectionID(2), otherOrigin)])
        #expect(pool.send(.opened(ConnectionID(1))) == [.grant(LeaseID(1), ConnectionID(1), reused: false)])
        #expect(pool.send(.opened(ConnectionID(0))) == [.grant(LeaseID(2), ConnectionID(0), reused: false)])
        #expect(pool.send(.opened(ConnectionID(2))) == [.grant(LeaseID(3), ConnectionID(2), reused: false)])
    }

    @Test func `a moved lease takes an idle connection, and the dial that it leaves is cancelled`() {
        var pool = PoolMachine(maximumPerHost: 1)
        pool.lease(1)
        _ = pool.release(0)
        _ = pool.send(.wanted(LeaseID(2), otherOrigin, priority: 0.5))
        #expect(
            pool.send(.regrouped([LeaseID(2)], [ConnectionID(1)], origin, mayBeShared: false))
                == [.grant(LeaseID(2), ConnectionID(0), reused: true), .cancelDial(ConnectionID(1))])
        #expect(!pool.isKnown(otherOrigin))
    }

    @Test func `a dial that fails because of one lease refuses that lease, wherever it waits`() {
        var pool = PoolMachine(maximumPerHost: 1)
        for lease in 1...2 { _ = pool.requestLease(lease) }
        #expect(
            pool.send(.dialFailed(ConnectionID(0), lease: LeaseID(2)))
                == [.refuse(LeaseID(2), failedDial: ConnectionID(0)), .dial(ConnectionID(1), origin)])
    }

    @Test func `origins do not share connections or limits`() {
        var pool = PoolMachine(maximumPerHost: 1)
        pool.lease(1)
        _ = pool.release(0)
        #expect(pool.send(.wanted(LeaseID(2), otherOrigin, priority: 0.5)) == [.dial(ConnectionID(1), otherOrigin)])
    }

    @Test func `a connection that is not reusable is closed, and another dialled for the next lease`() {
        var pool = PoolMachine(maximumPerHost: 1)
        pool.lease(1)
        _ = pool.requestLease(2)
        #expect(pool.release(0, reusable: false) == [.close(ConnectionID(0)), .dial(ConnectionID(1), origin)])
        #expect(pool.send(.closed(ConnectionID(0))) == [])
    }

    @Test func `a dial replaces a leased connection that closes`() {
        var pool = PoolMachine(maximumPerHost: 1)
        pool.lease(1)
        _ = pool.requestLease(2)
        #expect(pool.send(.closed(ConnectionID(0))) == [.dial(ConnectionID(1), origin)])
        #expect(pool.release(0) == [])
    }

    @Test func `a failed dial refuses one lease, and the others keep their dials`() {
        var pool = PoolMachine(maximumPerHost: 2)
        for lease in 1...3 { _ = pool.requestLease(lease) }
        #expect(
            pool.send(.dialFailed(ConnectionID(0)))
                == [.refuse(LeaseID(1), failedDial: ConnectionID(0)), .dial(ConnectionID(2), origin)]
        )
        #expect(pool.send(.dialFailed(ConnectionID(2))) == [.refuse(LeaseID(2), failedDial: ConnectionID(2))])
        #expect(pool.send(.opened(ConnectionID(1))) == [.grant(LeaseID(3), ConnectionID(1), reused: false)])
    }

    @Test func `a dial that is reported closed counts as failed`() {
        var pool = PoolMachine(maximumPerHost: 1)
        _ = pool.requestLease(1)
        #expect(pool.send(.closed(ConnectionID(0))) == [.refuse(LeaseID(1), failedDial: ConnectionID(0))])
    }

    @Test func `requesting a lease twice has no further effect`() {
        var pool = PoolMachine(maximumPerHost: 2)
        _ = pool.requestLease(1)
        #expect(pool.requestLease(1) == [])
        #expect(pool.send(.reprioritized(LeaseID(1), 0.5)) == [])
        #expect(pool.send(.reprioritized(LeaseID(2), 0.5)) == [])
        #expect(pool.send(.withdrawn(LeaseID(1))) == [.cancelDial(ConnectionID(0))])
    }

    @Test func `the dial of a lease that got another connection continues for the next lease`() {
        var pool = PoolMachine(maximumPerHost: 2)
        pool.lease(1)
        #expect(pool.requestLease(2) == [.dial(ConnectionID(1), origin)])
        #expect(pool.release(0) == [.grant(LeaseID(2), ConnectionID(0), reused: true)])
        #expect(pool.send(.opened(ConnectionID(1))) == [.startTimer(after: 60 * second)])
        #expect(pool.requestLease(3) == [.grant(LeaseID(3), ConnectionID(1), reused: true)])
    }

    @Test func `a dial that fails after its lease was served refuses no lease`() {
        var pool = PoolMachine(maximumPerHost: 2)
        pool.lease(1)
        _ = pool.requestLease(2)
        _ = pool.release(0)
        #expect(pool.send(.dialFailed(ConnectionID(1))) == [])
    }

    @Test func `withdrawing cancels the newest dial unless a lease needs it`() {
        var pool = PoolMachine(maximumPerHost: 2)
        for lease in 1...3 { _ = pool.requestLease(lease) }
        #expect(pool.send(.withdrawn(LeaseID(1))) == [])
        #expect(pool.send(.withdrawn(LeaseID(2))) == [.cancelDial(ConnectionID(1))])
        #expect(pool.send(.withdrawn(LeaseID(2))) == [])
        #expect(pool.send(.opened(ConnectionID(1))) == [])
        #expect(pool.send(.withdrawn(LeaseID(3))) == [.cancelDial(ConnectionID(0))])
        #expect(pool.isEmpty)
    }

    @Test func `one timer closes connections idle for a minute`() {
        var pool = PoolMachine(maximumPerHost: 3)
        pool.lease(1, 2, 3)
        #expect(pool.release(0, now: 0) == [.startTimer(after: 60 * second)])
        #expect(pool.release(1, now: 20 * second) == [])
        #expect(pool.release(2, now: 60 * second - 1) == [])
        #expect(pool.send(.timer(now: 60 * second)) == [.close(ConnectionID(0)), .startTimer(after: 20 * second)])
        #expect(pool.send(.timer(now: 80 * second)) == [.close(ConnectionID(1)), .startTimer(after: 40 * second - 1)])
        #expect(pool.requestLease(4) == [.grant(LeaseID(4), ConnectionID(2), reused: true)])
        #expect(pool.send(.timer(now: 130 * second)) == [])
    }

    @Test func `a connection opened without a lease is idle from the next sweep`() {
        var pool = PoolMachine(maximumPerHost: 2)
        pool.lease(1)
        _ = pool.requestLease(2)
        _ = pool.release(0)
        _ = pool.send(.opened(ConnectionID(1)))
        #expect(pool.send(.timer(now: 100 * second)) == [.startTimer(after: 60 * second)])
        #expect(pool.send(.timer(now: 160 * second)) == [.close(ConnectionID(1))])
    }

    @Test func `the server's keep-alive time shortens the idle time, and never extends it`() {
        var pool = PoolMachine(maximumPerHost: 2)
        pool.lease(1, 2)
        #expect(pool.release(0, now: 0, keepAlive: 600 * second) == [.startTimer(after: 60 * second)])
        #expect(pool.release(1, now: second, keepAlive: 5 * second) == [.startTimer(after: 5 * second)])
        #expect(pool.requestLease(3) == [.grant(LeaseID(3), ConnectionID(1), reused: true)])
        #expect(pool.release(1, now: 2 * second, keepAlive: 5 * second) == [])
        #expect(pool.send(.timer(now: 6 * second)) == [.startTimer(after: second)])
        #expect(pool.send(.timer(now: 7 * second)) == [.close(ConnectionID(1)), .startTimer(after: 53 * second)])
        #expect(pool.requestLease(4) == [.grant(LeaseID(4), ConnectionID(0), reused: true)])
        #expect(pool.release(0, now: 8 * second, keepAlive: 0) == [.close(ConnectionID(0))])
    }

    @Test func `very short keep-alive times do not restart the timer repeatedly`() {
        var pool = PoolMachine(maximumPerHost: 1)
        pool.lease(1)
        #expect(pool.release(0, now: 0, keepAlive: second / 2) == [.startTimer(after: second)])
        _ = pool.requestLease(2)
        #expect(pool.release(0, now: 100, keepAlive: second / 2) == [])
    }

    @Test func `a lease that needs a new connection closes idle connections, and gets no reused one`() {
        var pool = PoolMachine(maximumPerHost: 3)
        pool.lease(1, 2, 3)
        _ = pool.release(0)
        _ = pool.release(1)
        #expect(
            pool.requestLease(4, onlyNew: true)
                == [.close(ConnectionID(0)), .close(ConnectionID(1)), .dial(ConnectionID(3), origin)]
        )
        #expect(pool.release(2) == [.close(ConnectionID(2))])
        #expect(pool.send(.opened(ConnectionID(3))) == [.grant(LeaseID(4), ConnectionID(3), reused: false)])
        #expect(pool.release(3) == [])
        #expect(pool.requestLease(5) == [.grant(LeaseID(5), ConnectionID(3), reused: true)])
    }

    @Test func `at the limit, a released connection is replaced for a lease that needs a new one`() {
        var pool = PoolMachine(maximumPerHost: 1)
        pool.lease(1)
        #expect(pool.requestLease(2) == [])
        #expect(pool.requestLease(3, onlyNew: true) == [])
        #expect(pool.requestLease(4) == [])
        #expect(pool.send(.reprioritized(LeaseID(3), 0.75)) == [])
        #expect(pool.release(0) == [.close(ConnectionID(0)), .dial(ConnectionID(1), origin)])
        #expect(pool.send(.opened(ConnectionID(1))) == [.grant(LeaseID(3), ConnectionID(1), reused: false)])
        for lease in [2, 4] { #expect(pool.release(1) == [.grant(LeaseID(lease), ConnectionID(1), reused: true)]) }
    }

    @Test func `a moved connection is not granted to a lease that needs a new connection`() {
        var pool = PoolMachine(maximumPerHost: 1)
        pool.lease(1)
        _ = pool.release(0)
        _ = pool.send(.wanted(LeaseID(2), otherOrigin, priority: 0.5, onlyNew: true))
        #expect(pool.send(.moved(ConnectionID(0), otherOrigin)) == [.close(ConnectionID(0))])
        #expect(pool.send(.opened(ConnectionID(1))) == [.grant(LeaseID(2), ConnectionID(1), reused: false)])
    }

    @Test func `after a stale connection, the idle connections of its origin are closed`() {
        var pool = PoolMachine(maximumPerHost: 2)
        pool.lease(1, 2)
        _ = pool.release(1)
        #expect(pool.send(.wentStale(otherOrigin)) == [])
        #expect(pool.send(.wentStale(origin)) == [.close(ConnectionID(1))])
        #expect(pool.release(0) == [])
    }

    @Test func `closing idle connections also retires the leased ones`() {
        var pool = PoolMachine(maximumPerHost: 3)
        pool.lease(1, 2)
        _ = pool.release(0)
        _ = pool.requestLease(3)
        _ = pool.release(0)
        #expect(pool.send(.closeIdle) == [.close(ConnectionID(0)), .stopTimer])
        #expect(pool.release(1) == [.close(ConnectionID(1))])
        #expect(pool.isEmpty)
    }

    @Test func `shutdown refuses, cancels and closes, and later events have no effect`() {
        var pool = PoolMachine(maximumPerHost: 2)
        pool.lease(1, 2)
        _ = pool.release(0)
        _ = pool.send(.wanted(LeaseID(3), otherOrigin, priority: 0.5))
        #expect(
            pool.send(.shutdown)
                == [.refuse(LeaseID(3), failedDial: nil), .cancelDial(ConnectionID(2)), .close(ConnectionID(0)), .stopTimer]
        )
        #expect(pool.send(.shutdown) == [])
        #expect(pool.requestLease(4) == [.refuse(LeaseID(4), failedDial: nil)])
        #expect(pool.send(.opened(ConnectionID(2))) == [])
        #expect(pool.send(.dialFailed(ConnectionID(2))) == [])
        #expect(pool.send(.withdrawn(LeaseID(3))) == [])
        #expect(pool.send(.timer(now: 0)) == [])
        #expect(pool.release(1) == [.close(ConnectionID(1))])
        #expect(pool.send(.closed(ConnectionID(1))) == [])
        #expect(pool.isEmpty)
    }

    @Test func `a lease of low priority is served despite a steady flow of leases with higher priority`() {
        var pool = PoolMachine(maximumPerHost: 1)
        pool.lease(0)
        _ = pool.requestLease(1000, priority: 0.25)
        _ = pool.requestLease(1001, priority: 0)
        for lease in 1...2 { _ = pool.requestLease(lease, priority: 0.75) }
        var served: [Int] = []
        for lease in 3...20 {
            _ = pool.requestLease(lease, priority: 0.75)
            for case .grant(let lease, _, _) in pool.release(0) { served.append(lease.number) }
        }
        #expect(served == [1, 2, 3, 4, 5, 6, 7, 1000, 8, 9, 10, 11, 12, 13, 14, 1001, 15, 16])
    }

    @Test func `the first leases in the queue are connecting, as many as there are dials`() {
        var pool = PoolMachine(maximumPerHost: 2)
        #expect(pool.connecting(.wanted(LeaseID(1), origin, priority: 0.5)) == [.connecting(LeaseID(1))])
        #expect(pool.connecting(.wanted(LeaseID(2), origin, priority: 0.5)) == [.connecting(LeaseID(2))])
        // There are only two dials.
        #expect(pool.connecting(.wanted(LeaseID(3), origin, priority: 0.5)) == [])
        #expect(pool.connecting(.wanted(LeaseID(4), origin, priority: 1)) == [.paused(LeaseID(2)), .connecting(LeaseID(4))])
        // The first dial serves the first lease in the queue, and the second dial remains for the next lease.
        #expect(pool.connecting(.opened(ConnectionID(0))) == [])
        #expect(pool.connecting(.withdrawn(LeaseID(1))) == [.connecting(LeaseID(2))])
        // While the app is asked, all leases are paused.
        #expect(pool.connecting(.appIsAsked(origin, true)) == [.paused(LeaseID(2))])
        #expect(pool.connecting(.appIsAsked(origin, false)) == [.connecting(LeaseID(2))])
        #expect(pool.connecting(.dialFailed(ConnectionID(1))) == [.connecting(LeaseID(3))])
    }

    @Test func `the next lease in the queue connects instead of a suspended one`() {
        var pool = PoolMachine(maximumPerHost: 1)
        for lease in 1...3 { _ = pool.requestLease(lease) }
        #expect(pool.connecting(.suspended(LeaseID(1), true)) == [.paused(LeaseID(1)), .connecting(LeaseID(2))])
        #expect(pool.connecting(.suspended(LeaseID(1), true)) == [])
        #expect(pool.connecting(.suspended(LeaseID(9), true)) == [])
        // The suspended lease keeps its place in the queue.
        #expect(pool.firstQueued(origin) == LeaseID(1))
        #expect(pool.connecting(.suspended(LeaseID(2), true)) == [.paused(LeaseID(2)), .connecting(LeaseID(3))])
        #expect(pool.connecting(.reprioritized(LeaseID(2), 0.25)) == [])
        #expect(pool.connecting(.wanted(LeaseID(4), origin, priority: 0.5)) == [])
        #expect(pool.connecting(.suspended(LeaseID(2), false)) == [])
        #expect(pool.connecting(.suspended(LeaseID(1), false)) == [.paused(LeaseID(3)), .connecting(LeaseID(1))])
        #expect(pool.connecting(.suspended(LeaseID(1), true)) == [.paused(LeaseID(1)), .connecting(LeaseID(3))])
        #expect(pool.connecting(.withdrawn(LeaseID(3))) == [.connecting(LeaseID(4))])
        #expect(pool.connecting(.withdrawn(LeaseID(1))) == [])
        #expect(pool.connecting(.dialFailed(ConnectionID(0))) == [.connecting(LeaseID(2))])
        #expect(pool.connecting(.suspended(LeaseID(2), true)) == [.paused(LeaseID(2))])
        #expect(pool.connecting(.suspended(LeaseID(2), false)) == [.connecting(LeaseID(2))])
    }

    @Test func `a lease that waits for a leased connection is not connecting`() {
        var pool = PoolMachine(maximumPerHost: 1)
        pool.lease(1)
        #expect(pool.connecting(.wanted(LeaseID(2), origin, priority: 0.5)) == [])
        #expect(pool.connecting(.closed(ConnectionID(0))) == [.connecting(LeaseID(2))])
    }

    @Test func `a dial starts when there is capacity, and origins take turns`() {
        var pool = PoolMachine(maximumPerHost: 6, requestsCapacity: true)
        #expect(pool.requestLease(1) == [.requestCapacity])
        #expect(pool.requestLease(2) == [])
        #expect(pool.send(.wanted(LeaseID(3), otherOrigin, priority: 0.5)) == [])
        #expect(pool.send(.capacityGranted) == [.dial(ConnectionID(0), origin), .requestCapacity])
        #expect(pool.send(.capacityGranted) == [.dial(ConnectionID(1), otherOrigin), .requestCapacity])
        #expect(pool.send(.capacityGranted) == [.dial(ConnectionID(2), origin)])
        #expect(pool.requestLease(4) == [.requestCapacity])
        #expect(pool.send(.withdrawn(LeaseID(4))) == [])
        #expect(pool.send(.capacityGranted) == [.returnCapacity])
    }

    @Test func `connecting leases are chosen after the capacity for a dial is known`() {
        var pool = PoolMachine(maximumPerHost: .max, requestsCapacity: true)
        for lease in 0..<50 {
            let priority: Float = [0.1, 0.5, 0.9][lease % 3]
            #expect(pool.handle(.wanted(LeaseID(lease), origin, priority: priority)) == [.requestCapacity])
            // A lease with a dial is not paused, even for a moment, by a later lease that also gets a dial.
            #expect(pool.handle(.capacityGranted) == [.dial(ConnectionID(lease), origin), .connecting(LeaseID(lease))])
        }
        #expect(pool.handle(.wanted(LeaseID(50), origin, priority: 1)) == [.requestCapacity])
        let changes = pool.handle(.capacityPending)
        #expect(changes.count == 2 && changes.last == .connecting(LeaseID(50)))
        #expect(pool.handle(.capacityGranted).contains(.dial(ConnectionID(50), origin)))
    }

    @Test func `capacity for a dial that found no descriptor is requested again`() {
        var pool = PoolMachine(maximumPerHost: 1, requestsCapacity: true)
        _ = pool.requestLease(1)
        _ = pool.send(.capacityGranted)
        #expect(pool.send(.dialHadNoDescriptor(ConnectionID(0))) == [.requestCapacity])
        #expect(pool.send(.capacityGranted) == [.dial(ConnectionID(1), origin)])
    }

    @Test func `the longest idle connection is closed to free capacity`() {
        var pool = PoolMachine(maximumPerHost: 3)
        pool.lease(1, 2, 3)
        #expect(pool.idleSince == nil)
        _ = pool.release(1, now: 1 * second)
        _ = pool.release(0, now: 2 * second)
        _ = pool.release(2, now: 3 * second)
        #expect(pool.idleSince == second)
        #expect(pool.send(.capacityNeeded) == [.close(ConnectionID(1))])
        #expect(pool.idleSince == 2 * second)
        _ = pool.requestLease(4)
        #expect(pool.send(.capacityNeeded) == [.close(ConnectionID(0))])
        #expect(pool.idleSince == nil)
        #expect(pool.send(.capacityNeeded) == [])
    }

    @Test func `ten thousand leases wait and are served in order`() {
        var pool = PoolMachine(maximumPerHost: 1)
        pool.lease(0)
        for lease in 1...10_000 { _ = pool.requestLease(lease) }
        for lease in 1...10_000 where lease % 3 != 0 { _ = pool.send(.withdrawn(LeaseID(lease))) }
        for lease in 1...10_000 where lease % 3 == 0 {
            #expect(pool.release(0) == [.grant(LeaseID(lease), ConnectionID(0), reused: true)])
        }
        #expect(pool.release(0) == [.startTimer(after: 60 * second)])
    }

    /// With events in any order, the pool keeps its limit, serves each lease once and in order, and leaks nothing.
    @Test func `every history keeps the rules of the pool`() {
        for seed in 0..<2_000 as Range<UInt64> {
            var history = PoolHistory(seed: seed)
            history.run(steps: 120)
            if !history.faults.isEmpty {
                Issue.record("seed \(seed): \(history.faults)\n\(history.log)")
                return
            }
        }
    }
}

extension PoolMachine {
    /// Handles an event, and returns all actions except `connecting` and `paused`.
    fileprivate mutating func send(_ event: Event) -> [Action] {
        handle(event).filter { action in
            switch action {
            case .connecting, .paused: false
            default: true
            }
        }
    }

    /// Handles an event, and returns only the actions `connecting` and `paused`.
    fileprivate mutating func connecting(_ event: Event) -> [Action] {
        handle(event).filter { action in
            switch action {
            case .connecting, .paused: true
            default: false
            }
        }
    }

    fileprivate mutating func requestLease(_ lease: Int, priority: Float = 0.5, onlyNew: Bool = false) -> [Action] {
        send(.wanted(LeaseID(lease), origin, priority: priority, onlyNew: onlyNew))
    }

    fileprivate mutating func release(
        _ connection: Int, reusable: Bool = true, now: Int64 = 0, keepAlive: Int64? = nil
    ) -> [Action] {
        send(.released(ConnectionID(connection), reusable: reusable, now: now, keepAlive: keepAlive))
    }

    /// Leases new connections, starting with number 0.
    fileprivate mutating func lease(_ leases: Int...) {
        for lease in leases {
            for case .dial(let connection, _) in requestLease(lease) { _ = send(.opened(connection)) }
        }
    }
}
