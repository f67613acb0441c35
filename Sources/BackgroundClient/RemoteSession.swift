// SPDX-License-Identifier: Apache-2.0

package import BackgroundProtocol
package import FoundationEssentials
package import LoadingModel
import SystemThreads

/// An engine in another process: executes the tasks of a background session through the daemon.
///
/// ``SessionLink`` decides how to react to events; this class has the lock, the connection and the threads. The daemon's messages
/// reach the clients in order, from one thread at a time. When a call that sends a message to the daemon returns, the message has
/// left the process, so that the program may end immediately afterwards.
///
/// Sendable because all mutable state is only accessed inside `monitor.locked`, or only by the session's thread.
package final class RemoteSession: LoadingService, @unchecked Sendable {
    static let rejectionThread = WorkThread("bg-refusals")

    package let identifier: String
    package let attachment: ClientMessage.Attachment
    let place: DaemonPlace
    /// The timeout, in seconds, for joining a session, and for reconnecting to a daemon.
    let patience: Double
    /// Locked while messages are sent, so that the order of the messages is the order in which they took effect.
    let monitor = Monitor()
    var link: SessionLink
    var connection: DaemonConnection?
    private var clients: [TaskID: any LoadClient] = [:]
    private var answers: [Int: @Sendable (DaemonMessage?) -> Void] = [:]
    private var lastRequest = 0
    /// The number up to which no later process gives numbers to tasks of the session.
    var reservedNumber = 0
    private var onEventsTold: (@Sendable () -> Void)?
    private var onLoss: (@Sendable (LoadError) -> Void)?
    /// When the attempts to connect end, on the monitor's clock.
    var attemptsEnd = 0.0
    /// Why the daemon cannot start yet, since the session was last attached.
    var obstacle: String?
    /// The daemon that refused this version since the session was last attached, with its reason.
    ///
    /// Used only by the session's thread, like ``replacement``.
    var versionRefusal: (process: Int32, isManagers: Bool, reason: String)?
    /// The report of the daemon that is started to replace the one in ``versionRefusal``.
    var replacement: StartReport?

    /// - Parameters:
    ///   - attachment: The description of the session for the daemon.
    ///   - isAwaited: Whether the program was started for this session.
    ///   - place: The place where the daemon listens.
    ///   - patience: The timeout for an unresponsive daemon, in seconds.
    package init(
        _ attachment: ClientMessage.Attachment, isAwaited: Bool, place: DaemonPlace = DaemonPlace(),
        patience: Int? = nil
    ) {
        self.place = place
        self.patience = Double(patience ?? DaemonConnection.patience)
        identifier = attachment.identifier
        _ = DaemonStarter.environment
        self.attachment = attachment
        link = SessionLink(attachment, isAwaited: isAwaited)
    }

    // MARK: Actions

    /// Passes an event to the link and carries out the resulting actions.
    func handle(_ event: SessionLink.Event, _ prepare: () -> Void = {}) {
        let rest = monitor.locked {
            prepare()
            return perform(event)
        }
        for work in rest { work() }
    }

    /// Carries out the actions of an event; called with the lock held.
    ///
    /// - Parameters:
    ///   - event: The event.
    ///   - order: The encoded order to send, if the order is already encoded.
    /// - Returns: The work to do without the lock, in this order.
    private func perform(_ event: SessionLink.Event, order: [UInt8]? = nil) -> [() -> Void] {
        var rest: [() -> Void] = []
        for action in link.handle(event) {
            switch action {
            case .send(let message):
                if let connection, let payload = order ?? (try? MessageCoding.encode(message)) { connection.send(payload) }
            case .close: connection?.close()
            case .removeTimeout: connection?.removeTimeout()
            case .tell(let task, let event): if let client = clients[task] { rest.append { client.tell(event) } }
            case .ask(let task, let question, let number, let generation):
                guard let client = clients[task] else { continue }
                rest.append {
                    client.ask(question) { answer in
                        self.handle(.answered(answer, task, question: number, generation: generation))
                    }
                }
            case .fail(let task, let error): if let client = clients[task] { rest.append { client.fail(with: error) } }
            case .reject(let task, let error):
                // On another thread, because the caller may hold locks that the client needs.
                if let client = clients.removeValue(forKey: task) { Self.rejectionThread.run { client.fail(with: error) } }
            case .reply(let request, let message):
                if let answer = answers.removeValue(forKey: request) { rest.append { answer(message) } }
            case .farewell: if let onEventsTold { rest.append { onEventsTold() } }
            case .writeLosses(let tasks): writeLosses(tasks)
            case .addLosses(let tasks): rest.append { self.addLosses(tasks) }
            case .report(let error): if let onLoss { rest.append { onLoss(error) } }
            }
        }
        if link.mayEndWaiting(event) { monitor.wakeAll() }
        return rest
    }

    /// Waits for a condition until the deadline; called with the lock held.
    ///
    /// - Returns: Whether the deadline passed.
    private func timesOut(_ waiter: SessionLink.Waiter, until deadline: Double) -> Bool {
        while link.waits(for: waiter) {
            guard monitor.wait(until: deadline) else { return link.waits(for: waiter) }
        }
        return false
    }

    // MARK: Joining

    /// Joins the daemon, starting one if no daemon is running, and waits until the daemon has reported the session's tasks.
    ///
    /// - Returns: The session's tasks, and the highest task number used so far.
    package func join() throws(LoadError) -> (known: [KnownTask], lastTask: TaskID) {
        do {
            _ = try MessageCoding.encode(.attach(attachment))
        } catch {
            throw LoadError(.unknown, "the session's configuration cannot be sent to urlsessiond: \(error)")
        }
        let deadline = Monitor.clock + patience
        let reserved = readReservedNumber()
        handle(.join(losses: readLosses())) { (attemptsEnd, reservedNumber) = (deadline, reserved) }
        // The thread keeps the session alive while it is joined.
        if Threads.start("bg-session", { self.run() }) == nil {
            lose("the system cannot create a thread for the background session")
        }
        let result: Result<([KnownTask], TaskID), LoadError> = monitor.locked {
            _ = timesOut(.attached, until: deadline + 1)
            if link.isAttached {
                // The process that had the session until now may have reserved numbers.
                reservedNumber = max(reservedNumber, readReservedNumber())
                return .success((link.known, max(link.lastTask, reservedNumber)))
            }
            let reason = obstacle ?? self.silence(connection?.log ?? place.log)
            let silence = LoadError(.backgroundSessionDisconnected, reason)
            if link.loss == nil { _ = perform(.refuse(silence)) }
            return .failure(link.loss ?? silence)
        }
        return try result.get()
    }

    /// Sets the client of a task that the daemon has from an earlier run of the program.
    package func adopt(_ task: KnownTask, client: any LoadClient) {
        handle(.adopt(task)) { clients[task.order.task.id] = client }
    }

    /// Starts the delivery of events: first the events of tasks that ended while the program was not running, then current events.
    ///
    /// - Parameters:
    ///   - eventsTold: Called once after all waiting events were delivered, if there were such events or the program was started
    ///     for them.
    ///   - loss: Called once when the daemon is lost for good.
    package func begin(eventsTold: @escaping @Sendable () -> Void, loss: @escaping @Sendable (LoadError) -> Void) {
        handle(.begin) { (onEventsTold, onLoss) = (eventsTold, loss) }
        if monitor.locked({ link.waits(for: .question) }) { waitForQuestion() }
        while monitor.locked({ link.isHolding }) { handle(.deliver) }
    }

    /// Why the daemon is lost for good; nil otherwise.
    package var loss: LoadError? { monitor.locked { link.loss } }

    /// Fails all tasks because the session cannot be created as configured.
    package func fail(with error: LoadError) { handle(.refuse(error)) }

    /// Marks the daemon as lost for good.
    func lose(_ reason: String) { handle(.lose(LoadError(.backgroundSessionDisconnected, reason))) }

    /// If the program was started for a question, delays `eventsTold` until the question arrives, but for at most 2 seconds,
    /// because the question may no longer be pending.
    private func waitForQuestion() {
        let wait: @Sendable () -> Void = {
            let end = Monitor.clock + 2
            _ = self.monitor.locked { self.timesOut(.question, until: end) }
            self.handle(.notAsked)
        }
        if Threads.start("bg-farewell", wait) == nil { handle(.notAsked) }
    }

    // MARK: LoadingService

    package func submit(_ order: TaskOrder, client: any LoadClient) -> Bool {
        submit(BackgroundOrder(order, created: 0), client: client)
    }

    /// Submits an order.
    ///
    /// - Returns: Whether the caller has to call ``wake()``, which waits until the order is durable.
    package func submit(_ order: BackgroundOrder, client: any LoadClient) -> Bool {
        let payload: [UInt8]
        do {
            payload = try MessageCoding.encode(.submit(order))
        } catch {
            Self.rejectionThread.run {
                client.fail(with: LoadError(.unknown, "the task cannot be sent to urlsessiond: \(error)"))
            }
            return false
        }
        return monitor.locked {
            let before = link.sequence
            clients[order.task.id] = client
            _ = perform(.submit(order), order: payload)
            return link.sequence > before
        }
    }

    /// Waits until all submitted orders are durable or refused, or the daemon counts as unresponsive.
    package func wake() {
        let log: String? = monitor.locked {
            let mark = SessionLink.Waiter.accepted(link.sequence)
            // Reconnects once if the daemon does not respond: another daemon may be running.
            for limit in [patience * 1.25, patience * 2] {
                guard timesOut(mark, until: Monitor.clock + limit) else { return nil }
                if link.isAttached { connection?.close() }
            }
            return connection?.log ?? place.log
        }
        if let log { lose("urlsessiond does not respond; see \(log)") }
    }

    package func command(_ command: TaskCommand, for task: TaskID) -> Bool {
        handle(.command(command, task))
        return false
    }

    /// Sends the program's notes for a task that it ordered.
    package func note(_ notes: BackgroundOrder.Notes, for task: TaskID) { handle(.note(notes, task)) }

    /// Reports that the program has been told of the task's end and has taken its file.
    ///
    /// Returns when the daemon has stored the report durably, or when the daemon counts as unreachable. After a durable report, a
    /// program that ends immediately is not told of the task's end again. If the program cancelled the task and is about to
    /// be told of other ends, the daemon stores the reports together: only the last call waits, and every call whose report is one too
    /// many.
    package func acknowledge(_ task: TaskID) {
        handle(.told(task)) { clients[task] = nil }
        monitor.locked {
            if timesOut(.forgotten, until: Monitor.clock + patience) { _ = perform(.forgettingTimedOut) }
        }
        handle(.concluded(task))
    }

    /// Reports that the program has processed the events that it was started for.
    package func eventsHandled() { handle(.eventsHandled) }

    package func invalidate() {
        // The daemon forgets the session, and counts its tasks from the beginning.
        if loss == nil { forgetReservedNumber() }
        handle(.leave(invalidating: true))
    }

    /// Leaves the session's tasks to the daemon because the program has released the session.
    package func detach() { handle(.leave(invalidating: false)) }

    // MARK: Requests

    package func renew(_ renewal: Renewal, completion: @escaping @Sendable () -> Void) {
        let request = nextRequest()
        ask(.renew(renewal, request: request), request) { _ in completion() }
    }

    package func proxies(for url: URL) async throws(LoadError) -> [URL?] {
        let request = nextRequest()
        let answer = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                ask(.proxies(url, request: request), request) { continuation.resume(returning: $0) }
                if Task.isCancelled { handle(.giveUp(request: request)) }
            }
        } onCancel: {
            handle(.giveUp(request: request))
        }
        switch answer {
        case .proxies(let proxies, _): return proxies
        case .failed(let error, _): throw error
        case nil where Task.isCancelled: throw .cancelled
        default: throw LoadError(.backgroundSessionDisconnected, "urlsessiond closed the connection")
        }
    }

    private func nextRequest() -> Int {
        monitor.locked {
            lastRequest += 1
            return lastRequest
        }
    }

    private func ask(_ message: ClientMessage, _ request: Int, _ answer: @escaping @Sendable (DaemonMessage?) -> Void) {
        handle(.request(request, message)) { answers[request] = answer }
    }
}
