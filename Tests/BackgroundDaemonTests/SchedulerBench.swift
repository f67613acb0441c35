// SPDX-License-Identifier: Apache-2.0

import BackgroundDaemon
import Testing

/// A scheduler that returns all actions except the timer's.
struct SchedulerBench {
    typealias Action = TransferScheduler.Action
    typealias Item = TransferScheduler.Item

    /// The deadline of the transfers that the bench adds.
    static let deadline = 1e6

    var machine: TransferScheduler
    var now = 0.0
    var wake: Double?
    var conditions = TransferScheduler.Conditions()

    init(places: Int = 16, perHost: Int = 6) {
        var limits = TransferScheduler.Limits()
        limits.simultaneous = places
        limits.perHost = perHost
        machine = TransferScheduler(limits: limits)
    }

    @discardableResult
    mutating func send(_ event: TransferScheduler.Event, at time: Double? = nil) -> [Action] {
        now = time ?? now
        var rest: [Action] = []
        var timers = 0
        for action in machine.handle(event, now: now) {
            if case .wake(let at) = action {
                wake = at
                timers += 1
            } else {
                rest.append(action)
            }
        }
        #expect(timers <= 1)
        return rest
    }

    @discardableResult
    mutating func add(
        _ id: Int64, program: Int64 = 1, host: String? = nil, _ change: (inout Item) -> Void = { _ in }
    ) -> [Action] {
        var item = Item(
            id: id, program: program, session: program, host: host ?? "h\(id)", deadline: Self.deadline)
        change(&item)
        return send(.added(item))
    }

    @discardableResult
    mutating func fail(
        _ id: Int64, _ failure: TransferScheduler.Failure = .server, progress: Bool = false, after: Double? = nil,
        random: UInt64 = .max, at time: Double? = nil
    ) -> [Action] {
        send(.failed(id, failure, madeProgress: progress, retryAfter: after, random: random), at: time)
    }

    @discardableResult
    mutating func set(random: UInt64 = .max, _ change: (inout TransferScheduler.Conditions) -> Void) -> [Action] {
        change(&conditions)
        return send(.conditionsChanged(conditions, random: random))
    }

    @discardableResult
    mutating func tick(at time: Double) -> [Action] { send(.tick, at: time) }
}
