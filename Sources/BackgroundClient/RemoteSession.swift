//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import BackgroundProtocol
package import FoundationEssentials
package import LoadingModel
import SystemThreads

/// An engine in another process: carries out the tasks of a background session by the daemon.
///
/// What follows from what happens is ``SessionLink``'s to say; here are the lock, the connection and the threads. Whatever the daemon says
/// reaches the clients in order, from one thread at a time. What is said has left the process when the call returns: a program may end right
/// after it.
///
/// Sendable because all that changes is read and changed inside `monitor.locked`, or by the session's thread alone.
package final class RemoteSession: LoadingService, @unchecked Sendable {
    static let elsewhere = WorkThread("bg-refusals")

    package let identifier: String
    package let attachment: ClientMessage.Attachment
    let place: DaemonPlace
    /// Seconds that making a session, or a daemon that went away, may take.
    let patience: Double
    /// Held while messages are sent, so that they leave in the order in which they took effect.
    let monitor = Monitor()
    var link: SessionLink
    var connection: DaemonConnection?
    private var clients: [TaskID: any LoadClient] = [:]
    private var answers: [Int: @Sendable (DaemonMessage?) -> Void] = [:]
    private var lastRequest = 0
    private var onEventsTold: (@Sendable () -> Void)?
    private var onLoss: (@Sendable (LoadError) -> Void)?
    /// Until when a daemon is looked for, on the monitor's clock.
    var attemptsEnd = 0.0
    /// Of the session's thread alone: which process refused it as of a newer version, and why, since it was last attached; and how the
    /// start of one goes that is to take its place.
    var objection: (process: Int32, reason: String)?
    var replacement: StartReport?

    /// - Parameters:
    ///   - attachment: What the daemon is told of the session.
    ///   - isAwaited: The program was started for this session.
    ///   - place: Where the daemon listens.
    ///   - patience: Seconds after which a daemon that does not answer counts as dead.
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

    // MARK: What follows

    /// Has the link say what follows from something, and does that.
    func happens(_ event: SessionLink.Event, _ prepare: () -> Void = {}) {
        let rest = monitor.locked {
            prepare()
            return carryOut(event)
        }
        for work in rest { work() }
    }

    /// Inside the lock: does what follows from something.
    ///
    /// - Parameters:
    ///   - event: What happened.
    ///   - order: The order that is to be said, where it is encoded already.
    /// - Returns: What is to be done outside of the lock, in this order.
    private func carryOut(_ event: SessionLink.Event, order: [UInt8]? = nil) -> [() -> Void] {
        var rest: [() -> Void] = []
        for action in link.handle(event) {
            switch action {
            case .say(let message):
                if let connection, let payload = order ?? (try? MessageCoding.encode(message)) { connection.send(payload) }
            case .close: connection?.close()
            case .endureSilence: connection?.limitSilence(nil)
            case .tell(let task, let event): if let client = clients[task] { rest.append { client.tell(event) } }
            case .ask(let task, let question, let number, let generation):
                guard let client = clients[task] else { continue }
                rest.append {
                    client.ask(question) { answer in
                        self.happens(.answered(answer, task, question: number, generation: generation))
                    }
                }
            case .fail(let task, let error): if let client = clients[task] { rest.append { client.fail(with: error) } }
            case .reject(let task, let error):
                // Elsewhere than in the caller's thread, which may hold locks that the client needs.
                if let client = clients.removeValue(forKey: task) { Self.elsewhere.run { client.fail(with: error) } }
            case .reply(let request, let message):
                if let answer = answers.removeValue(forKey: request) { rest.append { answer(message) } }
            case .farewell: if let onEventsTold { rest.append { onEventsTold() } }
            case .writeLosses(let tasks): writeLosses(tasks)
            case .keepLosses(let tasks): rest.append { self.keepLosses(tasks) }
            case .report(let error): if let onLoss { rest.append { onLoss(error) } }
            }
        }
        if event.mayEndWaiting { monitor.wakeAll() }
        return rest
    }

    /// Inside the lock: waits for as long as it may come, or until then.
    ///
    /// - Returns: Whether it did not come in time.
    private func isInVain(_ waiter: SessionLink.Waiter, until deadline: Double) -> Bool {
        while link.waits(for: waiter) {
            guard monitor.wait(until: deadline) else { return link.waits(for: waiter) }
        }
        return false
    }

    // MARK: Joining

    /// Joins the daemon, which is started where none runs, and waits until it said what it has of the session.
    ///
    /// - Returns: The session's tasks, and the highest number that one ever had.
    package func join() throws(LoadError) -> (known: [KnownTask], lastTask: TaskID) {
        do {
            _ = try MessageCoding.encode(.attach(attachment))
        } catch {
            throw LoadError(.unknown, "the session's configuration cannot be given to urlsessiond: \(error)")
        }
        let deadline = Monitor.clock + patience
        happens(.join(losses: readLosses())) { attemptsEnd = deadline }
        // The thread has the session alive while it is joined.
        if Threads.start("bg-session", { self.live() }) == nil {
            lose("the system has no thread for the background session")
        }
        let result: Result<([KnownTask], TaskID), LoadError> = monitor.locked {
            _ = isInVain(.attached, until: deadline + 1)
            if link.isAttached { return .success((link.known, link.lastTask)) }
            let log = connection?.log ?? place.log
            let silence = LoadError(
                .backgroundSessionDisconnected, "urlsessiond did not answer within \(Int(patience)) seconds; see \(log)")
            if link.loss == nil { _ = carryOut(.refuse(silence)) }
            return .failure(link.loss ?? silence)
        }
        return try result.get()
    }

    /// Whose task it is that the daemon has from an earlier life of the program.
    package func adopt(_ task: KnownTask, client: any LoadClient) {
        happens(.adopt(task)) { clients[task.order.task.id] = client }
    }

    /// Begins to tell: of the tasks that ended while the program was away, then of what goes on.
    ///
    /// - Parameters:
    ///   - eventsTold: Called once, when all that waited for the program was told, where anything did or the program was started for it.
    ///   - loss: Called once, when the daemon is gone for good.
    package func begin(eventsTold: @escaping @Sendable () -> Void, loss: @escaping @Sendable (LoadError) -> Void) {
        happens(.begin) { (onEventsTold, onLoss) = (eventsTold, loss) }
        if monitor.locked({ link.waits(for: .question) }) { waitForQuestion() }
        while monitor.locked({ link.isHolding }) { happens(.deliver) }
    }

    /// Why the daemon cannot be had any more.
    package var loss: LoadError? { monitor.locked { link.loss } }

    /// Has all tasks fail: the session cannot be what it was to be.
    package func fail(with error: LoadError) { happens(.refuse(error)) }

    /// The daemon is gone for good.
    func lose(_ reason: String) { happens(.lose(LoadError(.backgroundSessionDisconnected, reason))) }

    /// A program that was started for a decision is not told that this was all before it was asked; one for which there is none any more
    /// is told so soon.
    private func waitForQuestion() {
        let wait: @Sendable () -> Void = {
            let end = Monitor.clock + 2
            _ = self.monitor.locked { self.isInVain(.question, until: end) }
            self.happens(.notAsked)
        }
        if Threads.start("bg-farewell", wait) == nil { happens(.notAsked) }
    }

    // MARK: LoadingService

    package func submit(_ order: TaskOrder, client: any LoadClient) -> Bool {
        submit(BackgroundOrder(order, created: 0), client: client)
    }

    /// Orders a task.
    ///
    /// - Returns: Whether ``wake()`` has to be called, which waits until the order is durable.
    package func submit(_ order: BackgroundOrder, client: any LoadClient) -> Bool {
        let payload: [UInt8]
        do {
            payload = try MessageCoding.encode(.submit(order))
        } catch {
            Self.elsewhere.run {
                client.fail(with: LoadError(.unknown, "the task cannot be given to urlsessiond: \(error)"))
            }
            return false
        }
        return monitor.locked {
            let before = link.sequence
            clients[order.task.id] = client
            _ = carryOut(.submit(order), order: payload)
            return link.sequence > before
        }
    }

    /// Waits until every order that was submitted before is durable, or was refused, or the daemon counts as dead.
    package func wake() {
        let isDead = monitor.locked {
            let mark = SessionLink.Waiter.accepted(link.sequence)
            // A daemon that does not answer is joined anew once: another one may be there.
            for limit in [patience * 1.25, patience * 2] {
                guard isInVain(mark, until: Monitor.clock + limit) else { return false }
                if link.isAttached { connection?.close() }
            }
            return true
        }
        if isDead { lose("urlsessiond does not answer; see \(place.log)") }
    }

    package func command(_ command: TaskCommand, for task: TaskID) -> Bool {
        happens(.command(command, task))
        return false
    }

    /// Says what the program thinks of a task it ordered.
    package func note(_ notes: BackgroundOrder.Notes, for task: TaskID) { happens(.note(notes, task)) }

    /// The program was told of the task's end, and has taken its file.
    ///
    /// Returns when that is durable, so that a program which ends next is not told again, or when the daemon cannot be had.
    package func acknowledge(_ task: TaskID) {
        happens(.told(task)) { clients[task] = nil }
        monitor.locked {
            if isInVain(.forgotten(task), until: Monitor.clock + patience) { _ = carryOut(.forgetsLate) }
        }
        happens(.concluded(task))
    }

    /// The program has dealt with what it was started for.
    package func eventsHandled() { happens(.eventsHandled) }

    package func invalidate() { happens(.leave(invalidating: true)) }

    /// Leaves the session's tasks to the daemon: the program has no object for it any more.
    package func detach() { happens(.leave(invalidating: false)) }

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
                if Task.isCancelled { happens(.giveUp(request: request)) }
            }
        } onCancel: {
            happens(.giveUp(request: request))
        }
        switch answer {
        case .proxies(let proxies, _): return proxies
        case .failed(let error, _): throw error
        case nil where Task.isCancelled: throw .cancelled
        default: throw LoadError(.backgroundSessionDisconnected, "urlsessiond went away")
        }
    }

    private func nextRequest() -> Int {
        monitor.locked {
            lastRequest += 1
            return lastRequest
        }
    }

    private func ask(_ message: ClientMessage, _ request: Int, _ answer: @escaping @Sendable (DaemonMessage?) -> Void) {
        happens(.request(request, message)) { answers[request] = answer }
    }
}
