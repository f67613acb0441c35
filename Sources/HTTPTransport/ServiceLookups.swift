//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import NIOCore
import Synchronization
package import TransportMachines

/// Look-ups of how hosts are reached by https (RFC 9460), as the ``LookupMachine`` decides.
///
/// Nobody waits for them: what they found out is remembered for what dials later. They have few threads, and ones of their own, so that a
/// name server that does not answer such questions holds up no look-up of an address.
package final class ServiceLookups: Sendable {
    private typealias Machine = LookupMachine<[ServiceRecords.Service]>
    /// Finds a name's records, or none; blocks for as long as that takes.
    package typealias Ask = @Sendable (_ name: String) -> ServiceRecords?

    private static let threadCount = 8
    private static let waitingLimit = 1_024
    private static let memoryLimit = 1_024
    private static let longestLifetime = 3_600
    /// For so long it is not asked again where there are no records, or nobody could tell.
    private static let absenceLifetime = 60

    private struct State {
        var machine = Machine(threadCount: threadCount, waitingLimit: waitingLimit, memoryLimit: memoryLimit)
        var callCount = 0
    }

    private let state = Mutex(State())
    private let threads = WorkerThreads("url-https", maximumCount: threadCount)
    private let ask: Ask

    package init(ask: @escaping Ask) { self.ask = ask }

    /// Asks, unless it is known.
    ///
    /// - Returns: Gives that up, as far as it has not begun.
    func ask(_ name: String, _ owner: Int) -> @Sendable () -> Void {
        let caller = state.withLock { state in
            state.callCount += 1
            return state.callCount
        }
        handle(.wanted(Machine.Question(name, .v4), by: caller, of: owner))
        return { [self] in handle(.left(caller)) }
    }

    /// What is known; never waits.
    func services(of name: String) -> [ServiceRecords.Service] {
        state.withLock { $0.machine.remembered(Machine.Question(name, .v4), now: Self.now) } ?? []
    }

    func forget() { handle(.forgotten) }

    private static var now: Int64 { Int64(clamping: NIODeadline.now().uptimeNanoseconds) }

    private func handle(_ event: Machine.Event) {
        var events = [event]
        while let event = events.popLast() {
            let actions = state.withLock { $0.machine.handle(event, now: Self.now) }
            for case .lookUp(let question) in actions where !threads.run({ [self] in lookUp(question) }) {
                events.append(.answered(question, [], keptFor: 0))
            }
        }
    }

    private func lookUp(_ question: Machine.Question) {
        let records = ask(question.host)
        let services = records?.services ?? []
        let seconds = services.isEmpty ? Self.absenceLifetime : min(records?.seconds ?? 0, Self.longestLifetime)
        handle(.answered(question, services, keptFor: Int64(seconds) * 1_000_000_000))
    }
}
