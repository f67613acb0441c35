// SPDX-License-Identifier: Apache-2.0

import LoadingModel
import NIOCore
import Synchronization
import SystemThreads
import TransportMachines

/// Performs lookups that sessions share, on its own threads, as ``LookupMachine`` decides.
final class SharedLookups<Value: Sendable>: Sendable {
    typealias Answer = Result<Value, LoadError>
    typealias Machine = LookupMachine<Answer>
    /// Answers a question; blocks until there is a result.
    typealias Ask = @Sendable (Machine.Question) -> (answer: Answer, lifetime: Int64)

    private static var waitingLimit: Int { 65_536 }
    private static var memoryLimit: Int { 1_024 }

    /// A caller that is waiting for the result of a lookup.
    final class Call: Sendable {
        private let loop: any EventLoop
        private let holdChanged: @Sendable (Bool) -> Void
        private let reply: @Sendable (Answer) -> Void
        private let isCancelled = Atomic(false)

        /// Creates a caller whose functions are called on the loop, until it is cancelled.
        init(
            on loop: any EventLoop, holdChanged: @escaping @Sendable (Bool) -> Void = { _ in },
            reply: @escaping @Sendable (Answer) -> Void
        ) {
            self.holdChanged = holdChanged
            self.loop = loop
            self.reply = reply
        }

        func cancel() { isCancelled.store(true, ordering: .relaxed) }

        func answer(_ answer: Answer) {
            loop.execute { [self] in
                if !isCancelled.load(ordering: .relaxed) { reply(answer) }
            }
        }

        func isOnHold(_ isOnHold: Bool) {
            loop.execute { [self] in
                if !isCancelled.load(ordering: .relaxed) { holdChanged(isOnHold) }
            }
        }
    }

    private struct State {
        var machine: Machine
        var calls: [Machine.Caller: Call] = [:]
        var callCount = 0
    }

    private enum Step {
        case lookUp(Machine.Question)
        case hold([Call], Bool)
        case answer([Call], Answer)
        case startTimer(TimeAmount)
    }

    private let state: Mutex<State>
    private let threads: WorkerThreads
    private let ask: Ask

    /// Creates lookups with their own threads and cache.
    ///
    /// - Parameters:
    ///   - name: The name of the threads.
    ///   - threadCount: The maximum number of lookups that have their turn; lookups that have lost theirs keep as many more threads.
    ///   - ask: Answers questions that have no cached answer, on one of the threads, and says for how many nanoseconds to cache the
    ///     answer.
    init(threads name: String, threadCount: Int, ask: @escaping Ask) {
        state = Mutex(
            State(
                machine: Machine(
                    threadCount: threadCount, waitingLimit: Self.waitingLimit, memoryLimit: Self.memoryLimit)))
        threads = WorkerThreads(name, maximumCount: 2 * threadCount)
        self.ask = ask
    }

    private static var now: Int64 { Int64(clamping: NIODeadline.now().uptimeNanoseconds) }

    /// Returns a cached answer.
    func knownAnswer(to question: Machine.Question) -> Answer? {
        state.withLock { $0.machine.knownAnswer(to: question, now: Self.now) }
    }

    /// Requests an answer for the call, which receives it after this method has returned.
    func want(_ question: Machine.Question, _ call: Call, _ owner: Machine.Owner) -> Machine.Caller {
        let (caller, steps) = state.withLock { state in
            state.callCount += 1
            state.calls[state.callCount] = call
            return (state.callCount, Self.handle(.wanted(question, by: state.callCount, of: owner), &state))
        }
        carryOut(steps)
        return caller
    }

    func leave(_ caller: Machine.Caller) {
        let steps = state.withLock { state in
            state.calls[caller] = nil
            return Self.handle(.left(caller), &state)
        }
        carryOut(steps)
    }

    func forget() {
        carryOut(state.withLock { Self.handle(.forgotten, &$0) })
    }

    // MARK: Carrying out actions

    private func carryOut(_ steps: [Step]) {
        var steps = steps
        while let step = steps.popLast() {
            switch step {
            case .answer(let calls, let answer): for call in calls { call.answer(answer) }
            case .startTimer(let delay):
                LoopDirectory.next().loop.scheduleTask(in: delay) { [weak self] in
                    guard let self else { return }
                    carryOut(state.withLock { Self.handle(.timer, &$0) })
                }
            case .hold(let calls, let isOnHold): for call in calls { call.isOnHold(isOnHold) }
            case .lookUp(let question):
                let hasThread = threads.run { [self] in
                    let (answer, lifetime) = ask(question)
                    carryOut(answered(question, answer, lifetime))
                }
                guard !hasThread else { continue }
                let error = LoadError(.dnsLookupFailed, "looking up \(question.host): the system cannot create a thread for it")
                steps += answered(question, .failure(error), 0)
            }
        }
    }

    private func answered(_ question: Machine.Question, _ answer: Answer, _ lifetime: Int64) -> [Step] {
        state.withLock { Self.handle(.answered(question, answer, timeToLive: lifetime), &$0) }
    }

    /// Returns the machine's actions, each with the calls that it concerns.
    private static func handle(_ event: Machine.Event, _ state: inout State) -> [Step] {
        state.machine.handle(event, now: now).map { action in
            switch action {
            case .lookUp(let question): .lookUp(question)
            case .startTimer(let delay): .startTimer(.nanoseconds(delay))
            case .waits(let caller): .hold([state.calls[caller]].compactMap { $0 }, true)
            case .began(let callers): .hold(callers.compactMap { state.calls[$0] }, false)
            case .answer(let callers, let answer): .answer(callers.compactMap { state.calls.removeValue(forKey: $0) }, answer)
            case .refuse(let caller):
                .answer(
                    [state.calls.removeValue(forKey: caller)].compactMap { $0 },
                    .failure(LoadError(.dnsLookupFailed, "too many host name lookups are queued"))
                )
            }
        }
    }
}
