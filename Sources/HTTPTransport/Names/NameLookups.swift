// SPDX-License-Identifier: Apache-2.0

package import LoadingModel
package import NIOCore
import Synchronization
import SystemThreads
import TransportMachines

/// Performs the host name lookups of all sessions of the process on its own threads, as ``LookupMachine`` decides.
///
/// If the TTL is unknown, addresses are cached for 5 seconds: long enough for a burst of connections, and too short for a changed
/// address to matter. The absence of addresses is cached for 1 second. A failed lookup is not cached, so that the next request
/// repeats it.
package final class NameLookups: Sendable {
    package typealias Answer = Result<[SocketAddress], LoadError>
    typealias Machine = LookupMachine<Answer>
    /// Looks up a name's addresses of one family, or of both if the family is nil; blocks until there is a result.
    ///
    /// The ports of the addresses do not matter.
    package typealias Ask = @Sendable (_ host: String, NIOBSDSocket.ProtocolFamily?) -> Finding

    /// The result of a lookup.
    package struct Finding: Sendable {
        var answer: Answer
        /// How long to cache the result, in nanoseconds; nil if the TTL is unknown.
        var lifetime: Int64?

        package init(_ answer: Answer, lifetime: Int64? = nil) {
            self.answer = answer
            self.lifetime = lifetime
        }

        /// Creates a result from addresses of 4 or 16 bytes and their TTL in seconds, which is limited to an hour; an empty list
        /// has the default lifetime.
        package init(_ addresses: [[UInt8]], of host: String, seconds: Int) {
            let found = addresses.prefix(NameLookups.maximumAddressCount).compactMap {
                try? SocketAddress(packedIPAddress: ByteBuffer(bytes: $0), port: 0)
            }
            answer =
                found.isEmpty ? .failure(LoadError(.cannotFindHost, "looking up \(host): it has no address")) : .success(found)
            lifetime = found.isEmpty ? nil : Int64(min(max(seconds, 0), 3_600)) * 1_000_000_000
        }
    }

    /// The lookups that ask the system, for both families at once: with search domains (resolv.conf(5)), separate lookups could
    /// find different hosts.
    static let shared = NameLookups(threads: "url-names", asksNameServers: false) {
        Finding(SystemResolver.ask($0, port: 0, family: $1, flags: 0))
    }

    /// The maximum number of addresses per family, because a name server may be hostile; more addresses could not be tried in a
    /// reasonable time.
    static let maximumAddressCount = 16

    /// The maximum number of lookups that have their turn: `getaddrinfo` blocks a thread until the name servers answer, usually for
    /// at most 10 seconds.
    fileprivate static let threadCount = DescriptorLimit.threadsForNames()
    fileprivate static let waitingLimit = 65_536
    fileprivate static let memoryLimit = 1_024
    private static let addressLifetime: Int64 = 5_000_000_000
    private static let absenceLifetime: Int64 = 1_000_000_000

    private static let ownerCount = Atomic<Int>(0)

    /// Returns a new owner, whose lookups do not block those of other owners.
    static func newOwner() -> Machine.Owner { ownerCount.wrappingAdd(1, ordering: .relaxed).newValue }

    /// A caller that is waiting for the result of a lookup.
    final class Call: Sendable {
        private let host: String
        private let port: Int
        private let family: NIOBSDSocket.ProtocolFamily
        private let loop: any EventLoop
        private let holdChanged: @Sendable (Bool) -> Void
        private let reply: @Sendable (Answer) -> Void
        private let isCancelled = Atomic(false)

        init(
            _ host: String, port: Int, family: NIOBSDSocket.ProtocolFamily, loop: any EventLoop,
            holdChanged: @escaping @Sendable (Bool) -> Void, reply: @escaping @Sendable (Answer) -> Void
        ) {
            self.holdChanged = holdChanged
            self.host = host
            self.port = port
            self.family = family
            self.loop = loop
            self.reply = reply
        }

        func cancel() { isCancelled.store(true, ordering: .relaxed) }

        func answer(_ answer: Answer) {
            loop.execute { [self] in
                guard !isCancelled.load(ordering: .relaxed) else { return }
                reply(answer.flatMap(own))
            }
        }

        func isOnHold(_ isOnHold: Bool) {
            loop.execute { [self] in
                if !isCancelled.load(ordering: .relaxed) { holdChanged(isOnHold) }
            }
        }

        /// Returns the addresses of the requested family.
        private func own(_ addresses: [SocketAddress]) -> Answer {
            let own = addresses.filter { $0.protocol == family }.map(atPort)
            return own.isEmpty ? .failure(LoadError(.cannotFindHost, "looking up \(host): it has no address")) : .success(own)
        }

        private func atPort(_ address: SocketAddress) -> SocketAddress {
            var address = address
            address.port = port
            return address
        }
    }

    fileprivate struct State {
        var machine = Machine(threadCount: threadCount, waitingLimit: waitingLimit, memoryLimit: memoryLimit)
        var calls: [Machine.Caller: Call] = [:]
        var callCount = 0
    }

    private let state = Mutex(State())
    private let threads: WorkerThreads
    private let ask: Ask
    /// Whether `ask` queries name servers instead of the system.
    let asksNameServers: Bool

    /// Creates lookups with their own threads and cache.
    ///
    /// - Parameters:
    ///   - name: The name of the threads.
    ///   - asksNameServers: Whether `ask` queries name servers instead of the system.
    ///   - ask: Looks up names that are not cached, on one of the threads.
    package init(threads name: String, asksNameServers: Bool = true, ask: @escaping Ask) {
        // Lookups that have lost their turns keep their threads.
        threads = WorkerThreads(name, maximumCount: 2 * Self.threadCount)
        self.asksNameServers = asksNameServers
        self.ask = ask
    }

    /// Requests an answer for the call, which receives it after this method has returned.
    func want(_ question: Machine.Question, _ call: Call, _ owner: Machine.Owner) -> Machine.Caller {
        let (caller, steps) = state.withLock { state in
            state.callCount += 1
            state.calls[state.callCount] = call
            return (state.callCount, state.handle(.wanted(question, by: state.callCount, of: owner)))
        }
        carryOut(steps)
        return caller
    }

    func leave(_ caller: Machine.Caller) {
        let steps = state.withLock { state in
            state.calls[caller] = nil
            return state.handle(.left(caller))
        }
        carryOut(steps)
    }

    package func forget() {
        carryOut(state.withLock { $0.handle(.forgotten) })
    }

    // MARK: Carrying out actions

    fileprivate enum Step {
        case lookUp(Machine.Question)
        case hold([Call], Bool)
        case answer([Call], Answer)
        case startTimer(TimeAmount)
    }

    private func carryOut(_ steps: [Step]) {
        var steps = steps
        while let step = steps.popLast() {
            switch step {
            case .answer(let calls, let answer): for call in calls { call.answer(answer) }
            case .startTimer(let delay):
                LoopDirectory.next().loop.scheduleTask(in: delay) { [weak self] in
                    guard let self else { return }
                    carryOut(state.withLock { $0.handle(.timer) })
                }
            case .hold(let calls, let isOnHold): for call in calls { call.isOnHold(isOnHold) }
            case .lookUp(let question):
                let hasThread = threads.run { [self] in
                    let family: NIOBSDSocket.ProtocolFamily? =
                        switch question.family {
                        case .v4: .inet
                        case .v6: .inet6
                        case .both: nil
                        }
                    carryOut(answered(question, ask(question.host, family)))
                }
                guard !hasThread else { continue }
                let error = LoadError(.dnsLookupFailed, "looking up \(question.host): the system cannot create a thread for it")
                steps += answered(question, Finding(.failure(error)))
            }
        }
    }

    private func answered(_ question: Machine.Question, _ finding: Finding) -> [Step] {
        let lifetime: Int64 =
            switch finding.answer {
            case _ where finding.lifetime != nil: finding.lifetime ?? 0
            case .success: Self.addressLifetime
            case .failure(let error): error.kind == .cannotFindHost ? Self.absenceLifetime : 0
            }
        return state.withLock { $0.handle(.answered(question, finding.answer, timeToLive: lifetime)) }
    }
}

extension NameLookups.State {
    /// Returns the machine's actions, each with the calls that it concerns.
    fileprivate mutating func handle(_ event: NameLookups.Machine.Event) -> [NameLookups.Step] {
        let now = Int64(clamping: NIODeadline.now().uptimeNanoseconds)
        return machine.handle(event, now: now).map { action in
            switch action {
            case .lookUp(let question): .lookUp(question)
            case .startTimer(let delay): .startTimer(.nanoseconds(delay))
            case .waits(let caller): .hold([calls[caller]].compactMap { $0 }, true)
            case .began(let callers): .hold(callers.compactMap { calls[$0] }, false)
            case .answer(let callers, let answer): .answer(callers.compactMap { calls.removeValue(forKey: $0) }, answer)
            case .refuse(let caller):
                .answer(
                    [calls.removeValue(forKey: caller)].compactMap { $0 },
                    .failure(LoadError(.dnsLookupFailed, "too many host name lookups are queued"))
                )
            }
        }
    }
}
