//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
import Testing
import TransportMachines

private let second: Int64 = 1_000_000_000
private let origin = OriginID(1)
private let otherOrigin = OriginID(2)

@Suite struct PoolMachineTests {
    @Test func `a wanted connection is dialled, granted when open, and granted again when released`() {
        var pool = PoolMachine(maximumPerHost: 2)
        #expect(pool.want(1) == [.dial(ConnectionID(0), origin)])
        #expect(pool.send(.opened(ConnectionID(0))) == [.grant(LeaseID(1), ConnectionID(0), reused: false)])
        #expect(pool.release(0) == [.startTimer(after: 60 * second)])
        #expect(pool.want(2) == [.grant(LeaseID(2), ConnectionID(0), reused: true)])
        #expect(pool.release(0, now: 5) == [])
    }

    @Test func `what is done in the background gets room last, and is not forgotten`() {
        var pool = PoolMachine(maximumPerHost: 100, asksForRoom: true)
        let background = OriginID(1)
        #expect(pool.handle(.wanted(LeaseID(0), background, priority: -1.5)) == [.askForRoom])
        for lease in 1...10 { _ = pool.handle(.wanted(LeaseID(lease), OriginID(1 + lease), priority: 0)) }
        var order: [Int] = []
        for _ in 0...10 {
            for case .dial(_, let origin) in pool.handle(.roomMade) { order.append(origin.number) }
        }
        #expect(order == [2, 3, 4, 5, 6, 7, 8, 1, 9, 10, 11])
    }

    @Test func `the most recently used idle connection goes first`() {
        var pool = PoolMachine(maximumPerHost: 2)
        pool.lease(1, 2)
        _ = pool.release(1)
        _ = pool.release(0)
        #expect(pool.want(3) == [.grant(LeaseID(3), ConnectionID(0), reused: true)])
        #expect(pool.want(4) == [.grant(LeaseID(4), ConnectionID(1), reused: true)])
    }

    @Test func `above the limit requests wait, the highest priority first, then the first come`() {
        var pool = PoolMachine(maximumPerHost: 1)
        pool.lease(1)
        for (lease, priority) in [(2, 0.5), (3, 0.5), (4, 1.0), (5, 0.1)] as [(Int, Float)] {
            #expect(pool.want(lease, priority: priority) == [])
        }
        #expect(pool.send(.reprioritised(LeaseID(5), 0.75)) == [])
        for lease in [4, 5, 2, 3] {
            #expect(pool.release(0) == [.grant(LeaseID(lease), ConnectionID(0), reused: true)])
        }
    }

    @Test func `a priority that is not a number counts as the default`() {
        var pool = PoolMachine(maximumPerHost: 1)
        pool.lease(1)
        _ = pool.want(2, priority: 0.4)
        _ = pool.want(3, priority: .nan)
        #expect(pool.release(0) == [.grant(LeaseID(3), ConnectionID(0), reused: true)])
    }

    @Test func `origins do not share connections or limits`() {
        var pool = PoolMachine(maximumPerHost: 1)
        pool.lease(1)
        _ = pool.release(0)
        #expect(pool.send(.wanted(LeaseID(2), otherOrigin, priority: 0.5)) == [.dial(ConnectionID(1), otherOrigin)])
    }

    @Test func `a connection that cannot be used again is closed, and another dialled for whoever waits`() {
        var pool = PoolMachine(maximumPerHost: 1)
        pool.lease(1)
        _ = pool.want(2)
        #expect(pool.release(0, reusable: false) == [.close(ConnectionID(0)), .dial(ConnectionID(1), origin)])
        #expect(pool.send(.closed(ConnectionID(0))) == [])
    }

    @Test func `a leased connection that closes makes room for a dial`() {
        var pool = PoolMachine(maximumPerHost: 1)
        pool.lease(1)
        _ = pool.want(2)
        #expect(pool.send(.closed(ConnectionID(0))) == [.dial(ConnectionID(1), origin)])
        #expect(pool.release(0) == [])
    }

    @Test func `a failed dial refuses one lease and leaves the others their dials`() {
        var pool = PoolMachine(maximumPerHost: 2)
        for lease in 1...3 { _ = pool.want(lease) }
        #expect(
            pool.send(.dialFailed(ConnectionID(0)))
                == [.refuse(LeaseID(1), failedDial: ConnectionID(0)), .dial(ConnectionID(2), origin)]
        )
        #expect(pool.send(.dialFailed(ConnectionID(2))) == [.refuse(LeaseID(2), failedDial: ConnectionID(2))])
        #expect(pool.send(.opened(ConnectionID(1))) == [.grant(LeaseID(3), ConnectionID(1), reused: false)])
    }

    @Test func `a dial that is reported closed has failed`() {
        var pool = PoolMachine(maximumPerHost: 1)
        _ = pool.want(1)
        #expect(pool.send(.closed(ConnectionID(0))) == [.refuse(LeaseID(1), failedDial: ConnectionID(0))])
    }

    @Test func `wanting twice is wanting once`() {
        var pool = PoolMachine(maximumPerHost: 2)
        _ = pool.want(1)
        #expect(pool.want(1) == [])
        #expect(pool.send(.reprioritised(LeaseID(1), 0.5)) == [])
        #expect(pool.send(.reprioritised(LeaseID(2), 0.5)) == [])
        #expect(pool.send(.withdrawn(LeaseID(1))) == [.cancelDial(ConnectionID(0))])
    }

    @Test func `a lease served by a released connection leaves its dial running for the next`() {
        var pool = PoolMachine(maximumPerHost: 2)
        pool.lease(1)
        #expect(pool.want(2) == [.dial(ConnectionID(1), origin)])
        #expect(pool.release(0) == [.grant(LeaseID(2), ConnectionID(0), reused: true)])
        #expect(pool.send(.opened(ConnectionID(1))) == [.startTimer(after: 60 * second)])
        #expect(pool.want(3) == [.grant(LeaseID(3), ConnectionID(1), reused: true)])
    }

    @Test func `a dial that fails after its lease was served refuses nobody`() {
        var pool = PoolMachine(maximumPerHost: 2)
        pool.lease(1)
        _ = pool.want(2)
        _ = pool.release(0)
        #expect(pool.send(.dialFailed(ConnectionID(1))) == [])
    }

    @Test func `withdrawing cancels the newest dial unless somebody needs it`() {
        var pool = PoolMachine(maximumPerHost: 2)
        for lease in 1...3 { _ = pool.want(lease) }
        #expect(pool.send(.withdrawn(LeaseID(1))) == [])
        #expect(pool.send(.withdrawn(LeaseID(2))) == [.cancelDial(ConnectionID(1))])
        #expect(pool.send(.withdrawn(LeaseID(2))) == [])
        #expect(pool.send(.opened(ConnectionID(1))) == [])
        #expect(pool.send(.withdrawn(LeaseID(3))) == [.cancelDial(ConnectionID(0))])
        #expect(pool.isEmpty)
    }

    @Test func `one timer closes what has idled for a minute`() {
        var pool = PoolMachine(maximumPerHost: 3)
        pool.lease(1, 2, 3)
        #expect(pool.release(0, now: 0) == [.startTimer(after: 60 * second)])
        #expect(pool.release(1, now: 20 * second) == [])
        #expect(pool.release(2, now: 60 * second - 1) == [])
        #expect(pool.send(.timer(now: 60 * second)) == [.close(ConnectionID(0)), .startTimer(after: 20 * second)])
        #expect(pool.send(.timer(now: 80 * second)) == [.close(ConnectionID(1)), .startTimer(after: 40 * second - 1)])
        #expect(pool.want(4) == [.grant(LeaseID(4), ConnectionID(2), reused: true)])
        #expect(pool.send(.timer(now: 130 * second)) == [])
    }

    @Test func `a connection that opened for nobody idles from the next sweep on`() {
        var pool = PoolMachine(maximumPerHost: 2)
        pool.lease(1)
        _ = pool.want(2)
        _ = pool.release(0)
        _ = pool.send(.opened(ConnectionID(1)))
        #expect(pool.send(.timer(now: 100 * second)) == [.startTimer(after: 60 * second)])
        #expect(pool.send(.timer(now: 160 * second)) == [.close(ConnectionID(1))])
    }

    @Test func `the server's keep-alive time shortens the wait, and never stretches it`() {
        var pool = PoolMachine(maximumPerHost: 2)
        pool.lease(1, 2)
        #expect(pool.release(0, now: 0, keepAlive: 600 * second) == [.startTimer(after: 60 * second)])
        #expect(pool.release(1, now: second, keepAlive: 5 * second) == [.startTimer(after: 5 * second)])
        #expect(pool.want(3) == [.grant(LeaseID(3), ConnectionID(1), reused: true)])
        #expect(pool.release(1, now: 2 * second, keepAlive: 5 * second) == [])
        #expect(pool.send(.timer(now: 6 * second)) == [.startTimer(after: second)])
        #expect(pool.send(.timer(now: 7 * second)) == [.close(ConnectionID(1)), .startTimer(after: 53 * second)])
        #expect(pool.want(4) == [.grant(LeaseID(4), ConnectionID(0), reused: true)])
        #expect(pool.release(0, now: 8 * second, keepAlive: 0) == [.close(ConnectionID(0))])
    }

    @Test func `very short keep-alive times do not move the timer again and again`() {
        var pool = PoolMachine(maximumPerHost: 1)
        pool.lease(1)
        #expect(pool.release(0, now: 0, keepAlive: second / 2) == [.startTimer(after: second)])
        _ = pool.want(2)
        #expect(pool.release(0, now: 100, keepAlive: second / 2) == [])
    }

    @Test func `who wants a new connection has the idle ones closed, and gets none that served before`() {
        var pool = PoolMachine(maximumPerHost: 3)
        pool.lease(1, 2, 3)
        _ = pool.release(0)
        _ = pool.release(1)
        #expect(
            pool.want(4, onlyNew: true)
                == [.close(ConnectionID(0)), .close(ConnectionID(1)), .dial(ConnectionID(3), origin)]
        )
        #expect(pool.release(2) == [.close(ConnectionID(2))])
        #expect(pool.send(.opened(ConnectionID(3))) == [.grant(LeaseID(4), ConnectionID(3), reused: false)])
        #expect(pool.release(3) == [])
        #expect(pool.want(5) == [.grant(LeaseID(5), ConnectionID(3), reused: true)])
    }

    @Test func `at the limit a connection that becomes free makes room for a new one`() {
        var pool = PoolMachine(maximumPerHost: 1)
        pool.lease(1)
        #expect(pool.want(2) == [])
        #expect(pool.want(3, onlyNew: true) == [])
        #expect(pool.want(4) == [])
        #expect(pool.send(.reprioritised(LeaseID(3), 0.75)) == [])
        #expect(pool.release(0) == [.close(ConnectionID(0)), .dial(ConnectionID(1), origin)])
        #expect(pool.send(.opened(ConnectionID(1))) == [.grant(LeaseID(3), ConnectionID(1), reused: false)])
        for lease in [2, 4] { #expect(pool.release(1) == [.grant(LeaseID(lease), ConnectionID(1), reused: true)]) }
    }

    @Test func `a connection that moves is not for who wants a new one`() {
        var pool = PoolMachine(maximumPerHost: 1)
        pool.lease(1)
        _ = pool.release(0)
        _ = pool.send(.wanted(LeaseID(2), otherOrigin, priority: 0.5, onlyNew: true))
        #expect(pool.send(.moved(ConnectionID(0), otherOrigin)) == [.close(ConnectionID(0))])
        #expect(pool.send(.opened(ConnectionID(1))) == [.grant(LeaseID(2), ConnectionID(1), reused: false)])
    }

    @Test func `when one went stale the idle ones of its origin are closed`() {
        var pool = PoolMachine(maximumPerHost: 2)
        pool.lease(1, 2)
        _ = pool.release(1)
        #expect(pool.send(.wentStale(otherOrigin)) == [])
        #expect(pool.send(.wentStale(origin)) == [.close(ConnectionID(1))])
        #expect(pool.release(0) == [])
    }

    @Test func `closing idle connections retires the leased ones too`() {
        var pool = PoolMachine(maximumPerHost: 3)
        pool.lease(1, 2)
        _ = pool.release(0)
        _ = pool.want(3)
        _ = pool.release(0)
        #expect(pool.send(.closeIdle) == [.close(ConnectionID(0)), .stopTimer])
        #expect(pool.release(1) == [.close(ConnectionID(1))])
        #expect(pool.isEmpty)
    }

    @Test func `shutting down refuses, cancels and closes, and what comes later changes nothing`() {
        var pool = PoolMachine(maximumPerHost: 2)
        pool.lease(1, 2)
        _ = pool.release(0)
        _ = pool.send(.wanted(LeaseID(3), otherOrigin, priority: 0.5))
        #expect(
            pool.send(.shutdown)
                == [.refuse(LeaseID(3), failedDial: nil), .cancelDial(ConnectionID(2)), .close(ConnectionID(0)), .stopTimer]
        )
        #expect(pool.send(.shutdown) == [])
        #expect(pool.want(4) == [.refuse(LeaseID(4), failedDial: nil)])
        #expect(pool.send(.opened(ConnectionID(2))) == [])
        #expect(pool.send(.dialFailed(ConnectionID(2))) == [])
        #expect(pool.send(.withdrawn(LeaseID(3))) == [])
        #expect(pool.send(.timer(now: 0)) == [])
        #expect(pool.release(1) == [.close(ConnectionID(1))])
        #expect(pool.send(.closed(ConnectionID(1))) == [])
        #expect(pool.isEmpty)
    }

    @Test func `low priority is served though higher ones keep coming`() {
        var pool = PoolMachine(maximumPerHost: 1)
        pool.lease(0)
        _ = pool.want(1000, priority: 0.25)
        _ = pool.want(1001, priority: 0)
        for lease in 1...2 { _ = pool.want(lease, priority: 0.75) }
        var served: [Int] = []
        for lease in 3...20 {
            _ = pool.want(lease, priority: 0.75)
            for case .grant(let lease, _, _) in pool.release(0) { served.append(lease.number) }
        }
        #expect(served == [1, 2, 3, 4, 5, 6, 7, 1000, 8, 9, 10, 11, 12, 13, 14, 1001, 15, 16])
    }

    @Test func `as many are connecting as there are dials, the first in line`() {
        var pool = PoolMachine(maximumPerHost: 2)
        #expect(pool.connecting(.wanted(LeaseID(1), origin, priority: 0.5)) == [.connecting(LeaseID(1))])
        #expect(pool.connecting(.wanted(LeaseID(2), origin, priority: 0.5)) == [.connecting(LeaseID(2))])
        // There are no more dials than two.
        #expect(pool.connecting(.wanted(LeaseID(3), origin, priority: 0.5)) == [])
        #expect(pool.connecting(.wanted(LeaseID(4), origin, priority: 1)) == [.heldUp(LeaseID(2)), .connecting(LeaseID(4))])
        // The first dial serves the first in line, and the other one whoever is first then.
        #expect(pool.connecting(.opened(ConnectionID(0))) == [])
        #expect(pool.connecting(.withdrawn(LeaseID(1))) == [.connecting(LeaseID(2))])
        // While the app is asked, nobody's time runs.
        #expect(pool.connecting(.appIsAsked(origin, true)) == [.heldUp(LeaseID(2))])
        #expect(pool.connecting(.appIsAsked(origin, false)) == [.connecting(LeaseID(2))])
        #expect(pool.connecting(.dialFailed(ConnectionID(1))) == [.connecting(LeaseID(3))])
    }

    @Test func `in the place of one that is suspended the next in line is connecting`() {
        var pool = PoolMachine(maximumPerHost: 1)
        for lease in 1...3 { _ = pool.want(lease) }
        #expect(pool.connecting(.suspended(LeaseID(1), true)) == [.heldUp(LeaseID(1)), .connecting(LeaseID(2))])
        #expect(pool.connecting(.suspended(LeaseID(1), true)) == [])
        #expect(pool.connecting(.suspended(LeaseID(9), true)) == [])
        // It keeps its place all the same.
        #expect(pool.firstInLine(origin) == LeaseID(1))
        #expect(pool.connecting(.suspended(LeaseID(2), true)) == [.heldUp(LeaseID(2)), .connecting(LeaseID(3))])
        #expect(pool.connecting(.reprioritised(LeaseID(2), 0.25)) == [])
        #expect(pool.connecting(.wanted(LeaseID(4), origin, priority: 0.5)) == [])
        #expect(pool.connecting(.suspended(LeaseID(2), false)) == [])
        #expect(pool.connecting(.suspended(LeaseID(1), false)) == [.heldUp(LeaseID(3)), .connecting(LeaseID(1))])
        #expect(pool.connecting(.suspended(LeaseID(1), true)) == [.heldUp(LeaseID(1)), .connecting(LeaseID(3))])
        #expect(pool.connecting(.withdrawn(LeaseID(3))) == [.connecting(LeaseID(4))])
        #expect(pool.connecting(.withdrawn(LeaseID(1))) == [])
        #expect(pool.connecting(.dialFailed(ConnectionID(0))) == [.connecting(LeaseID(2))])
        #expect(pool.connecting(.suspended(LeaseID(2), true)) == [.heldUp(LeaseID(2))])
        #expect(pool.connecting(.suspended(LeaseID(2), false)) == [.connecting(LeaseID(2))])
    }

    @Test func `who waits for a leased connection is held up`() {
        var pool = PoolMachine(maximumPerHost: 1)
        pool.lease(1)
        #expect(pool.connecting(.wanted(LeaseID(2), origin, priority: 0.5)) == [])
        #expect(pool.connecting(.closed(ConnectionID(0))) == [.connecting(LeaseID(2))])
    }

    @Test func `a dial begins when there is room, and origins take turns`() {
        var pool = PoolMachine(maximumPerHost: 6, asksForRoom: true)
        #expect(pool.want(1) == [.askForRoom])
        #expect(pool.want(2) == [])
        #expect(pool.send(.wanted(LeaseID(3), otherOrigin, priority: 0.5)) == [])
        #expect(pool.send(.roomMade) == [.dial(ConnectionID(0), origin), .askForRoom])
        #expect(pool.send(.roomMade) == [.dial(ConnectionID(1), otherOrigin), .askForRoom])
        #expect(pool.send(.roomMade) == [.dial(ConnectionID(2), origin)])
        #expect(pool.want(4) == [.askForRoom])
        #expect(pool.send(.withdrawn(LeaseID(4))) == [])
        #expect(pool.send(.roomMade) == [.giveRoomBack])
    }

    @Test func `who is connecting is found out when it is known whether there is room for a dial`() {
        var pool = PoolMachine(maximumPerHost: .max, asksForRoom: true)
        for lease in 0..<50 {
            let priority: Float = [0.1, 0.5, 0.9][lease % 3]
            #expect(pool.handle(.wanted(LeaseID(lease), origin, priority: priority)) == [.askForRoom])
            // Nobody who has a dial is held up for a moment by somebody who gets one as well.
            #expect(pool.handle(.roomMade) == [.dial(ConnectionID(lease), origin), .connecting(LeaseID(lease))])
        }
        #expect(pool.handle(.wanted(LeaseID(50), origin, priority: 1)) == [.askForRoom])
        let changes = pool.handle(.roomAwaited)
        #expect(changes.count == 2 && changes.last == .connecting(LeaseID(50)))
        #expect(pool.handle(.roomMade).contains(.dial(ConnectionID(50), origin)))
    }

    @Test func `a dial for which there was no room after all begins anew`() {
        var pool = PoolMachine(maximumPerHost: 1, asksForRoom: true)
        _ = pool.want(1)
        _ = pool.send(.roomMade)
        #expect(pool.send(.dialHadNoRoom(ConnectionID(0))) == [.askForRoom])
        #expect(pool.send(.roomMade) == [.dial(ConnectionID(1), origin)])
    }

    @Test func `room for others is made by closing what idled longest`() {
        var pool = PoolMachine(maximumPerHost: 3)
        pool.lease(1, 2, 3)
        #expect(pool.idleSince == nil)
        _ = pool.release(1, now: 1 * second)
        _ = pool.release(0, now: 2 * second)
        _ = pool.release(2, now: 3 * second)
        #expect(pool.idleSince == second)
        #expect(pool.send(.roomNeeded) == [.close(ConnectionID(1))])
        #expect(pool.idleSince == 2 * second)
        _ = pool.want(4)
        #expect(pool.send(.roomNeeded) == [.close(ConnectionID(0))])
        #expect(pool.idleSince == nil)
        #expect(pool.send(.roomNeeded) == [])
    }

    @Test func `ten thousand waiters come and go in order`() {
        var pool = PoolMachine(maximumPerHost: 1)
        pool.lease(0)
        for lease in 1...10_000 { _ = pool.want(lease) }
        for lease in 1...10_000 where lease % 3 != 0 { _ = pool.send(.withdrawn(LeaseID(lease))) }
        for lease in 1...10_000 where lease % 3 == 0 {
            #expect(pool.release(0) == [.grant(LeaseID(lease), ConnectionID(0), reused: true)])
        }
        #expect(pool.release(0) == [.startTimer(after: 60 * second)])
    }

    /// Whatever order things happen in, the pool keeps its limit, serves everybody once and in order, and leaks nothing.
    @Test func `any history keeps the rules of the pool`() {
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
    /// What follows, but for who is connecting and who is held up.
    fileprivate mutating func send(_ event: Event) -> [Action] {
        handle(event).filter { action in
            switch action {
            case .connecting, .heldUp: false
            default: true
            }
        }
    }

    /// Who is connecting, and who is held up, from this event on.
    fileprivate mutating func connecting(_ event: Event) -> [Action] {
        handle(event).filter { action in
            switch action {
            case .connecting, .heldUp: true
            default: false
            }
        }
    }

    fileprivate mutating func want(_ lease: Int, priority: Float = 0.5, onlyNew: Bool = false) -> [Action] {
        send(.wanted(LeaseID(lease), origin, priority: priority, onlyNew: onlyNew))
    }

    fileprivate mutating func release(
        _ connection: Int, reusable: Bool = true, now: Int64 = 0, keepAlive: Int64? = nil
    ) -> [Action] {
        send(.released(ConnectionID(connection), reusable: reusable, now: now, keepAlive: keepAlive))
    }

    /// Leases fresh connections, the first of them number 0.
    fileprivate mutating func lease(_ leases: Int...) {
        for lease in leases {
            for case .dial(let connection, _) in want(lease) { _ = send(.opened(connection)) }
        }
    }
}
