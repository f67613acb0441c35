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

/// What a program's session knows of its daemon and of its tasks there, and what follows from what happens: no locks, no sockets, no clock.
///
/// What the program ordered, and what it wants of it, is kept until the daemon has it for certain, and said again to each daemon that is
/// joined; what the program was told of is said until the daemon has forgotten it.
package struct SessionLink {
    package enum Standing {
        case apart
        /// A daemon is looked for, or hello was said to it.
        case joining
        case attached
        /// For good.
        case lost(LoadError)
        /// The program has no use for it any more.
        case left
    }

    package enum Event {
        /// A daemon is to be looked for. The tasks of a session that was lost, by when they were ordered: over for the program, and maybe
        /// not for the daemon.
        case join(losses: [TaskID: Double])
        /// There is a connection.
        case opened
        case heard(DaemonMessage)
        /// The connection is over.
        case closed
        /// The program has a client for a task that the daemon had before.
        case adopt(KnownTask)
        /// It has one for all of them: messages that were held are handed over from now on, by ``deliver``.
        case begin
        /// Hands over what was held; from when there is nothing, all is handed over as it comes.
        case deliver
        case submit(BackgroundOrder)
        case command(TaskCommand, TaskID)
        case note(BackgroundOrder.Notes, TaskID)
        /// The program was told of the task's end, and has taken its file.
        case told(TaskID)
        /// No thread waits for its ``SessionLink/Waiter/forgotten(_:)`` any more.
        case concluded(TaskID)
        /// The program answers a question that was asked of it by the connection of that number.
        case answered(TaskAnswer, TaskID, question: Int, generation: Int)
        /// The program was started for a question that did not come in time.
        case notAsked
        case eventsHandled
        /// Something that is answered once, by its number.
        case request(Int, ClientMessage)
        case giveUp(request: Int)
        /// A daemon did not say in time what was waited for.
        case forgetsLate
        /// The daemon is gone for good, or will not have the session.
        case lose(LoadError)
        /// The session cannot be what it was to be: who asks for it is told why.
        case refuse(LoadError)
        case leave(invalidating: Bool)
    }

    package enum Action {
        case say(ClientMessage)
        /// The connection is to end; what was said arrives.
        case close
        /// From now on the daemon speaks when it has something to say.
        case endureSilence
        case tell(TaskID, TaskEvent)
        case ask(TaskID, TaskQuestion, number: Int, generation: Int)
        /// The task is over for its client, with this error.
        case fail(TaskID, LoadError)
        /// So is one that never began.
        case reject(TaskID, LoadError)
        /// Nil where there is no answer.
        case reply(Int, DaemonMessage?)
        /// All that waited for the program was told.
        case farewell
        /// These are to be remembered in place of others.
        case writeLosses([TaskID: Double])
        /// These are to be remembered besides others.
        case keepLosses([TaskID: Double])
        case report(LoadError)
    }

    /// What a thread of the program waits for.
    package enum Waiter {
        case attached
        /// Every order up to that one is durable, or was refused.
        case accepted(Int)
        case forgotten(TaskID)
        case question
    }

    struct Entry {
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

    let attachment: ClientMessage.Attachment
    /// The program was started for this session.
    let isAwaited: Bool
    package internal(set) var standing = Standing.apart
    /// What the daemon has of the session, as it said when it was last joined.
    package internal(set) var known: [KnownTask] = []
    package internal(set) var lastTask = 0
    /// The order that was submitted last.
    package private(set) var sequence = 0
    /// How many connections had the session.
    var generation = 0
    var isOpen = false
    var entries: [TaskID: Entry] = [:]
    /// Ended, and the program was told; the daemon may not know yet for certain.
    var told: Set<TaskID> = []
    /// Orders that are not durable, by their place.
    var waiting: [Int: TaskID] = [:]
    /// The daemon was late to say that it knows of an end: until it says so, no thread waits for that.
    var forgetsLate = false
    /// Messages that came before the program took over what is known.
    var held: [(message: DaemonMessage, generation: Int)]? = []
    /// Ended tasks of an earlier life whose clients have not been told.
    var arrears: Set<TaskID> = []
    var owesFarewell = false
    /// Questions that the program has not answered.
    var openQuestions = 0
    /// The program was started for a question that has not come.
    var mayBeAsked = false
    var requests: Set<Int> = []
    var losses: [TaskID: Double] = [:]

    package init(_ attachment: ClientMessage.Attachment, isAwaited: Bool) {
        self.attachment = attachment
        self.isAwaited = isAwaited
    }

    // MARK: What is asked of it

    package var isJoining: Bool { if case .joining = standing { true } else { false } }
    package var isAttached: Bool { if case .attached = standing { true } else { false } }
    /// Whether a message is held, or one may be.
    package var isHolding: Bool { held != nil }
    package var loss: LoadError? { if case .lost(let error) = standing { error } else { nil } }

    /// Whether it may still come.
    package func waits(for waiter: Waiter) -> Bool {
        switch (waiter, standing) {
        case (.question, _): mayBeAsked
        case (.attached, .joining): true
        case (.accepted(let mark), .joining), (.accepted(let mark), .attached): waiting.keys.contains { $0 <= mark }
        case (.forgotten(let task), .joining), (.forgotten(let task), .attached): told.contains(task) && !forgetsLate
        default: false
        }
    }

    // MARK: What happens

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
            // One that the daemon never had for certain needs no end there.
            guard entry.order == nil else { return [] }
            told.insert(task)
            return say(.told(task))
        case .concluded(let task):
            arrears.remove(task)
            return farewell()
        case .answered(let answer, let task, let question, let asked):
            openQuestions -= 1
            // Another connection has questions of its own by the same numbers; there it is asked again.
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
            // Why it was lost is what its tasks fail with from then on.
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
        case .consumed, .tellCounts, .webSocket, .stream: return []
        }
        entries[task] = entry
        return say(.command(command, task))
    }

    /// The daemon has the task for certain.
    mutating func settle(_ id: TaskID) {
        guard let entry = entries[id], entry.order != nil else { return }
        waiting[entry.sequence] = nil
        entries[id]?.order = nil
    }
}

extension SessionLink.Event {
    /// Whether a thread may have got what it waits for: progress and orders, of which there are many, end no wait.
    var mayEndWaiting: Bool {
        switch self {
        case .submit, .note: false
        case .heard(.event(let event, _)): if case .finished = event { true } else { false }
        default: true
        }
    }
}
