//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import BackgroundProtocol
import FoundationEssentials
import LoadingModel
import SystemThreads

/// Programs come and go.
extension TransferDesk {
    /// Tasks that are read at a time for a program, and bytes that it is told at a time; one task may have some megabytes.
    private static let introductionPage = 256
    private static let introductionBytes = 4 << 20
    /// Seconds in which a program whose connection ended, and which runs, may be back before it is started again.
    private static let leavePatience = 1.0

    func attach(_ attachment: ClientMessage.Attachment, _ connection: ClientConnection) {
        guard let encoded = try? MessageCoding.encode(attachment.settings) else {
            return connection.refuse(.malformed, "the session's settings cannot be kept")
        }
        guard !quits.endIfDoomed(connection, self) else { return }
        let name = SessionName(program: connection.program, identifier: attachment.identifier)
        let session: Session
        if let known = sessions[name] {
            session = known
            if session.client != nil { return wait(for: session, attachment, connection) }
        } else {
            guard sessions.count < 10_000 else { return connection.refuse(.tooMany, "there are too many background sessions") }
            let id = nextSession
            let row = TransferStore.SessionRow(
                id: id, program: name.program, identifier: name.identifier, settings: encoded, state: [])
            session = Session(row, attachment.settings, folder: spool.folder(of: id), isSaved: false)
            register(session)
        }
        connection.session = session
        session.client = connection
        session.takesEvents = attachment.takesEvents
        session.isIntroducing = true
        session.isUnreadable = false
        session.launchTrouble = nil
        session.record.isInvalidated = false
        session.settings = attachment.settings
        var isOther = session.encodedSettings != encoded
        session.encodedSettings = encoded
        if !attachment.wasLaunched {
            session.isLaunched = false
            // The user started the program: it may be started from here as if it never was.
            for other in sessions.values where other.program == session.program {
                let isChanged = other.record.wasQuit || other.hasKeptLaunches
                let mustSave = other !== session && isChanged
                isOther = isOther || other === session && isChanged
                other.hasKeptLaunches = false
                other.record.launches = LaunchLimit()
                other.record.wasQuit = false
                other.record.doomed = nil
                if mustSave { save(other) }
            }
        }
        if isOther || !session.isSaved { save(session) }
        for task in attachment.told { told(task, session) }
        introduce(session, to: connection)
    }

    /// Another process, or one that has just ended, has the session: soon it is known which.
    private func wait(for session: Session, _ attachment: ClientMessage.Attachment, _ connection: ClientConnection) {
        if let (other, _) = session.waiting, other !== connection {
            return connection.refuse(.inUse, "another process has the background session \(session.identifier)")
        }
        session.waiting = (connection, attachment)
        let id = session.id
        enter(after: session.client?.isPeerGone == true ? 5 : 1) { desk in
            guard let (waiting, _) = desk.sessionsByID[id]?.waiting, waiting === connection else { return }
            desk.sessionsByID[id]?.waiting = nil
            waiting.refuse(.inUse, "another process has the background session \(attachment.identifier)")
        }
    }

    /// Tells a program what there is of its session.
    private func introduce(_ session: Session, to connection: ClientConnection, patience: Double = 1) {
        let id = session.id
        // What an earlier life of the program ordered at its last moment is either taken or not before anything is said.
        // One whose file is on a disk that does not answer is not waited for.
        guard patience <= 0 || session.transfers.values.allSatisfy(\.life.isAccepted) else {
            return enter(after: 0.005) { desk in
                guard let session = desk.sessionsByID[id], session.client === connection else { return }
                desk.introduce(session, to: connection, patience: patience - 0.005)
            }
        }
        let tasks = session.transfers.values.filter(\.life.isAccepted).sorted { $0.task < $1.task }.map(Introduction.Task.init)
        introduce(tasks[...], id, connection)
    }

    /// In pages, each when the program has read the one before: all together may be more than may wait to be read.
    private func introduce(_ tasks: ArraySlice<Introduction.Task>, _ id: Int64, _ connection: ClientConnection) {
        let page = Array(tasks.prefix(Self.introductionPage))
        let rest = tasks.dropFirst(page.count)
        ownFiles.run { [store] in
            let read = Introduction(page, from: store)
            self.enter { desk in
                // What cannot be read now must not look as if it were gone: the program comes again.
                guard let read else { return connection.close() }
                desk.introduce(read.parts[...], rest, id, connection)
            }
        }
    }

    private func introduce(
        _ parts: ArraySlice<Introduction.Part>, _ rest: ArraySlice<Introduction.Task>, _ id: Int64,
        _ connection: ClientConnection
    ) {
        guard let session = sessionsByID[id], session.client === connection else { return }
        for (index, part) in zip(parts.indices, parts) {
            guard connection.unreadBytes < Self.introductionBytes else {
                let others = parts[index...]
                return connection.whenWritten { self.enter { $0.introduce(others, rest, id, connection) } }
            }
            guard let transfer = session.transfers[part.task], transfer.number == part.number else { continue }
            var phase = KnownTask.Phase.running
            if transfer.record.isSuspended { phase = .suspended }
            if transfer.isOver { phase = .ended }
            var known = KnownTask(order: part.order, phase: phase)
            known.order.notes = transfer.record.notes.notes
            known.order.task.priority = transfer.record.priority
            known.counts = transfer.counts
            known.response = part.response
            // What it was to go on from is nobody's concern any more, and may be large.
            if case .download = known.order.task.delivery { known.order.task.delivery = .download(resuming: nil) }
            connection.send(.known(known))
        }
        if rest.isEmpty { return finishIntroduction(session, connection) }
        connection.whenWritten { self.enter { $0.introduce(rest, id, connection) } }
    }

    private func finishIntroduction(_ session: Session, _ connection: ClientConnection) {
        connection.send(.attached(lastTask: session.record.lastTask))
        session.isIntroducing = false
        guard session.takesEvents else { return }
        for transfer in session.transfers.values.sorted(by: { $0.task < $1.task }) {
            handle(.awaited, transfer)
            if let question = transfer.question { put(question, of: transfer) }
        }
    }

    /// A connection is over.
    func left(_ connection: ClientConnection) {
        connections[ObjectIdentifier(connection)] = nil
        reports.remove(connection)
        defer { rest.considerIdling(self) }
        if let session = connection.session, session.client === connection {
            session.client = nil
            session.hasProgramEnded = connection.isPeerGone
            let hasLeftLaunch = !session.isIntroducing && session.isLaunched
            session.isIntroducing = false
            for transfer in session.transfers.values where transfer.question != nil { limitQuestion(of: transfer) }
            if let (next, attachment) = session.waiting {
                session.waiting = nil
                return attach(attachment, next)
            }
            // A process that runs may have lost its connection alone, and be back at once.
            if hasLeftLaunch {
                endLaunch(of: session)
            } else if session.candidate.isDue, !connection.isPeerGone {
                planLaunch(of: session, after: Self.leavePatience)
            } else {
                considerLaunch(session)
            }
            forget(session, ifUnused: false)
        } else {
            for session in sessions.values where session.waiting?.0 === connection { session.waiting = nil }
        }
    }

    func invalidate(_ session: Session) {
        session.record.isInvalidated = true
        save(session)
        forget(session, ifUnused: true)
    }

    /// A session of which nothing is left.
    func forget(_ session: Session, ifUnused isGivenUp: Bool) {
        guard session.transfers.isEmpty else { return }
        // It is looked at again when these are dealt with.
        guard session.departures.isEmpty else { return }
        session.release()
        guard session.record.isInvalidated || isGivenUp || session.client == nil else { return }
        guard session.client == nil || session.record.isInvalidated else { return }
        session.client?.session = nil
        unregister(session)
        keep([.removeSession(session.id)])
        let folder = session.folder
        ownFiles.run { [spool] in spool.remove(folder: folder) }
    }
}

/// What the store has of a session's tasks, decoded away from the loop.
private struct Introduction: Sendable {
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

        /// What is known of an order that cannot be read, whose failure its program is to hear of.
        var remains: BackgroundOrder {
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

    /// Nil where the store cannot be read.
    init?(_ tasks: [Task], from store: TransferStore) {
        guard let orders = (try? store.orders(of: tasks.map(\.number)))?.orders else { return nil }
        for task in tasks {
            let order = orders[task.number].flatMap { try? MessageCoding.decodeOrder($0) } ?? task.remains
            let response = (try? store.part(.response, of: task.number)).flatMap { $0 }.flatMap {
                try? MessageCoding.decodeResponse($0)
            }
            parts.append(Part(number: task.number, task: task.task, order: order, response: response))
        }
    }
}
