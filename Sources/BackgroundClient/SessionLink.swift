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

/// The state machine of a session's link to the daemon and its tasks there, without locks, sockets or a clock.
///
/// It keeps the program's orders and commands until the daemon has stored them durably, and sends them again to each daemon that it
/// joins. It repeats the acknowledgment of a task's end until the daemon has forgotten the task.
package struct SessionLink {
    package enum Standing {
        case apart
        /// Searching for a daemon, or waiting for its response to hello.
        case joining
        case attached
        /// The daemon is lost for good.
        case lost(LoadError)
        /// The program has released the session.
        case left
    }

    package enum Event {
        /// Searches for a daemon. `losses` are the tasks of a lost session with their creation times: they are over for the
        /// program, but perhaps not for the daemon.
        case join(losses: [TaskID: Double])
        /// The connection is open.
        case opened
        case heard(DaemonMessage)
        /// The connection is closed.
        case closed
        /// The program has a client for a task that the daemon already had.
        case adopt(KnownTask)
        /// The program has clients for all known tasks: held messages are passed on from now on, by ``deliver``.
        case begin
        /// Passes on the held messages; if there are none, later messages are passed on immediately.
        case deliver
        case submit(BackgroundOrder)
        case command(TaskCommand, TaskID)
        case note(BackgroundOrder.Notes, TaskID)
        /// The program was told of the task's end and has taken its file.
        case told(TaskID)
        /// No thread waits for the task's ``SessionLink/Waiter/forgotten(_:)`` any more.
        case concluded(TaskID)
        /// The program's answer to a question; `generation` is that of the connection on which the question arrived.
        case answered(TaskAnswer, TaskID, question: Int, generation: Int)
        /// The question that the program was started for did not arrive in time.
        case notAsked
        case eventsHandled
        /// A request with a single response, by its number.
        case request(Int, ClientMessage)
        case giveUp(request: Int)
        /// The daemon did not confirm in time that it has forgotten a task.
        case forgetsLate
        /// The daemon is lost for good, or refuses the session.
        case lose(LoadError)
        /// The session cannot be created as configured; the caller gets the error.
        case refuse(LoadError)
        case leave(invalidating: Bool)
    }

    package enum Action {
        case say(ClientMessage)
        /// Close the connection; sent messages still arrive.
        case close
        /// Remove the timeout: an idle daemon sends nothing.
        case endureSilence
        case tell(TaskID, TaskEvent)
        case ask(TaskID, TaskQuestion, number: Int, generation: Int)
        /// Fail the task of a client with this error.
        case fail(TaskID, LoadError)
        /// Fail a task that was never ordered.
        case reject(TaskID, LoadError)
        /// Nil if there is no response.
        case reply(Int, DaemonMessage?)
        /// All waiting events were delivered.
        case farewell
        /// Replace the stored losses.
        case writeLosses([TaskID: Double])
        /// Add to the stored losses.
        case keepLosses([TaskID: Double])
        case report(LoadError)
    }

    /// A condition that a thread of the program waits for.
    package enum Waiter {
        case attached
        /// Every order up to that number is durable or was refused.
        case accepted(Int)
        case forgotten(TaskID)
        case question
    }

    struct Entry {
        /// Set until the daemon has stored the order durably.
        var order: BackgroundOrder?
        var sequence = 0
        var isSuspended = false
        var end: TaskCommand?
        var priority: Float?
        var notes: BackgroundOrder.Notes?
        /// The creation time, which distinguishes the task from earlier ones with the same number.
        var created = 0.0
        /// The client was told of the end, but the program has not acknowledged that yet.
        var isEnded = false
    }

    let attachment: ClientMessage.Attachment
    /// Whether the program was started for this session.
    let isAwaited: Bool
    package internal(set) var standing = Standing.apart
    /// The session's tasks that the daemon reported when it was last joined.
    package internal(set) var known: [KnownTask] = []
    package internal(set) var lastTask = 0
    /// The number of the last submitted order.
    package private(set) var sequence = 0
    /// The number of connections that the session has had.
    var generation = 0
    var isOpen = false
    var entries: [TaskID: Entry] = [:]
    /// Ended tasks that the program was told of; the daemon may not have forgotten them yet.
    var told: Set<TaskID> = []
    /// Orders that are not durable yet, by their sequence number.
    var waiting: [Int: TaskID] = [:]
    /// The daemon was late to confirm a task's end; until it confirms one, no thread waits for confirmations.
    var forgetsLate = false
    /// Messages that arrived before the program took over the known tasks.
    var held: [(message: DaemonMessage, generation: Int)]? = []
    /// Ended tasks of an earlier run whose clients have not been told.
    var arrears: Set<TaskID> = []
    var owesFarewell = false
    /// The number of questions that the program has not answered.
    var openQuestions = 0
    /// The program was started for a question that has not arrived.
    var mayBeAsked = false
    var requests: Set<Int> = []
    var losses: [TaskID: Double] = [:]

    package init(_ attachment: ClientMessage.Attachment, isAwaited: Bool) {
        self.attachment = attachment
        self.isAwaited = isAwaited
    }

    // MARK: Queries

    package var isJoining: Bool { if case .joining = standing { true } else { false } }
    package var isAttached: Bool { if case .attached = standing { true } else { false } }
    /// Whether messages are held, or later ones will be.
    package var isHolding: Bool { held != nil }
    package var loss: LoadError? { if case .lost(let error) = standing { error } else { nil } }

    /// Whether a thread still has to wait for the condition.
    package func waits(for waiter: Waiter) -> Bool {
        switch (waiter, standing) {
        case (.question, _): mayBeAsked
        case (.attached, .joining): true
        case (.accepted(let mark), .joining), (.accepted(let mark), .attached): waiting.keys.contains { $0 <= mark }
        case (.forgotten(let task), .joining), (.forgotten(let task), .attached): told.contains(task) && !forgetsLate
        default: false
        }
    }

    // MARK: Events

    package mutating func handle(_ event: Event) -> [Action] {
        switch event {
        case .join(let losses):
            guard case .apart = standing else { return [] }
            standing = .joining
            self.losses = losses
            return []
        case .opened: return opened()
        case .heard(let message): return heard(message)
        case .closed:
            isOpen = false
            if isAttached { standing = .joining }
            defer { requests = [] }
            return requests.sorted().map { .reply($0, nil) }
        case .adopt(let task):
            var entry = Entry(created: task.order.created)
            if case .suspended = task.phase { entry.isSuspended = true }
            entries[task.order.task.id] = entry
            return []
        case .begin:
            guard attachment.takesEvents else { return [] }
            for task in known {
                if case .ended = task.phase { arrears.insert(task.order.task.id) }
            }
            owesFarewell = !arrears.isEmpty || isAwaited
            mayBeAsked = isAwaited && arrears.isEmpty
            return []
        case .deliver: return deliver()
        case .submit(let order): return submit(order)
        case .command(let command, let task): return self.command(command, task)
        case .note(let notes, let task):
            guard entries[task] != nil else { return [] }
            entries[task]?.notes = notes
            return say(.note(notes, task))
        case .told(let task):
            guard let entry = entries.removeValue(forKey: task) else { return [] }
            waiting[entry.sequence] = nil
            // A task that the daemon never stored durably needs no acknowledgment.
            guard entry.order == nil else { return [] }
            told.insert(task)
            return say(.told(task))
        case .concluded(let task):
            arrears.remove(task)
            return farewell()
        case .answered(let answer, let task, let question, let asked):
            openQuestions -= 1
            // Another connection uses the same numbers for other questions, and the daemon asks again there.
            return (asked == generation ? say(.answer(answer, task, question: question)) : []) + farewell()
        case .notAsked:
            mayBeAsked = false
            return farewell()
        case .eventsHandled: return say(.eventsHandled)
        case .request(let number, let message):
            guard isAttached else { return [.reply(number, nil)] }
            requests.insert(number)
            return say(message)
        case .giveUp(let number): return requests.remove(number).map { [.reply($0, nil)] } ?? []
        case .forgetsLate:
            forgetsLate = true
            return []
        case .lose(let error): return lose(error)
        case .refuse(let error):
            standing = .lost(error)
            return [.close]
        case .leave(let isInvalidating):
            let word = isInvalidating ? say(.invalidate) : []
            // The session's tasks fail with the error of a lost session from then on.
            if loss == nil { standing = .left }
            waiting = [:]
            return word + [.close]
        }
    }

    func say(_ message: ClientMessage) -> [Action] { isAttached ? [.say(message)] : [] }

    mutating func farewell() -> [Action] {
        guard owesFarewell, arrears.isEmpty, held == nil, openQuestions == 0, !mayBeAsked else { return [] }
        owesFarewell = false
        return [.farewell]
    }

    // MARK: Tasks

    private mutating func submit(_ order: BackgroundOrder) -> [Action] {
        switch standing {
        case .lost(let error): return [.reject(order.task.id, error)]
        case .left, .apart: return [.reject(order.task.id, LoadError(.cancelled, "the session was invalidated"))]
        case .joining, .attached: break
        }
        sequence += 1
        entries[order.task.id] = Entry(order: order, sequence: sequence, created: order.created)
        waiting[sequence] = order.task.id
        return say(.submit(order))
    }

    private mutating func command(_ command: TaskCommand, _ task: TaskID) -> [Action] {
        guard var entry = entries[task], !entry.isEnded else { return [] }
        switch command {
        case .suspend: entry.isSuspended = true
        case .resume: entry.isSuspended = false
        case .cancel, .cancelProducingResumeData: entry.end = command
        case .setPriority(let priority): entry.priority = priority
        case .consumed, .reportCounts, .webSocket, .stream: return []
        }
        entries[task] = entry
        return say(.command(command, task))
    }

    /// The daemon has stored the task durably.
    mutating func settle(_ id: TaskID) {
        guard let entry = entries[id], entry.order != nil else { return }
        waiting[entry.sequence] = nil
        entries[id]?.order = nil
    }
}

extension SessionLink.Event {
    /// Whether a waiting thread may be able to continue; progress and orders, which are frequent, wake no thread.
    var mayEndWaiting: Bool {
        switch self {
        case .submit, .note: false
        case .heard(.event(let event, _)): if case .finished = event { true } else { false }
        default: true
        }
    }
}
