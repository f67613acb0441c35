// SPDX-License-Identifier: Apache-2.0

package import BackgroundProtocol
package import LoadingModel

/// The state machine of a session's link to the daemon and its tasks there, without locks, sockets or a clock.
///
/// The link keeps the program's orders and commands until the daemon has stored them durably, and sends them again to each daemon
/// that it joins. The link repeats the acknowledgment of a task's end until the daemon has forgotten the task.
package struct SessionLink {
    package enum State {
        case unjoined
        /// Searching for a daemon, or waiting for its response to hello.
        case joining
        case attached
        /// The daemon is lost for good.
        case lost(LoadError)
        /// The program has released the session.
        case left
    }

    package enum Event {
        /// Starts the search for a daemon. `losses` are the tasks of a lost session with their creation times: these tasks are over
        /// for the program, but perhaps not for the daemon.
        case join(losses: [TaskID: Double])
        /// The connection is open.
        case opened
        case received(DaemonMessage)
        /// The connection is closed.
        case closed
        /// The program has set the client of a task that the daemon has from an earlier run.
        case adopt(KnownTask)
        /// The program has clients for all known tasks; from now on, ``deliver`` passes on the held messages.
        case begin
        /// Passes on the held messages; if no messages are held, later messages are passed on immediately.
        case deliver
        case submit(BackgroundOrder)
        case command(TaskCommand, TaskID)
        case note(BackgroundOrder.Notes, TaskID)
        /// The program was told of the task's end and has taken its file.
        case told(TaskID)
        /// The thread that told the program of the task's end no longer waits for ``SessionLink/Waiter/forgotten``.
        case concluded(TaskID)
        /// The program's answer to a question; `generation` is the number of the connection on which the question arrived.
        case answered(TaskAnswer, TaskID, question: Int, generation: Int)
        /// The question that the program was started for did not arrive in time.
        case notAsked
        case eventsHandled
        /// A request with a single response, by its number.
        case request(Int, ClientMessage)
        case giveUp(request: Int)
        /// The daemon has not confirmed in time that it has forgotten a task.
        case forgettingTimedOut
        /// The daemon is lost for good, or refuses the session.
        case lose(LoadError)
        /// The session cannot be created as configured; the caller gets the error.
        case refuse(LoadError)
        case leave(invalidating: Bool)
    }

    package enum Action {
        case send(ClientMessage)
        /// Close the connection; sent messages still arrive.
        case close
        /// Remove the timeout: an idle daemon sends nothing.
        case removeTimeout
        case tell(TaskID, TaskEvent)
        case ask(TaskID, TaskQuestion, number: Int, generation: Int)
        /// Fail the task of a client with this error.
        case fail(TaskID, LoadError)
        /// Fail a task that was never ordered.
        case reject(TaskID, LoadError)
        /// Pass on the response to a request; nil if there is no response.
        case reply(Int, DaemonMessage?)
        /// Report that all waiting events were delivered.
        case farewell
        /// Replace the stored losses.
        case writeLosses([TaskID: Double])
        /// Add to the stored losses.
        case addLosses([TaskID: Double])
        case report(LoadError)
    }

    /// A condition that a thread of the program waits for.
    package enum Waiter {
        case attached
        /// Every order up to this number is durable or was refused.
        case accepted(Int)
        /// The daemon has forgotten all tasks whose ends the program was told of; or, if the program is about to be told of other
        /// ends, all but ``SessionLink/unconfirmedLimit`` that the program cancelled.
        case forgotten
        case question
    }

    struct Entry {
        /// The task's order; nil after the daemon has stored the order durably.
        var order: BackgroundOrder?
        var sequence = 0
        var isSuspended = false
        var end: TaskCommand?
        var priority: Float?
        var notes: BackgroundOrder.Notes?
        /// The creation time, which distinguishes the task from earlier tasks with the same number.
        var created = 0.0
        /// Whether the client was told of the end, but the program has not acknowledged the end yet.
        var isEnded = false
        /// Whether the task ended because the program cancelled it, without data to resume it.
        var isCancellation = false
    }

    let attachment: ClientMessage.Attachment
    /// Whether the program was started for this session.
    let isAwaited: Bool
    package internal(set) var state = State.unjoined
    /// The session's tasks that the daemon reported when the session was last joined.
    package internal(set) var known: [KnownTask] = []
    package internal(set) var lastTask = 0
    /// The number of the last submitted order.
    package private(set) var sequence = 0
    /// The number of connections that the session has had.
    var generation = 0
    var isOpen = false
    var entries: [TaskID: Entry] = [:]
    /// How many cancellations may be unconfirmed while the program is told of the next end: the daemon confirms many with one change.
    package static let unconfirmedLimit = 256

    /// Ended tasks that the program was told of; the daemon may not have forgotten these tasks yet.
    var told: Set<TaskID> = []
    /// Those of them that are no cancellations: if the program and the daemon died now, the program would be told of a result again.
    var toldResults: Set<TaskID> = []
    /// The number of ends that were passed on, but that the program has not acknowledged yet.
    var pendingEnds = 0
    /// Orders that are not durable yet, by their sequence number.
    var waiting: [Int: TaskID] = [:]
    /// Set when the daemon fails to confirm a task's end in time, cleared by the next confirmation; while it is set, no thread
    /// waits for a confirmation.
    var forgettingTimedOut = false
    /// Messages that arrived before the program took over the known tasks.
    var held: [(message: DaemonMessage, generation: Int)]? = []
    /// Ended tasks of an earlier run whose clients have not been told.
    var unreportedEnds: Set<TaskID> = []
    var mustSendFarewell = false
    /// The number of questions that the program has not answered.
    var openQuestions = 0
    /// Whether the program was started for a question that has not arrived.
    var awaitsQuestion = false
    var requests: Set<Int> = []
    var losses: [TaskID: Double] = [:]

    package init(_ attachment: ClientMessage.Attachment, isAwaited: Bool) {
        self.attachment = attachment
        self.isAwaited = isAwaited
    }

    // MARK: Queries

    package var isJoining: Bool { if case .joining = state { true } else { false } }
    package var isAttached: Bool { if case .attached = state { true } else { false } }
    /// Whether messages are being held, or later messages will be held.
    package var isHolding: Bool { held != nil }
    package var loss: LoadError? { if case .lost(let error) = state { error } else { nil } }

    /// Returns whether a thread still has to wait for the condition.
    package func waits(for waiter: Waiter) -> Bool {
        switch (waiter, state) {
        case (.question, _): awaitsQuestion
        case (.attached, .joining): true
        case (.accepted(let mark), .joining), (.accepted(let mark), .attached): waiting.keys.contains { $0 <= mark }
        case (.forgotten, .joining), (.forgotten, .attached):
            !forgettingTimedOut
                && (!toldResults.isEmpty || told.count > (pendingEnds > 0 ? Self.unconfirmedLimit : 0))
        default: false
        }
    }

    /// Whether a waiting thread may be able to continue after an event that was handled; events that are frequent, such as progress,
    /// wake no thread.
    func mayEndWaiting(_ event: Event) -> Bool {
        switch event {
        case .submit, .note: false
        case .received(.event(let event, _)): if case .finished = event { true } else { false }
        case .received(.forgotten): !waits(for: .forgotten)
        default: true
        }
    }

    // MARK: Events

    package mutating func handle(_ event: Event) -> [Action] {
        switch event {
        case .join(let losses):
            guard case .unjoined = state else { return [] }
            state = .joining
            self.losses = losses
            return []
        case .opened: return opened()
        case .received(let message): return received(message)
        case .closed:
            isOpen = false
            if isAttached { state = .joining }
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
                if case .ended = task.phase { unreportedEnds.insert(task.order.task.id) }
            }
            mustSendFarewell = !unreportedEnds.isEmpty || isAwaited
            awaitsQuestion = isAwaited && unreportedEnds.isEmpty
            return []
        case .deliver: return deliver()
        case .submit(let order): return submit(order)
        case .command(let command, let task): return self.command(command, task)
        case .note(let notes, let task):
            guard entries[task] != nil else { return [] }
            entries[task]?.notes = notes
            return send(.note(notes, task))
        case .told(let task):
            guard let entry = entries.removeValue(forKey: task) else { return [] }
            if entry.isEnded { pendingEnds -= 1 }
            waiting[entry.sequence] = nil
            // A task that the daemon never stored durably needs no acknowledgment.
            guard entry.order == nil else { return [] }
            told.insert(task)
            if !entry.isCancellation { toldResults.insert(task) }
            return send(.told(task))
        case .concluded(let task):
            unreportedEnds.remove(task)
            return farewell()
        case .answered(let answer, let task, let question, let asked):
            openQuestions -= 1
            // On another connection, the same number belongs to another question, and the daemon asks the unanswered questions
            // again.
            return (asked == generation ? send(.answer(answer, task, question: question)) : []) + farewell()
        case .notAsked:
            awaitsQuestion = false
            return farewell()
        case .eventsHandled: return send(.eventsHandled)
        case .request(let number, let message):
            guard isAttached else { return [.reply(number, nil)] }
            requests.insert(number)
            return send(message)
        case .giveUp(let number): return requests.remove(number).map { [.reply($0, nil)] } ?? []
        case .forgettingTimedOut:
            forgettingTimedOut = true
            return []
        case .lose(let error): return lose(error)
        case .refuse(let error):
            state = .lost(error)
            return [.close]
        case .leave(let isInvalidating):
            let word = isInvalidating ? send(.invalidate) : []
            // A lost session stays lost, so that later tasks fail with the error of the loss.
            if loss == nil { state = .left }
            waiting = [:]
            return word + [.close]
        }
    }

    func send(_ message: ClientMessage) -> [Action] { isAttached ? [.send(message)] : [] }

    mutating func farewell() -> [Action] {
        guard mustSendFarewell, unreportedEnds.isEmpty, held == nil, openQuestions == 0, !awaitsQuestion else { return [] }
        mustSendFarewell = false
        return [.farewell]
    }

    // MARK: Tasks

    private mutating func submit(_ order: BackgroundOrder) -> [Action] {
        switch state {
        case .lost(let error): return [.reject(order.task.id, error)]
        case .left, .unjoined: return [.reject(order.task.id, LoadError(.cancelled, "the session was invalidated"))]
        case .joining, .attached: break
        }
        sequence += 1
        entries[order.task.id] = Entry(order: order, sequence: sequence, created: order.created)
        waiting[sequence] = order.task.id
        return send(.submit(order))
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
        return send(.command(command, task))
    }

    /// Forgets a task's order, because the daemon has stored it durably.
    mutating func settle(_ id: TaskID) {
        guard let entry = entries[id], entry.order != nil else { return }
        waiting[entry.sequence] = nil
        entries[id]?.order = nil
    }
}
