//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import BackgroundProtocol
package import LoadingModel
import SystemThreads

/// An engine in another process: carries out the tasks of a background session by the daemon.
///
/// What the program ordered, and what it wants of it, is kept here until the daemon has it for certain, so that a daemon that ends, or is
/// killed, is started again and told; what the program was told of is said to the daemon only when it was. Whatever the daemon
/// says reaches the clients in order, from one thread at a time. What is said has left the process when the call returns: a program
/// may end right after it.
///
/// Sendable because all that changes is read and changed inside `monitor.locked`.
package final class RemoteSession: LoadingService, @unchecked Sendable {
    static let elsewhere = WorkThread("bg-refusals")

    enum Standing {
        case apart
        /// Sent for, or said hello to.
        case joining
        case attached(DaemonConnection)
        /// For good.
        case lost(LoadError)
        /// The program has no use for it any more.
        case left
    }

    struct Entry {
        var client: (any LoadClient)?
        /// Until the daemon has it for certain.
        var order: BackgroundOrder?
        var sequence = 0
        var isSuspended = false
        var end: TaskCommand?
        var priority: Float?
        var notes: BackgroundOrder.Notes?
        /// When it was ordered, which tells it from others that had its number.
        var created = 0.0
        /// Its end was told to the client, which has not said yet that the program knows.
        var isEnded = false
    }

    package let identifier: String
    let place: DaemonPlace
    /// Seconds that making a session, or a daemon that went away, may take.
    let patience: Double
    /// Held while messages are sent, so that they leave in the order in which they took effect.
    let monitor = Monitor()
    package let attachment: ClientMessage.Attachment
    var standing = Standing.apart
    /// The connection on which hello was said.
    var joining: DaemonConnection?
    /// How many connections had the session.
    var generation = 0
    /// The daemon did not say in time that it knows of an end: nobody waits for that any more before it does.
    var forgetsLate = false
    private let isAwaited: Bool
    var entries: [TaskID: Entry] = [:]
    /// Ended, and the program was told; the daemon may not know yet for certain.
    var told: Set<TaskID> = []
    /// The order that was submitted last; those above the first one that waits are not durable.
    var sequence = 0
    var waiting: [Int: TaskID] = [:]
    /// What the daemon has of the session, as it said when it was last joined.
    var known: [KnownTask] = []
    var lastTask = 0
    /// Messages that came before the program took over what is known.
    var held: [(message: DaemonMessage, generation: Int)]? = []
    /// Ended tasks of an earlier life whose clients have not been told.
    var arrears: Set<TaskID> = []
    /// A daemon was started to take the place of an older one.
    var hasReplaced = false
    var owesFarewell = false
    /// Questions that the program has not answered.
    var openQuestions = 0
    /// What the program was started for may still be on its way.
    var mayBeAsked = false
    var attemptsEnd: Double?
    var requests: [Int: @Sendable (DaemonMessage?) -> Void] = [:]
    var lastRequest = 0
    /// Tasks of a session that was lost, by when they were ordered: over for the program, and maybe not for the daemon.
    var losses: [TaskID: Double] = [:]
    var onEventsTold: (@Sendable () -> Void)?
    var onLoss: (@Sendable (LoadError) -> Void)?

    /// - Parameters:
    ///   - attachment: What the daemon is told of the session.
    ///   - isAwaited: The program was started for this session.
    ///   - place: Where the daemon listens.
    ///   - patience: Seconds after which a daemon that does not answer counts as dead.
    package init(
        _ attachment: ClientMessage.Attachment, isAwaited: Bool, place: DaemonPlace = DaemonPlace(),
        patience: Int? = nil
    ) {
        self.isAwaited = isAwaited
        self.place = place
        self.patience = Double(patience ?? DaemonConnection.patience)
        identifier = attachment.identifier
        _ = DaemonStarter.environment
        self.attachment = attachment
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
        monitor.locked {
            standing = .joining
            attemptsEnd = deadline
            losses = readLosses()
        }
        // The thread has the session alive while it is joined.
        if Threads.start("bg-session", { self.live() }) == nil {
            lose(LoadError(.backgroundSessionDisconnected, "the system has no thread for the background session"))
        }
        let result: Result<([KnownTask], TaskID), LoadError> = monitor.locked {
            while case .joining = standing {
                guard monitor.wait(until: deadline + 1) else { break }
            }
            switch standing {
            case .attached: return .success((known, lastTask))
            case .lost(let error): return .failure(error)
            case .apart, .joining, .left: break
            }
            let error = LoadError(
                .backgroundSessionDisconnected,
                "urlsessiond did not answer within \(Int(patience)) seconds; see \(place.log)")
            standing = .lost(error)
            joining?.close()
            return .failure(error)
        }
        return try result.get()
    }

    /// Whose task it is that the daemon has from an earlier life of the program.
    package func adopt(_ task: KnownTask, client: any LoadClient) {
        monitor.locked {
            var entry = Entry(client: client, created: task.order.created)
            if case .suspended = task.phase { entry.isSuspended = true }
            entries[task.order.task.id] = entry
        }
    }

    /// Begins to tell: of the tasks that ended while the program was away, then of what goes on.
    ///
    /// - Parameters:
    ///   - eventsTold: Called once, when all that waited for the program was told, where anything did or the program was started for it.
    ///   - loss: Called once, when the daemon is gone for good.
    package func begin(eventsTold: @escaping @Sendable () -> Void, loss: @escaping @Sendable (LoadError) -> Void) {
        monitor.locked {
            onEventsTold = eventsTold
            onLoss = loss
            guard attachment.takesEvents else { return }
            for task in known {
                if case .ended = task.phase { arrears.insert(task.order.task.id) }
            }
            owesFarewell = !arrears.isEmpty || isAwaited
            mayBeAsked = isAwaited && arrears.isEmpty
        }
        if monitor.locked({ mayBeAsked }) { waitForQuestion() }
        deliverHeld()
    }

    /// Why the daemon cannot be had any more.
    package var loss: LoadError? {
        monitor.locked { if case .lost(let error) = standing { error } else { nil } }
    }

    /// Has all tasks fail: the session cannot be what it was to be.
    package func fail(with error: LoadError) {
        monitor.locked {
            if case .attached(let connection) = standing { connection.close() }
            joining?.close()
            standing = .lost(error)
            monitor.wakeAll()
        }
    }

    /// A program that was started for a decision is not told that this was all before it was asked; one for which there is none any more
    /// is told so soon.
    private func waitForQuestion() {
        let wait: @Sendable () -> Void = {
            let end = Monitor.clock + 2
            let farewell: (@Sendable () -> Void)? = self.monitor.locked {
                while self.mayBeAsked, self.monitor.wait(until: end) {}
                self.mayBeAsked = false
                return self.takeFarewell()
            }
            farewell?()
        }
        if Threads.start("bg-farewell", wait) == nil { monitor.locked { mayBeAsked = false } }
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
            refuse(order.task.id, client, LoadError(.unknown, "the task cannot be given to urlsessiond: \(error)"))
            return false
        }
        let loss: LoadError? = monitor.locked {
            switch standing {
            case .lost(let error): return error
            case .left, .apart: return LoadError(.cancelled, "the session was invalidated")
            case .joining, .attached: break
            }
            sequence += 1
            entries[order.task.id] = Entry(client: client, order: order, sequence: sequence, created: order.created)
            waiting[sequence] = order.task.id
            say(payload)
            return nil
        }
        if let loss {
            refuse(order.task.id, client, loss)
            return false
        }
        return true
    }

    /// Waits until every order that was submitted before is durable, or was refused, or the daemon counts as dead.
    package func wake() {
        let isDead = monitor.locked {
            let mark = sequence
            // A daemon that does not answer is joined anew once: another one may be there.
            for limit in [patience * 1.25, patience * 2] {
                let deadline = Monitor.clock + limit
                repeat {
                    if waiting.keys.allSatisfy({ $0 > mark }) { return false }
                    switch standing {
                    case .joining, .attached: break
                    case .lost, .left, .apart: return false
                    }
                } while monitor.wait(until: deadline)
                if case .attached(let connection) = standing { connection.close() }
            }
            return true
        }
        if isDead { lose(LoadError(.backgroundSessionDisconnected, "urlsessiond does not answer; see \(place.log)")) }
    }

    package func command(_ command: TaskCommand, for task: TaskID) -> Bool {
        monitor.locked {
            guard var entry = entries[task], !entry.isEnded else { return }
            switch command {
            case .suspend: entry.isSuspended = true
            case .resume: entry.isSuspended = false
            case .cancel, .cancelProducingResumeData: entry.end = command
            case .setPriority(let priority): entry.priority = priority
            case .consumed, .tellCounts: return
            }
            entries[task] = entry
            say(.command(command, task))
        }
        return false
    }

    /// Says what the program thinks of a task it ordered.
    package func note(_ notes: BackgroundOrder.Notes, for task: TaskID) {
        monitor.locked {
            guard entries[task] != nil else { return }
            entries[task]?.notes = notes
            say(.note(notes, task))
        }
    }

    /// The program was told of the task's end, and has taken its file.
    ///
    /// Returns when that is durable, so that a program which ends next is not told again, or when the daemon cannot be had.
    package func acknowledge(_ task: TaskID) {
        let farewell: (@Sendable () -> Void)? = monitor.locked {
            guard let entry = entries.removeValue(forKey: task) else { return nil }
            waiting[entry.sequence] = nil
            // One that the daemon never had for certain needs no end there.
            if entry.order == nil {
                told.insert(task)
                say(.told(task))
                waitUntilForgotten(task)
            }
            arrears.remove(task)
            return takeFarewell()
        }
        farewell?()
    }

    private func waitUntilForgotten(_ task: TaskID) {
        let deadline = Monitor.clock + patience
        while told.contains(task) {
            switch standing {
            case .joining, .attached: break
            case .apart, .lost, .left: return
            }
            guard !forgetsLate, monitor.wait(until: deadline) else {
                forgetsLate = true
                return
            }
        }
    }

    /// The program has dealt with what it was started for.
    package func eventsHandled() { monitor.locked { say(.eventsHandled) } }

    package func invalidate() {
        monitor.locked {
            say(.invalidate)
            leave()
        }
    }

    /// Leaves the session's tasks to the daemon: the program has no object for it any more.
    package func detach() { monitor.locked { leave() } }

    // MARK: Inside the lock

    func say(_ message: ClientMessage) {
        guard case .attached = standing, let payload = try? MessageCoding.encode(message) else { return }
        say(payload)
    }

    func say(_ payload: [UInt8]) {
        if case .attached(let connection) = standing { connection.send(payload) }
    }

    func takeFarewell() -> (@Sendable () -> Void)? {
        guard owesFarewell, arrears.isEmpty, held == nil, openQuestions == 0, !mayBeAsked else { return nil }
        owesFarewell = false
        return onEventsTold
    }

    private func leave() {
        if case .attached(let connection) = standing { connection.close() }
        joining?.close()
        // Why it was lost is what its tasks fail with from then on.
        if case .lost = standing {} else { standing = .left }
        waiting = [:]
        monitor.wakeAll()
    }

    // MARK: Outside of it

    /// Ends a task that the daemon never has.
    ///
    /// Elsewhere than in the caller's thread, which may hold locks that the client needs.
    private func refuse(_ task: TaskID, _ client: any LoadClient, _ error: LoadError) {
        Self.elsewhere.run { client.fail(with: error) }
    }
}

extension LoadClient {
    func fail(with error: LoadError) {
        tell(.finished(TaskOutcome(result: .failure(error), response: nil, timelines: [], redirectCount: 0)))
    }
}
