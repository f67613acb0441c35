// SPDX-License-Identifier: Apache-2.0

import BackgroundProtocol
import FoundationEssentials
import LoadingModel
import SystemThreads

/// The connected programs, and their sessions.
final class Clients {
    /// The maximum number of bytes of incomplete messages, for all connections.
    private static let pendingLimit = 64 << 20
    /// The maximum number of bytes that programs have not read, for all connections.
    private static let unreadLimit = 128 << 20
    /// How many tasks are read for a program at a time, and how many bytes are sent to the program at a time; a single task may
    /// take several megabytes.
    private static let pageSize = 256
    private static let pageBytes = 4 << 20

    private(set) var connections: [ObjectIdentifier: ClientConnection] = [:]
    private var pendingBytes = 0
    private var unreadBytes = 0
    /// For each session, the connection that waits until another process has left the session.
    private var waiting: [Int64: (connection: ClientConnection, attachment: ClientMessage.Attachment)] = [:]

    func add(_ connection: ClientConnection, _ desk: isolated TransferDesk) {
        connections[ObjectIdentifier(connection)] = connection
        desk.updateIdleTimer()
    }

    /// Limits the incomplete messages of all connections: if the limit is exceeded, the connection with the most bytes is refused.
    func notePending(_ change: Int) {
        pendingBytes += change
        guard change > 0, pendingBytes > Self.pendingLimit else { return }
        let largest = connections.values.max { $0.pendingBytes < $1.pendingBytes }
        largest?.refuse(.tooMany, "there are too many incomplete messages")
    }

    /// Limits the unread bytes of all connections: if the limit is exceeded, the connection with the most bytes is closed.
    func noteUnread(_ change: Int) {
        unreadBytes += change
        guard change > 0, unreadBytes > Self.unreadLimit else { return }
        connections.values.max { $0.unreadBytes < $1.unreadBytes }?.abandon()
    }

    // MARK: Arriving programs

    func attach(_ attachment: ClientMessage.Attachment, _ connection: ClientConnection, _ desk: isolated TransferDesk) {
        let isWaiting = waiting.values.contains { $0.connection === connection }
        guard connection.session == nil, connection.role == .session, !isWaiting else {
            return connection.refuse(.malformed, "a connection can have only one session")
        }
        guard let encoded = try? MessageCoding.encode(attachment.settings) else {
            return connection.refuse(.malformed, "the session's settings cannot be stored")
        }
        guard !desk.quits.endIfDoomed(connection, desk) else { return }
        let name = SessionName(program: connection.program, identifier: attachment.identifier)
        let session: Session
        if let known = desk.sessions[name] {
            session = known
            if session.client != nil { return wait(for: session, attachment, connection, desk) }
        } else {
            guard desk.sessions.count < 10_000 else {
                return connection.refuse(.tooMany, "there are too many background sessions")
            }
            let id = desk.nextSession
            let row = TransferStore.SessionRow(
                id: id, program: name.program, identifier: name.identifier, settings: encoded, state: [])
            session = Session(row, attachment.settings, folder: desk.spool.folder(of: id), isSaved: false)
            desk.register(session)
        }
        connection.session = session
        session.client = connection
        session.takesEvents = attachment.takesEvents
        session.isAttaching = true
        session.isUnreadable = false
        session.record.isInvalidated = false
        session.settings = attachment.settings
        let isOther = session.encodedSettings != encoded
        session.encodedSettings = encoded
        let isChanged = desk.launches.noteArrival(for: session, wasLaunched: attachment.wasLaunched, desk)
        if isOther || isChanged || !session.isSaved { desk.save(session) }
        for task in attachment.told { desk.removals.told(task, session, desk) }
        sendTasks(session, to: connection, desk)
    }

    /// Waits for a session that another process has joined: that process may have just ended, and the daemon will soon know.
    private func wait(
        for session: Session, _ attachment: ClientMessage.Attachment, _ connection: ClientConnection,
        _ desk: isolated TransferDesk
    ) {
        if let other = waiting[session.id]?.connection, other !== connection {
            return connection.refuse(.inUse, "another process is using the background session \(session.identifier)")
        }
        let id = session.id
        waiting[id] = (connection, attachment)
        desk.enter(after: session.client?.isPeerGone == true ? 5 : 1) { desk in
            guard desk.clients.waiting[id]?.connection === connection else { return }
            desk.clients.waiting[id] = nil
            connection.refuse(.inUse, "another process is using the background session \(attachment.identifier)")
        }
    }

    /// Sends a program the state of its session.
    private func sendTasks(
        _ session: Session, to connection: ClientConnection, patience: Double = 1, _ desk: isolated TransferDesk
    ) {
        let id = session.id
        // First accepts or rejects the last orders of the program's earlier process. This waits for a limited time, because an
        // order's file may be on a disk that does not respond.
        guard patience <= 0 || session.transfers.values.allSatisfy(\.machine.isAccepted) else {
            return desk.enter(after: 0.005) { desk in
                guard let session = desk.sessionsByID[id], session.client === connection else { return }
                desk.clients.sendTasks(session, to: connection, patience: patience - 0.005, desk)
            }
        }
        let tasks = session.transfers.values.filter(\.machine.isAccepted).sorted { $0.task < $1.task }.map(TaskPage.Task.init)
        sendTasks(tasks[...], id, connection, desk)
    }

    /// Sends the tasks in pages, each after the program has read the previous page: together the pages may exceed the limit on
    /// unread bytes.
    private func sendTasks(
        _ tasks: ArraySlice<TaskPage.Task>, _ id: Int64, _ connection: ClientConnection, _ desk: isolated TransferDesk
    ) {
        let page = Array(tasks.prefix(Self.pageSize))
        let rest = tasks.dropFirst(page.count)
        desk.ownFiles.run { [store = desk.store] in
            let read = TaskPage(page, from: store)
            desk.enter { desk in
                // Tasks that cannot be read now must not appear to be gone: the program has to reconnect.
                guard let read else { return connection.close() }
                desk.clients.sendTasks(read.parts[...], rest, id, connection, desk)
            }
        }
    }

    private func sendTasks(
        _ parts: ArraySlice<TaskPage.Part>, _ rest: ArraySlice<TaskPage.Task>, _ id: Int64,
        _ connection: ClientConnection, _ desk: isolated TransferDesk
    ) {
        guard let session = desk.sessionsByID[id], session.client === connection else { return }
        for (index, part) in zip(parts.indices, parts) {
            guard connection.unreadBytes < Self.pageBytes else {
                let others = parts[index...]
                return connection.whenWritten { desk.enter { $0.clients.sendTasks(others, rest, id, connection, $0) } }
            }
            guard let transfer = session.transfers[part.task], transfer.number == part.number else { continue }
            var phase = KnownTask.Phase.running
            if transfer.record.isSuspended { phase = .suspended }
            if transfer.isOver { phase = .ended }
            var known = KnownTask(order: part.order, phase: phase)
            known.order.notes = transfer.record.notes
            known.order.task.priority = transfer.record.priority
            known.counts = transfer.counts
            known.response = part.response
            // The resume data are no longer needed, and may be large.
            if case .download = known.order.task.delivery { known.order.task.delivery = .download(resuming: nil) }
            known.order.task.upload = nil
            connection.send(.known(known))
        }
        if rest.isEmpty { return finishAttaching(session, connection, desk) }
        connection.whenWritten { desk.enter { $0.clients.sendTasks(rest, id, connection, $0) } }
    }

    private func finishAttaching(_ session: Session, _ connection: ClientConnection, _ desk: isolated TransferDesk) {
        connection.send(.attached(lastTask: session.record.lastTask))
        session.isAttaching = false
        guard session.takesEvents else { return }
        for transfer in session.transfers.values.sorted(by: { $0.task < $1.task }) {
            desk.handle(.awaited, transfer)
            if let question = transfer.question { desk.questions.put(question, of: transfer, desk) }
        }
    }

    // MARK: Leaving programs

    /// Removes a connection that was closed.
    func remove(_ connection: ClientConnection, _ desk: isolated TransferDesk) {
        connections[ObjectIdentifier(connection)] = nil
        desk.reports.remove(connection)
        defer { desk.updateIdleTimer() }
        if let session = connection.session, session.client === connection {
            session.client = nil
            session.hasProgramEnded = connection.isPeerGone
            let wasAttaching = session.isAttaching
            session.isAttaching = false
            for transfer in session.transfers.values where transfer.question != nil { desk.questions.limit(of: transfer, desk) }
            if let (next, attachment) = waiting.removeValue(forKey: session.id) { return attach(attachment, next, desk) }
            desk.launches.noteLeaving(of: session, wasAttaching: wasAttaching, desk)
            forget(session, ifUnused: false, desk)
        } else {
            waiting = waiting.filter { $0.value.connection !== connection }
        }
    }

    func invalidate(_ session: Session, _ desk: isolated TransferDesk) {
        session.record.isInvalidated = true
        desk.save(session)
        forget(session, ifUnused: true, desk)
    }

    /// Removes a session that has no transfers left.
    func forget(_ session: Session, ifUnused isGivenUp: Bool, _ desk: isolated TransferDesk) {
        guard session.transfers.isEmpty else { return }
        // The session is checked again after its pending removals are processed.
        guard session.pendingRemovals.isEmpty else { return }
        session.release()
        guard session.record.isInvalidated || isGivenUp || session.client == nil else { return }
        guard session.client == nil || session.record.isInvalidated else { return }
        session.client?.session = nil
        let waiter = waiting.removeValue(forKey: session.id)
        desk.unregister(session)
        desk.keep([.removeSession(session.id)])
        let folder = session.folder
        desk.ownFiles.run { [spool = desk.spool] in spool.remove(folder: folder) }
        // A waiting connection gets a new session with the same name.
        if let waiter { attach(waiter.attachment, waiter.connection, desk) }
    }
}

/// The stored state of a session's tasks, decoded off the loop.
private struct TaskPage: Sendable {
    struct Task: Sendable {
        var number: Int64
        var task: TaskID
        private var url: String
        private var isUpload: Bool
        private var created: Double

        init(_ transfer: Transfer) {
            (number, task) = (transfer.number, transfer.task)
            (url, isUpload, created) = (transfer.record.url, transfer.record.isUpload, transfer.record.created)
        }

        /// The known parts of an order that cannot be read; used to tell the program of the failure.
        var placeholder: BackgroundOrder {
            let request = LoadRequest(url: URL(string: url))
            return BackgroundOrder(
                TaskOrder(id: task, request: request, delivery: isUpload ? .collect : .download(resuming: nil)), created: created)
        }
    }

    struct Part: Sendable {
        var number: Int64
        var task: TaskID
        var order: BackgroundOrder
        var response: LoadResponse?
    }

    var parts: [Part] = []

    /// Nil if the store cannot be read.
    init?(_ tasks: [Task], from store: TransferStore) {
        guard let orders = (try? store.orders(of: tasks.map(\.number)))?.orders else { return nil }
        for task in tasks {
            let order = orders[task.number].flatMap { try? MessageCoding.decodeOrder($0) } ?? task.placeholder
            let response = (try? store.part(.response, of: task.number)).flatMap { $0 }.flatMap {
                try? MessageCoding.decodeResponse($0)
            }
            parts.append(Part(number: task.number, task: task.task, order: order, response: response))
        }
    }
}
