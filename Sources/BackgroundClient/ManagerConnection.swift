// SPDX-License-Identifier: Apache-2.0

package import BackgroundProtocol
import CLoadingSystem
package import LoadingModel
import Synchronization
import SystemThreads

/// A user's connection to the daemon, to list and control the transfers of all programs.
package final class ManagerConnection: Sendable {
    /// The timeout, in seconds, for a daemon to become available.
    private static let patience = 10

    private struct State {
        var connection: DaemonConnection?
        var requests: [Int: @Sendable (DaemonMessage?) -> Void] = [:]
        /// The deadlines for the daemon's responses, on the monitor's clock.
        var limits: [Int: Double] = [:]
        var last = 0
        var isWelcome = false
        var isOver = false
        var refusal: String?
        /// Why the service manager could not start the daemon, if the next start may succeed.
        var failure: ServiceUnit.Failure?
        /// Whether the daemon is of an older version.
        var isOutdated = false
    }

    private let state = Mutex(State())
    /// Notified when the daemon has sent its first message, or the connection is closed.
    private let greeting = Monitor()
    /// The timeout, in seconds, for a response from the daemon.
    private let patience: Int

    private init(_ patience: Int) { self.patience = patience }

    /// Connects to a running daemon.
    ///
    /// - Returns: The connection, or nil if no daemon is running.
    package static func open(_ place: DaemonPlace = DaemonPlace(), patience: Int = 10) -> ManagerConnection? {
        let manager = ManagerConnection(patience)
        guard let connection = DaemonConnection.open(place, patience: patience),
            let hello = try? MessageCoding.encode(.hello(version: MessageCoding.version, role: .manager))
        else { return nil }
        manager.state.withLock { $0.connection = connection }
        connection.send(hello)
        let listen: @Sendable () -> Void = {
            connection.receive(enduring: { manager.endures(connection, silentFor: $0) }) { manager.receive($0) }
            manager.closed(connection)
        }
        return Threads.start("bg-manager", listen) == nil ? nil : manager
    }

    /// Connects to the daemon.
    ///
    /// Starts a daemon first if the running daemon is of an older version, or if no daemon is running and an earlier daemon left
    /// unfinished work.
    ///
    /// - Parameters:
    ///   - place: The daemon's socket.
    ///   - isNeeded: Whether to start a daemon even if there is no unfinished work.
    /// - Returns: The connection, or nil if there is no work.
    /// - Throws: The reason why there is no daemon.
    package static func find(
        _ place: DaemonPlace = DaemonPlace(), isNeeded: Bool = false
    ) throws(LoadError) -> ManagerConnection? {
        var found = open(place)
        let dropEnd = Monitor.clock + Double(patience)
        var failedStarts = VainStarts()
        while let manager = found {
            if manager.isCompatible, !manager.isDropped || Monitor.clock >= dropEnd { return manager }
            guard manager.isDropped else { break }
            if let failure = manager.state.withLock(\.failure), failedStarts.areTooMany() {
                throw LoadError(.backgroundSessionDisconnected, failure.message)
            }
            pause(until: Monitor.clock + 0.05)
            found = open(place)
        }
        guard found != nil || isNeeded || place.hasUnfinishedWork else { return nil }
        if let reason = place.prepare() { throw LoadError(.backgroundSessionDisconnected, reason) }
        let end = Monitor.clock + Double(patience)
        var reason = "urlsessiond cannot be reached at \(place.socket); see \(place.log)"
        var silentStarts = VainStarts()
        repeat {
            // A daemon that is still ending may block a new daemon for a moment.
            let start = try DaemonStarter.start(place, replacing: found != nil)
            let next = Monitor.clock + 1
            repeat {
                if let reason = start.look(20) { throw LoadError(.backgroundSessionDisconnected, reason) }
                if case .waits(let known) = start.word {
                    guard start.isOver else { throw LoadError(.backgroundSessionDisconnected, known) }
                    reason = known
                }
                if let manager = open(place) {
                    if manager.isCompatible { return manager }
                    reason = manager.state.withLock { $0.refusal } ?? reason
                    if start.word == .listens { throw LoadError(.backgroundSessionDisconnected, reason) }
                }
                if start.isOver { pause(until: min(next, Monitor.clock + 0.02)) }
            } while !start.isOver && Monitor.clock < end || !start.isSilent && Monitor.clock < next
            if !start.isSilent { silentStarts = VainStarts() } else if silentStarts.areTooMany() { throw start.silence }
        } while Monitor.clock < end
        throw LoadError(.backgroundSessionDisconnected, reason)
    }

    private static func pause(until end: Double) {
        let monitor = Monitor()
        monitor.locked { while monitor.wait(until: end) {} }
    }

    /// Whether the daemon supports this program's protocol version; waits for the daemon's first message.
    private var isCompatible: Bool {
        greeting.locked {
            let end = Monitor.clock + Double(patience)
            while !state.withLock({ $0.isWelcome || $0.isOver }), greeting.wait(until: end) {}
        }
        return state.withLock { !$0.isOutdated }
    }

    /// Whether the connection was closed without a message, by a daemon that is ending or by the service manager that flushes its
    /// socket: another connection may reach the next daemon.
    private var isDropped: Bool { state.withLock { $0.isOver && !$0.isWelcome && $0.refusal == nil } }

    /// Sends a request with a single response.
    ///
    /// - Returns: The response: `.done`, `.status` or `.log`.
    package func ask(_ request: ManagerRequest) async throws(LoadError) -> DaemonMessage {
        let answer = await withCheckedContinuation { continuation in
            send(request) { _, answer in
                continuation.resume(returning: answer)
                return true
            }
        }
        return try result(answer)
    }

    /// Sends a request with a single response, and blocks the thread until the response arrives.
    ///
    /// - Returns: The response.
    package func askAndWait(_ request: ManagerRequest) throws(LoadError) -> DaemonMessage {
        let monitor = Monitor()
        let answered = Mutex<DaemonMessage??>(nil)
        send(request) { _, answer in
            monitor.locked {
                answered.withLock { $0 = .some(answer) }
                monitor.wakeAll()
            }
            return true
        }
        let answer = monitor.locked { () -> DaemonMessage? in
            while true {
                if let answer = answered.withLock({ $0 }) { return answer }
                monitor.wait(until: nil)
            }
        }
        return try result(answer)
    }

    private func result(_ answer: DaemonMessage?) throws(LoadError) -> DaemonMessage {
        switch answer {
        case .failed(let error, _): throw error
        case let answer?: return answer
        case nil:
            throw LoadError(
                .backgroundSessionDisconnected, state.withLock { $0.refusal } ?? "urlsessiond closed the connection")
        }
    }

    /// Lists all transfers.
    ///
    /// - Returns: The reports, ordered by transfer number.
    package func list() async throws(LoadError) -> [TransferReport] {
        var all: [TransferReport] = []
        for await page in reports(.list) {
            all += page.reports
            if page.isLast { return all }
        }
        throw LoadError(.backgroundSessionDisconnected, state.withLock { $0.refusal } ?? "urlsessiond closed the connection")
    }

    /// Returns a stream of the pages of a `.list` request, or of the reports of a `.watch` request.
    ///
    /// The stream of a list ends after the last page. Either stream ends when the connection closes.
    package func reports(_ request: ManagerRequest) -> AsyncStream<(reports: [TransferReport], isLast: Bool)> {
        AsyncStream { continuation in
            send(request) { _, answer in
                guard case .transfers(let reports, _, let isLast)? = answer else {
                    continuation.finish()
                    return true
                }
                continuation.yield((reports, isLast))
                guard isLast, request == .list else { return false }
                continuation.finish()
                return true
            }
        }
    }

    package func close() { state.withLock { $0.connection }?.close() }

    /// Sends a request; `answer` returns whether a response was the last response to the request.
    private func send(_ request: ManagerRequest, _ answer: @escaping @Sendable (Int, DaemonMessage?) -> Bool) {
        let (connection, payload): (DaemonConnection?, [UInt8]?) = state.withLock { state in
            guard !state.isOver else { return (nil, nil) }
            state.last += 1
            let number = state.last
            if request != .watch { state.limits[number] = Monitor.clock + Double(patience) }
            state.requests[number] = { message in
                if answer(number, message) { self.state.withLock { $0.requests[number] = nil } }
            }
            return (state.connection, try? MessageCoding.encode(.manage(request, request: number)))
        }
        guard let connection, let payload else {
            _ = answer(0, nil)
            return
        }
        connection.send(payload)
    }

    /// Returns whether to keep waiting for a silent daemon: not if its welcome or a response is overdue, or if it cannot be started.
    private func endures(_ connection: DaemonConnection, silentFor seconds: Int) -> Bool {
        // Less and less often: each question takes a process.
        let isAsked = seconds & (seconds - 1) == 0 && !state.withLock(\.isWelcome)
        let failure = isAsked ? connection.serviceFailure() : nil
        return state.withLock { state in
            if let failure, failure.isFinal {
                state.refusal = failure.message
                return false
            }
            let now = Monitor.clock
            guard state.isWelcome || seconds < patience, state.limits.values.allSatisfy({ $0 > now }) else {
                state.refusal = "urlsessiond does not respond"
                return false
            }
            return true
        }
    }

    private func receive(_ message: DaemonMessage) {
        switch message {
        case .welcome:
            state.withLock { $0.isWelcome = true }
            greeting.locked { greeting.wakeAll() }
        case .refused(let refusal, let reason):
            let connection = state.withLock { state in
                state.isOutdated = refusal == .version
                let advice = state.isOutdated ? "; to replace it, run urlsessiond --replace of this version" : ""
                state.refusal = reason + advice
                return state.connection
            }
            connection?.close()
        case .transfers(_, let request, _), .status(_, let request), .log(_, let request), .done(let request),
            .failed(_, let request):
            let handler = state.withLock { state in
                // More pages of the list follow.
                if case .transfers(_, _, false) = message, state.limits[request] != nil {
                    state.limits[request] = Monitor.clock + Double(patience)
                } else {
                    state.limits[request] = nil
                }
                return state.requests[request]
            }
            handler?(message)
        default: break
        }
    }

    private func closed(_ connection: DaemonConnection) {
        let isUnexplained = state.withLock { !$0.isWelcome && $0.refusal == nil }
        let failure = isUnexplained ? connection.serviceFailure() : nil
        let requests = state.withLock { state in
            state.refusal = state.refusal ?? (failure?.isFinal == true ? failure?.message : nil)
            state.failure = failure
            state.isOver = true
            defer { state.requests = [:] }
            return state.requests
        }
        greeting.locked { greeting.wakeAll() }
        for (_, request) in requests.sorted(by: { $0.key < $1.key }) { request(nil) }
    }
}
