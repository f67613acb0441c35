// SPDX-License-Identifier: Apache-2.0

import HTTPTransport
import HTTPWire
import LoadingModel
import NIOCore
import TransportMachines

/// Ends loads whose timeout has passed.
///
/// Executes the decisions of ``DeadlineMachine``, with one timer for all loads of the session.
///
/// Each load's `LoadControl` records progress with a single store; the timer reads the recorded time when it fires.
final class DeadlineClock {
    private let loop: any EventLoop
    private let turns: LoopTurns
    // Unchecked for speed, because every load uses the machine and the table below. Neither calls back into the clock.
    @exclusivity(unchecked) private var machine = DeadlineMachine()
    /// The loads by the slots that the machine assigned.
    @exclusivity(unchecked) private var watched: [Load?] = []
    private var timer: Scheduled<Void>?
    /// Replaces the system's clock; nil outside tests.
    private let clock: SteppedClock?
    /// The steps of the test clock: when a step was applied, and the clock's elapsed time after it.
    private var steps: [(instant: NIODeadline, elapsed: Int64)]
    /// The step that is being applied.
    private var step: SteppedClock.Step?

    private static let pause = TimeAmount.milliseconds(50)

    init(_ executor: LoopExecutor, clock: SteppedClock?) {
        loop = executor.loop
        turns = executor.turns
        self.clock = clock
        steps = clock.map { [(.uptimeNanoseconds(0), $0.elapsed)] } ?? []
    }

    /// Starts watching a load, whose timeouts begin now.
    func add(_ load: Load, now: NIODeadline) {
        let now = time(of: now)
        let (slot, actions) = machine.add(
            idleTimeout: Self.nanoseconds(load.requestTimeout),
            deadline: Self.nanoseconds(load.session.policy.resourceTimeout).map { now.addingSaturating($0) },
            now: now
        )
        load.deadline.slot = slot
        if slot == watched.count { watched.append(load) } else { watched[slot] = load }
        perform(actions)
    }

    func remove(_ load: Load) {
        guard watched.indices.contains(load.deadline.slot), watched[load.deadline.slot] === load else { return }
        watched[load.deadline.slot] = nil
        machine.remove(load.deadline.slot)
    }

    /// Ends a batch of the loads whose timeouts have passed.
    ///
    /// - Returns: Whether there were any.
    @discardableResult
    private func fire() -> Bool {
        timer = nil
        let now = NIODeadline.now()
        for load in watched {
            guard let load else { continue }
            var idleSince = load.control.idleSince(now: now)
            // A load on hold does not reach its request timeout now: it is checked again after at least 50 ms.
            if load.control.isOnHold, let timeout = Self.nanoseconds(load.requestTimeout) {
                idleSince = max(idleSince, now + Self.pause - .nanoseconds(timeout))
            }
            machine.progress(load.deadline.slot, now: time(of: idleSince))
        }
        let actions = machine.timerFired(now: time(of: now))
        perform(actions)
        return actions.contains { if case .expire = $0 { true } else { false } }
    }

    private func perform(_ actions: [DeadlineMachine.Action]) {
        for action in actions {
            switch action {
            // With a test's clock no timer is needed: each step of the clock checks which timeouts have passed.
            case .startTimer where clock != nil: break
            case .startTimer(let instant):
                timer?.cancel()
                let bound = NIOLoopBound(self, eventLoop: loop)
                timer = loop.scheduleTask(deadline: .uptimeNanoseconds(UInt64(max(0, instant)))) {
                    // If the loop was busy, bytes may be waiting in its sockets: the check runs after the loop has polled them.
                    bound.value.turns.runInLaterTurn(isUrgent: true) { bound.value.fire() }
                }
            case .expire(let slot, let expiry):
                guard watched.indices.contains(slot), let load = watched[slot] else { continue }
                load.deadline.step = step
                load.control.abort(Self.error(expiry, of: load.requestTimeout, load.session.policy.resourceTimeout))
            }
        }
    }

    private static func error(_ expiry: DeadlineMachine.Expiry, of request: Double, _ resource: Double) -> LoadError {
        switch expiry {
        case .idle: LoadError(.timedOut, "nothing arrived for \(request) s (the request's timeout)")
        case .resource: LoadError(.timedOut, "the load took longer than \(resource) s (timeoutIntervalForResource)")
        }
    }

    /// Converts a duration to nanoseconds; returns nil, for no timeout, if the duration is out of range.
    ///
    /// Zero and negative durations mean no timeout, as in Apple's implementation.
    private static func nanoseconds(_ seconds: Double) -> Int64? {
        guard seconds > 0, seconds < 9e9 else { return nil }
        return Int64(seconds * 1e9)
    }

    // MARK: Test clock

    /// Converts an instant to nanoseconds of the session's clock.
    private func time(of instant: NIODeadline) -> Int64 {
        guard clock != nil else { return Int64(clamping: instant.uptimeNanoseconds) }
        return steps.last { $0.instant <= instant }?.elapsed ?? steps.first?.elapsed ?? 0
    }

    /// Applies a step of the test clock to the loads that were added before it, and keeps the step until their ends are told.
    ///
    /// A load that waits for a disk first continues to its server, however slow the disk is.
    func apply(_ step: SteppedClock.Step, to elapsed: Int64) {
        apply(step, to: elapsed, after: watched.compactMap { $0?.control })
    }

    private func apply(_ step: SteppedClock.Step, to elapsed: Int64, after controls: [LoadControl]) {
        let atDisk = controls.filter { $0.waitsForDisk && $0.failure == nil }
        guard atDisk.isEmpty else {
            return turns.runInLaterTurn(isUrgent: true) { self.apply(step, to: elapsed, after: atDisk) }
        }
        let now = NIODeadline.now()
        // An instant before the first kept step gets that step's time.
        if steps.count == Self.maximumSteps { steps.removeFirst(steps.count / 2) }
        steps.append((now, elapsed))
        // The length of the step does not count as idle time of loads on hold.
        for load in watched where load?.control.isOnHold == true { load?.control.markProgress(now) }
        self.step = step
        while fire() {}
        self.step = nil
    }

    private static let maximumSteps = 1_024
}
