//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import BackgroundProtocol
import LoadingModel
import SystemThreads

/// The daemon's side: how it is joined, again where it went away, and what it says.
extension RemoteSession {
    /// Seconds between attempts to reach a daemon that does not listen.
    private static let pauses = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5]

    /// What the session's thread does: is connected, hears what the daemon says, and connects again when that ends.
    func live() {
        var attempt = 0
        while true {
            let end: Double? = monitor.locked { if case .joining = standing { attemptsEnd } else { nil } }
            guard let end else { return }
            if let reason = place.prepare() { return lose(LoadError(.backgroundSessionDisconnected, reason)) }
            if let connection = DaemonConnection.open(place, patience: Int(patience)) {
                attempt = 0
                if opened(connection) { connection.receive { self.receive($0) } } else { connection.close() }
                closed()
                // One that ends while it is joined may do so at every attempt.
                pause(0.02)
                continue
            }
            guard Monitor.clock < end else {
                return lose(
                    LoadError(
                        .backgroundSessionDisconnected, "urlsessiond cannot be reached at \(place.socket); see \(place.log)"))
            }
            // Nobody listens. One that was just started may still be at its database, or have found that another one has not ended yet:
            // another one is tried every second.
            if Self.pauses.count > attempt ? attempt == 0 : attempt % 2 == 0 {
                do throws(LoadError) {
                    try DaemonStarter.start(place)
                } catch {
                    return lose(error)
                }
            }
            pause(Self.pauses[min(attempt, Self.pauses.count - 1)])
            attempt += 1
        }
    }

    private func pause(_ seconds: Double) {
        let end = Monitor.clock + seconds
        monitor.locked {
            while case .joining = standing, monitor.wait(until: end) {}
        }
    }

    private func opened(_ connection: DaemonConnection) -> Bool {
        monitor.locked {
            guard case .joining = standing else { return false }
            var attachment = attachment
            attachment.told = told.sorted()
            joining = connection
            guard let hello = try? MessageCoding.encode(.hello(version: MessageCoding.version, role: .session)),
                let attach = try? MessageCoding.encode(.attach(attachment))
            else { return false }
            known = []
            connection.send(hello)
            connection.send(attach)
            return true
        }
    }

    private func closed() {
        let (answers, isHopeless) = monitor.locked { () -> ([@Sendable (DaemonMessage?) -> Void], Bool) in
            joining = nil
            let answers = Array(requests.values)
            requests = [:]
            if case .attached = standing {
                attemptsEnd = Monitor.clock + patience
                standing = .joining
            }
            guard case .joining = standing else { return (answers, false) }
            return (answers, (attemptsEnd ?? 0) < Monitor.clock)
        }
        for answer in answers { answer(nil) }
        if isHopeless { lose(LoadError(.backgroundSessionDisconnected, "urlsessiond ends again and again; see \(place.log)")) }
    }

    /// The daemon is gone for good, or will not have the session.
    func lose(_ error: LoadError) {
        var failed: [TaskID: Double] = [:]
        let (clients, report): ([any LoadClient], (@Sendable (LoadError) -> Void)?) = monitor.locked {
            switch standing {
            case .lost, .left: return ([], nil)
            case .apart, .joining, .attached: break
            }
            standing = .lost(error)
            joining?.close()
            waiting = [:]
            monitor.wakeAll()
            let clients = entries.sorted { $0.key < $1.key }.compactMap { $0.value.isEnded ? nil : $0.value.client }
            failed = entries.filter { !$0.value.isEnded }.mapValues(\.created)
            for id in entries.keys { entries[id]?.isEnded = true }
            return (clients, onLoss)
        }
        // Another process that has the session has its tasks as well.
        if error.kind == .backgroundSessionDisconnected { keepLosses(failed) }
        for client in clients { client.fail(with: error) }
        report?(error)
    }

    // MARK: What it says

    private func receive(_ message: DaemonMessage) {
        switch message {
        case .welcome: break
        case .refused(let refusal, let reason): refused(refusal, reason)
        case .known(let task): monitor.locked { known.append(task) }
        case .attached(let last): attached(last)
        case .accepted(let tasks): accepted(tasks)
        case .rejected(let task, let error):
            accepted([task])
            deliver(.finished(TaskOutcome(result: .failure(error), response: nil, timelines: [], redirectCount: 0)), to: task)
        case .forgotten(let task):
            monitor.locked {
                told.remove(task)
                forgetsLate = false
                if losses.removeValue(forKey: task) != nil { writeLosses(losses) }
                monitor.wakeAll()
            }
        case .event, .question:
            let current: Int? = monitor.locked {
                held?.append((message, generation))
                return held == nil ? generation : nil
            }
            if let current { tell(message, current) }
        case .renewed(let request), .proxies(_, let request), .failed(_, let request), .done(let request),
            .status(_, let request), .log(_, let request), .transfers(_, let request, _):
            monitor.locked { requests.removeValue(forKey: request) }?(message)
        }
    }

    private func refused(_ refusal: DaemonMessage.Refusal, _ reason: String) {
        switch refusal {
        case .inUse: lose(LoadError(.backgroundSessionInUse, reason))
        case .version:
            // The daemon is of another version: one of this version takes its place, unless it is the newer one.
            guard !monitor.locked({ hasReplaced }) else { return }
            monitor.locked { hasReplaced = true }
            do throws(LoadError) {
                try DaemonStarter.start(place, replacing: true)
            } catch {
                lose(error)
            }
        case .malformed, .tooMany, .storage: lose(LoadError(.backgroundSessionDisconnected, reason))
        }
    }

    private func attached(_ last: TaskID) {
        var lost: [any LoadClient] = []
        monitor.locked {
            guard case .joining = standing, let connection = joining else { return }
            standing = .attached(connection)
            connection.limitSilence(nil)
            joining = nil
            generation += 1
            lastTask = max(lastTask, last)
            dropLosses()
            let there = Dictionary(known.map { ($0.order.task.id, $0) }) { first, _ in first }
            // Some may have been told of since the daemon was joined.
            for id in told { say(.told(id)) }
            for (id, entry) in entries.sorted(by: { $0.key < $1.key }) where !entry.isEnded {
                if let task = there[id] {
                    if entry.order != nil { settle(id) }
                    repeatWishes(entry, of: id, task)
                } else if let order = entry.order {
                    if let payload = try? MessageCoding.encode(.submit(order)) { connection.send(payload) }
                    repeatWishes(entry, of: id, nil)
                } else {
                    if let client = entry.client { lost.append(client) }
                    entries[id] = nil
                }
            }
            monitor.wakeAll()
        }
        let error = LoadError(.backgroundSessionDisconnected, "urlsessiond does not have the task any more")
        for client in lost { client.fail(with: error) }
    }

    /// Says again what may have been lost with the connection.
    private func repeatWishes(_ entry: Entry, of id: TaskID, _ task: KnownTask?) {
        var isSuspended = false
        if case .suspended = task?.phase { isSuspended = true }
        if case .ended = task?.phase { return }
        if entry.isSuspended != isSuspended { say(.command(entry.isSuspended ? .suspend : .resume, id)) }
        if let priority = entry.priority { say(.command(.setPriority(priority), id)) }
        if let notes = entry.notes { say(.note(notes, id)) }
        if let end = entry.end { say(.command(end, id)) }
    }

    /// The daemon has the task for certain.
    private func settle(_ id: TaskID) {
        guard let entry = entries[id] else { return }
        waiting[entry.sequence] = nil
        entries[id]?.order = nil
    }

    private func accepted(_ tasks: [TaskID]) {
        monitor.locked {
            for id in tasks { settle(id) }
            monitor.wakeAll()
        }
    }

    /// The program has taken over what is known: it is told of what came meanwhile, and from then on by the session's thread.
    func deliverHeld() {
        while true {
            let messages: [(message: DaemonMessage, generation: Int)]? = monitor.locked {
                guard let messages = held, !messages.isEmpty else {
                    held = nil
                    return nil
                }
                held = []
                return messages
            }
            guard let messages else { break }
            for (message, generation) in messages { tell(message, generation) }
        }
        monitor.locked { takeFarewell() }?()
    }

    private func tell(_ message: DaemonMessage, _ generation: Int) {
        switch message {
        case .event(.finished(let outcome), let task):
            if !monitor.locked({ concludeLoss(task) }) { deliverEnd(outcome, to: task) }
        case .event(let event, let task): deliver(event, to: task)
        case .question(let question, let task, let number): ask(question, of: task, number, generation)
        default: break
        }
    }

    private func deliver(_ event: TaskEvent, to task: TaskID) {
        let client: (any LoadClient)? = monitor.locked {
            guard let entry = entries[task], !entry.isEnded else { return nil }
            if case .finished = event { entries[task]?.isEnded = true }
            return entry.client
        }
        client?.tell(event)
    }

    /// An upload's answer was collected by the daemon; the delegate hears of it as data.
    private func deliverEnd(_ outcome: TaskOutcome, to task: TaskID) {
        var outcome = outcome
        if let response = outcome.response { deliver(.response(response), to: task) }
        if case .success(.collected(let data)) = outcome.result {
            if !data.isEmpty { deliver(.data(data), to: task) }
            outcome.result = .success(.none)
        }
        deliver(.finished(outcome), to: task)
    }

    private func ask(_ question: TaskQuestion, of task: TaskID, _ number: Int, _ asked: Int) {
        let client: (any LoadClient)? = monitor.locked {
            mayBeAsked = false
            guard let entry = entries[task], !entry.isEnded else { return nil }
            openQuestions += 1
            return entry.client
        }
        client?.ask(question) { answer in
            let farewell: (@Sendable () -> Void)? = self.monitor.locked {
                self.openQuestions -= 1
                // Another connection has questions of its own by the same numbers; there it is asked again.
                if asked == self.generation { self.say(.answer(answer, task, question: number)) }
                return self.takeFarewell()
            }
            farewell?()
        }
    }
}
