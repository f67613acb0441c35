// SPDX-License-Identifier: Apache-2.0

package import LoadingModel
package import SystemLibraries
import SystemThreads
import TransportMachines

/// Finds services on the local network for all sessions of the process, with one connection to the Avahi daemon and one thread.
///
/// The thread runs while a caller waits for a service, and for a while after that. ``ServiceMachine`` decides which services to
/// query.
///
/// Sendable because mutable state is accessed only inside `monitor.locked`; only the thread uses the machine and the connection.
package final class ServiceLookups: @unchecked Sendable {
    /// The process's instance.
    package static let shared = ServiceLookups()

    /// The location of a service.
    package struct Location: Sendable, Hashable {
        /// The host name, without a trailing dot.
        package let host: String
        package let port: Int
        /// The addresses of the host; at least one.
        package let addresses: [Avahi.Address]
        /// The data of the service's TXT record.
        package let text: [UInt8]
    }

    package typealias Reply = @Sendable (Result<Location, Avahi.Failure>) -> Void
    private typealias Machine = ServiceMachine<ServiceName, Avahi.Service, Avahi.Failure>

    private enum Message {
        case wanted(ServiceName, Int, Reply)
        case left(Int)
    }

    /// The maximum number of services that are queried at a time.
    ///
    /// The daemon allows a client 1,024 objects, and each query for a service counts as one object.
    private static let limit = 256
    private static func seconds(_ timer: Machine.Timer) -> Double {
        switch timer {
        case .silence: 1
        case .gracePeriod: 0.25
        }
    }
    /// How long the idle connection to the daemon is kept, in seconds.
    private static let patience = 10.0

    private let monitor = Monitor()
    private let bell = Avahi.Bell()
    private var messages: [Message] = []
    private var callerCount = 0
    private var isRunning = false

    /// Starts to look for a service; never blocks.
    ///
    /// - Parameters:
    ///   - service: The service.
    ///   - reply: Called once, on the lookup thread, or immediately if the name or type is invalid. Not called if the lookup is
    ///     canceled, which is the only way to stop waiting for an absent service.
    /// - Returns: A function that cancels the lookup. May be called at any time, on any thread.
    package func find(_ service: ServiceName, reply: @escaping Reply) -> @Sendable () -> Void {
        if let objection = service.objection {
            reply(.failure(.invalid(objection)))
            return {}
        }
        let (caller, mustStart) = monitor.locked {
            callerCount += 1
            messages.append(.wanted(service, callerCount, reply))
            defer { isRunning = true }
            return (callerCount, !isRunning)
        }
        if !mustStart {
            bell.ring()
        } else if Threads.start("url-services", { self.run() }) == nil {
            refuse(.failed("no thread is available"))
        }
        return { [self] in
            let isDelivered = monitor.locked {
                if isRunning { messages.append(.left(caller)) }
                return isRunning
            }
            if isDelivered { bell.ring() }
        }
    }

    /// Fails all lookups, because there is no thread or no daemon.
    private func refuse(_ failure: Avahi.Failure) {
        let refused = monitor.locked { () -> [Message] in
            isRunning = false
            defer { messages = [] }
            return messages
        }
        let gone = Set(refused.compactMap { if case .left(let caller) = $0 { caller } else { nil } })
        for case .wanted(_, let caller, let reply) in refused where !gone.contains(caller) { reply(.failure(failure)) }
    }

    // MARK: The thread

    private func run() {
        do throws(Avahi.Failure) {
            let state = ThreadState(try Avahi.open(bell))
            while let messages = next(state) { try state.turn(messages) }
        } catch {
            refuse(error)
        }
    }

    /// Returns the messages since the last call, or nil if the thread may end.
    private func next(_ state: ThreadState) -> [Message]? {
        monitor.locked {
            if messages.isEmpty, state.isOver {
                isRunning = false
                return nil
            }
            defer { messages = [] }
            return messages
        }
    }

    /// The state of the lookup thread.
    private final class ThreadState {
        private let avahi: Avahi
        private var machine = Machine(wayCount: Avahi.wayCount, limit: ServiceLookups.limit)
        private var replies: [Int: Reply] = [:]
        /// The times at which the timers fire.
        private var timers: [Machine.Question: [Machine.Timer: Double]] = [:]
        private var idleSince: Double?

        init(_ avahi: Avahi) { self.avahi = avahi }

        var isOver: Bool { idleSince.map { Monitor.clock - $0 >= ServiceLookups.patience } ?? false }

        /// Processes the messages, waits, then processes the daemon's events.
        ///
        /// - Throws: An error if the connection to the daemon is lost; all waiting lookups have then failed.
        func turn(_ messages: [Message]) throws(Avahi.Failure) {
            for message in messages {
                switch message {
                case .wanted(let service, let caller, let reply):
                    replies[caller] = reply
                    handle(.wanted(service, by: caller))
                case .left(let caller):
                    replies[caller] = nil
                    handle(.left(caller))
                }
            }
            processDaemonEvents()
            idleSince = machine.isIdle ? idleSince ?? Monitor.clock : nil
            do throws(Avahi.Failure) {
                try avahi.wait(milliseconds: timeout)
            } catch {
                handle(.lost(error))
                throw error
            }
            processDaemonEvents()
            let now = Monitor.clock
            for question in timers.keys.sorted() {
                for (timer, end) in timers[question] ?? [:] where end <= now {
                    timers[question]?[timer] = nil
                    handle(.timer(question, timer))
                }
            }
        }

        private func processDaemonEvents() {
            for event in avahi.events() {
                switch event.outcome {
                case .found(let service): handle(.found(event.question, way: event.way, service))
                case .silent: break
                case .failed(let failure): handle(.failed(event.question, way: event.way, failure))
                }
            }
        }

        private var timeout: Int? {
            let ends = timers.values.flatMap(\.values) + (idleSince.map { [$0 + ServiceLookups.patience] } ?? [])
            return ends.min().map { Int((max(0, $0 - Monitor.clock) * 1_000).rounded(.up)) }
        }

        private func handle(_ event: Machine.Event) {
            for action in machine.handle(event) {
                switch action {
                case .ask(let question, let service):
                    avahi.ask(question, name: service.name, type: service.type, domain: service.domain)
                case .drop(let question):
                    timers[question] = nil
                    avahi.drop(question)
                case .startTimer(let question, let timer):
                    timers[question, default: [:]][timer] = Monitor.clock + ServiceLookups.seconds(timer)
                case .answer(let callers, let parts): answer(callers, Location(parts).map { .success($0) })
                case .fail(let callers, let failure): answer(callers, .failure(failure))
                }
            }
        }

        private func answer(_ callers: [Int], _ result: Result<Location, Avahi.Failure>?) {
            for caller in callers {
                if let reply = replies.removeValue(forKey: caller), let result { reply(result) }
            }
        }
    }
}

extension ServiceLookups.Location {
    /// Combines the results of the queries.
    ///
    /// Everything but the addresses comes from the first result.
    init?(_ parts: [Avahi.Service]) {
        guard let first = parts.first else { return nil }
        (host, port, text) = (first.host, first.port, first.text)
        var addresses: [Avahi.Address] = []
        for part in parts where part.host == host && part.port == port && !addresses.contains(part.address) {
            addresses.append(part.address)
        }
        self.addresses = addresses
    }
}

extension ServiceName {
    /// The reason why the service cannot exist (RFC 6763, sections 4.1 and 7); nil if its name and type are valid.
    fileprivate var objection: String? {
        func isLabel(_ label: Substring) -> Bool { 1...63 ~= label.utf8.count }
        guard isLabel(name[...]) else { return "its name must have 1 to 63 bytes" }
        let parts = type.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 2, parts.allSatisfy(isLabel), parts[0].hasPrefix("_"),
            ["_tcp", "_udp"].contains(parts[1].lowercased())
        else { return "its type must have the form _ipp._tcp" }
        guard domain.isEmpty || domain.split(separator: ".", omittingEmptySubsequences: false).allSatisfy(isLabel) else {
            return "each part of its domain must have 1 to 63 bytes"
        }
        return nil
    }
}
