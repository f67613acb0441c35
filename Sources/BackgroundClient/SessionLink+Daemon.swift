// SPDX-License-Identifier: Apache-2.0

import BackgroundProtocol
import LoadingModel

/// The reactions to the daemon's messages.
extension SessionLink {
    // MARK: Joining

    mutating func opened() -> [Action] {
        guard isJoining else { return [.close] }
        isOpen = true
        known = []
        var attachment = attachment
        attachment.told = told.sorted()
        return [.send(.hello(version: MessageCoding.version, role: .session)), .send(.attach(attachment))]
    }

    private mutating func attached(_ last: TaskID) -> [Action] {
        guard isJoining, isOpen else { return [] }
        state = .attached
        generation += 1
        lastTask = max(lastTask, last)
        var actions: [Action] = [.removeTimeout] + dropLosses()
        let knownTasks = Dictionary(known.map { ($0.order.task.id, $0) }) { first, _ in first }
        // All ends that the program was told of are acknowledged again: some may have been reported after the attach message.
        actions += told.sorted().map { .send(.told($0)) }
        for (id, entry) in entries.sorted(by: { $0.key < $1.key }) where !entry.isEnded {
            if let task = knownTasks[id] {
                settle(id)
                actions += unconfirmedMessages(entry, of: id, task.phase)
            } else if let order = entry.order {
                actions += [.send(.submit(order))] + unconfirmedMessages(entry, of: id, .running)
            } else {
                entries[id] = nil
                actions.append(
                    .fail(id, LoadError(.backgroundSessionDisconnected, "urlsessiond no longer has the task")))
            }
        }
        return actions
    }

    /// Returns the messages that may have been lost with the previous connection.
    private func unconfirmedMessages(_ entry: Entry, of id: TaskID, _ phase: KnownTask.Phase) -> [Action] {
        let isSuspended: Bool
        switch phase {
        case .running: isSuspended = false
        case .suspended: isSuspended = true
        case .ended: return []
        }
        var messages: [ClientMessage] = []
        if entry.isSuspended != isSuspended { messages.append(.command(entry.isSuspended ? .suspend : .resume, id)) }
        if let priority = entry.priority { messages.append(.command(.setPriority(priority), id)) }
        if let notes = entry.notes { messages.append(.note(notes, id)) }
        if let end = entry.end { messages.append(.command(end, id)) }
        return messages.map { .send($0) }
    }

    /// Cancels the lost tasks that the daemon still has, and forgets the other lost tasks.
    private mutating func dropLosses() -> [Action] {
        guard !losses.isEmpty else { return [] }
        let knownTasks = known.filter { losses[$0.order.task.id] == $0.order.created }
        let tasks = Set(knownTasks.map(\.order.task.id))
        losses = losses.filter { tasks.contains($0.key) }
        known.removeAll { tasks.contains($0.order.task.id) }
        var actions: [Action] = losses.isEmpty ? [.writeLosses([:])] : []
        for task in knownTasks {
            if case .ended = task.phase { continue }
            actions.append(.send(.command(.cancel, task.order.task.id)))
        }
        return actions
    }

    mutating func lose(_ error: LoadError) -> [Action] {
        switch state {
        case .lost, .left: return []
        case .unjoined, .joining, .attached: break
        }
        state = .lost(error)
        waiting = [:]
        let failed = entries.filter { !$0.value.isEnded }
        for id in failed.keys { entries[id]?.isEnded = true }
        pendingEnds += failed.count
        // If another process has joined the session, that process also has the session's tasks.
        let kept: [Action] =
            error.kind == .backgroundSessionDisconnected ? [.addLosses(failed.mapValues(\.created))] : []
        return [.close] + kept + failed.keys.sorted().map { .fail($0, error) } + [.report(error)]
    }

    // MARK: Messages of the daemon

    mutating func received(_ message: DaemonMessage) -> [Action] {
        switch message {
        case .welcome, .refused: return []
        case .known(let task):
            known.append(task)
            return []
        case .attached(let last): return attached(last)
        case .accepted(let tasks):
            for id in tasks { settle(id) }
            return []
        case .rejected(let task, let error):
            settle(task)
            return tell(
                [.finished(TaskOutcome(result: .failure(error), response: nil, timelines: [], redirectCount: 0))], of: task)
        case .forgotten(let task):
            told.remove(task)
            toldResults.remove(task)
            forgettingTimedOut = false
            return losses.removeValue(forKey: task) == nil ? [] : [.writeLosses(losses)]
        case .event, .question:
            guard held == nil else {
                held?.append((message, generation))
                return []
            }
            return handOver(message, generation)
        case .renewed(let request), .proxies(_, let request), .failed(_, let request), .done(let request),
            .status(_, let request), .log(_, let request), .transfers(_, let request, _):
            return requests.remove(request).map { [.reply($0, message)] } ?? []
        }
    }

    /// Delivers the messages that arrived before the program took over the known tasks.
    mutating func deliver() -> [Action] {
        guard let messages = held, !messages.isEmpty else {
            held = nil
            return farewell()
        }
        held = []
        return messages.flatMap { handOver($0.message, $0.generation) }
    }

    private mutating func handOver(_ message: DaemonMessage, _ generation: Int) -> [Action] {
        switch message {
        case .event(.finished(let outcome), let task):
            guard losses[task] == nil else {
                // For the program, this task failed when the session was lost.
                told.insert(task)
                return send(.told(task))
            }
            return tell(Self.end(outcome), of: task)
        case .event(let event, let task): return tell([event], of: task)
        case .question(let question, let task, let number):
            awaitsQuestion = false
            guard let entry = entries[task], !entry.isEnded else { return [] }
            openQuestions += 1
            return [.ask(task, question, number: number, generation: generation)]
        default: return []
        }
    }

    private mutating func tell(_ events: [TaskEvent], of task: TaskID) -> [Action] {
        guard let entry = entries[task], !entry.isEnded else { return [] }
        if case .finished(let outcome)? = events.last {
            entries[task]?.isEnded = true
            if case .failure(let error) = outcome.result, error.kind == .cancelled {
                entries[task]?.isCancellation = error.resumeData == nil && error.uploadResumeData == nil
            }
            pendingEnds += 1
        }
        return events.map { .tell(task, $0) }
    }

    /// Returns the events for a task's end; the body of an upload's response, which the daemon collected, becomes a data event.
    private static func end(_ outcome: TaskOutcome) -> [TaskEvent] {
        var outcome = outcome
        var events: [TaskEvent] = outcome.response.map { [.response($0)] } ?? []
        if case .success(.collected(let data)) = outcome.result {
            if !data.isEmpty { events.append(.data(data)) }
            outcome.result = .success(.none)
        }
        return events + [.finished(outcome)]
    }
}
