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
import HTTPWire
import LoadingModel
import NIOCore
import SystemThreads

/// What programs say of their tasks.
extension TransferDesk {
    /// Seconds that an order waits for room on the disk.
    private static let orderPatience = 8.0

    func receive(_ message: ClientMessage, from connection: ClientConnection) {
        guard !isClosing, !connection.isDoomed else { return }
        if case .manage(let request, let number) = message { return manage(request, number, connection) }
        if case .attach(let attachment) = message {
            let isWaiting = sessions.values.contains { $0.waiting?.0 === connection }
            guard connection.session == nil, connection.role == .session, !isWaiting else {
                return connection.refuse(.malformed, "a connection has one session")
            }
            return attach(attachment, connection)
        }
        guard let session = connection.session, session.client === connection else {
            // A program that is still waiting for its session has nothing to say yet.
            return connection.refuse(.malformed, "there is no session to speak of")
        }
        switch message {
        case .submit(let order): submit(order, session, connection)
        case .command(let command, let task): if let transfer = session.transfers[task] { carryOut(command, transfer) }
        case .note(let notes, let task):
            guard let transfer = session.transfers[task], !transfer.isOver else { return }
            transfer.record.notes = TransferRecord.Notes(notes)
            save(transfer)
        case .answer(let answer, let task, let question): take(answer, to: question, of: task, session)
        case .told(let task): told(task, session)
        case .eventsHandled:
            session.isLaunched = false
            considerLaunch(session)
        case .invalidate: invalidate(session)
        case .renew(let renewal, let request):
            session.service(of: store).renew(renewal) { connection.send(.renewed(request: request)) }
        case .proxies(let url, let request):
            let service = session.service(of: store)
            Task {
                do throws(LoadError) {
                    connection.send(.proxies(try await service.proxies(for: url), request: request))
                } catch {
                    connection.send(.failed(error, request: request))
                }
            }
        case .hello, .attach, .manage: connection.refuse(.malformed, "that was said before")
        }
    }

    // MARK: Orders

    private func submit(_ order: BackgroundOrder, _ session: Session, _ connection: ClientConnection) {
        let task = order.task.id
        if let known = session.transfers[task] {
            // Said again after a broken connection.
            if known.isAccepted { accept(task, connection) }
            return
        }
        let policies = [order.task.request.cachePolicy, session.settings.policy.cachePolicy]
        guard !policies.contains(.returnCacheDataDontLoad) else {
            let error = LoadError(
                .resourceUnavailable, "a background session has no cache, and the request is not to be sent",
                url: order.task.request.url)
            return connection.send(.rejected(task, error))
        }
        guard session.transfers.count < Self.sessionLimit, transfers.count < Self.totalLimit else {
            let error = LoadError(
                .resourceUnavailable, "there are too many background transfers: at most \(Self.sessionLimit) of one session",
                url: order.task.request.url)
            return connection.send(.rejected(task, error))
        }
        lastNumber = lastNumber.addingSaturating(1)
        let transfer = Transfer(
            number: lastNumber, session: session, task: task, record: TransferRecord(order, session.settings), isAccepted: false)
        transfers[transfer.number] = transfer
        session.transfers[task] = transfer
        session.record.lastTask = max(session.record.lastTask, task)
        guard case .file(let path) = order.task.request.body else { return enrol(transfer, order, connection) }
        let number = transfer.number
        files(of: session.program).run {
            let version = Spool.version(ofProgramFile: path)
            self.enter { desk in
                guard let transfer = desk.transfers[number] else { return }
                switch version {
                case .success(let version):
                    transfer.record.uploadFile = version
                    desk.enrol(transfer, order, connection)
                case .failure(var error):
                    error.url = order.task.request.url
                    desk.reject(transfer, error, connection)
                }
            }
        }
    }

    /// Has the order be durable, and then says so; where there is no room for it that is tried for some seconds.
    private func enrol(
        _ transfer: Transfer, _ order: BackgroundOrder, _ connection: ClientConnection, until end: Double? = nil
    ) {
        let patience = end ?? now + Self.orderPatience
        guard let encoded = try? MessageCoding.encode(order) else {
            return reject(transfer, LoadError(.unknown, "the order cannot be kept"), connection)
        }
        let row = TransferStore.TransferRow(
            id: transfer.number, session: transfer.session.id, task: transfer.task, state: transfer.record.encoded)
        let number = transfer.number
        let session: [TransferStore.Change] = transfer.session.isSaved ? [] : [.saveSession(transfer.session.row)]
        store.apply(session + [.addTransfer(row, order: encoded)]) { result in
            self.enter { desk in
                desk.noteStorage(result)
                guard let transfer = desk.transfers[number] else { return }
                switch result {
                case .success:
                    transfer.isAccepted = true
                    transfer.session.isSaved = true
                    // It may have come by another connection since.
                    if let client = transfer.session.client { desk.accept(transfer.task, client) }
                    if transfer.isOver { return desk.keepEnd(transfer) }
                    desk.add(transfer)
                    desk.noteChange(transfer)
                // The next daemon is told again.
                case .failure(.closed): break
                case .failure(.busy) where desk.now < patience, .failure(.diskFull) where desk.now < patience:
                    desk.enter(after: 0.5) { desk in
                        guard let transfer = desk.transfers[number] else { return }
                        desk.enrol(transfer, order, connection, until: patience)
                    }
                case .failure(let failure):
                    desk.reject(
                        transfer, LoadError(.cannotWriteToFile, "urlsessiond cannot keep the task: \(failure.reason)"), connection
                    )
                }
            }
        }
    }

    private func reject(_ transfer: Transfer, _ error: LoadError, _ connection: ClientConnection) {
        transfers[transfer.number] = nil
        transfer.session.transfers[transfer.task] = nil
        (transfer.session.client ?? connection).send(.rejected(transfer.task, error))
    }

    private func accept(_ task: TaskID, _ connection: ClientConnection) {
        accepted.append((connection, task))
        guard accepted.count == 1 else { return }
        executor.loop.execute { self.assumeIsolated { $0.sayAccepted() } }
    }

    private func sayAccepted() {
        var tasks: [ObjectIdentifier: (ClientConnection, [TaskID])] = [:]
        for (connection, task) in accepted { tasks[ObjectIdentifier(connection), default: (connection, [])].1.append(task) }
        accepted = []
        for (connection, list) in tasks.values { connection.send(.accepted(list)) }
    }

    // MARK: Commands

    func carryOut(_ command: TaskCommand, _ transfer: Transfer) {
        guard !transfer.isOver else { return }
        switch command {
        case .suspend, .resume:
            transfer.record.isSuspended = if case .suspend = command { true } else { false }
            held(transfer)
        case .cancel: cancel(transfer, as: .cancelled)
        case .cancelProducingResumeData:
            transfer.wantsResumeData = true
            cancel(transfer, as: .cancelled)
        case .setPriority(let priority):
            transfer.record.priority = min(max(priority, 0), 1)
            schedule(.priorityChanged(transfer.number, transfer.record.priority))
            save(transfer)
        case .consumed, .tellCounts: break
        }
    }

    /// Whether the transfer is held back has changed.
    func held(_ transfer: Transfer) {
        guard transfer.isAccepted else { return }
        schedule(transfer.record.isHeld ? .held(transfer.number) : .released(transfer.number))
        save(transfer)
        noteChange(transfer)
    }

    func cancel(_ transfer: Transfer, as ending: Transfer.Ending) {
        guard !transfer.isOver else { return }
        if transfer.isAccepted, transfer.record.givenUp == nil {
            transfer.record.givenUp = ending
            save(transfer)
        }
        guard !transfer.isClosing else {
            // It holds if the file that is being dealt with comes to nothing.
            transfer.ending = transfer.ending ?? ending
            return
        }
        if transfer.attempt != nil {
            transfer.ending = ending
            halt(transfer)
        } else {
            endAsGivenUp(transfer, ending)
        }
    }

    // MARK: Ends that were told

    /// The program knows how the task ended, and has its file: nothing of it is kept.
    func told(_ task: TaskID, _ session: Session) {
        guard let transfer = session.transfers[task], transfer.isOver else {
            session.client?.send(.forgotten(task))
            return
        }
        session.transfers[task] = nil
        transfers[transfer.number] = nil
        transfer.isEndDurable = false
        let files = [transfer.record.end?.file, Spool.handedName(transfer.number)].compactMap { $0 }
        let folder = session.folder
        noteGone(transfer)
        // Without its tasks a session would begin to count anew.
        let id = session.id
        keep([.removeTransfer(transfer.number)] + (session.transfers.isEmpty ? [.saveSession(session.row)] : [])) { desk in
            // Not before: a row whose file is gone would have it downloaded again.
            desk.ownFiles.run { [spool = desk.spool] in for file in files { spool.remove(file, in: folder) } }
            desk.noteRemoval()
            desk.sessionsByID[id]?.client?.send(.forgotten(task))
        }
        if session.record.isInvalidated { forget(session, ifUnused: true) }
        if session.transfers.isEmpty { session.release() }
        considerIdling()
    }

    // MARK: Questions

    func asked(
        _ question: TaskQuestion, of number: Int64, by load: RunningLoad, _ answer: @escaping @Sendable (TaskAnswer) -> Void
    ) {
        guard let transfer = transfers[number], transfer.attempt?.load === load else {
            return answer(.credential(.cancel))
        }
        lastQuestion += 1
        put(Transfer.Question(number: lastQuestion, question: question, answer: answer), of: transfer)
    }

    /// Asks the program, which is started for it where that is possible.
    func put(_ question: Transfer.Question, of transfer: Transfer) {
        transfer.question = question
        noteChange(transfer)
        guard !transfer.session.isListening else {
            transfer.session.client?.send(.question(question.question, transfer.task, question: question.number))
            return
        }
        limitQuestion(of: transfer)
        considerLaunch(transfer.session)
    }

    /// A question that no program hears is answered as if no delegate had an opinion.
    ///
    /// At once where the program has ended and cannot be started; one that runs is back soon after the daemon was killed.
    func limitQuestion(of transfer: Transfer) {
        guard let question = transfer.question, !transfer.session.canAnswer else { return }
        let number = transfer.number
        let session = transfer.session
        let patience = session.canBeLaunched ? options.questionPatience : session.hasProgramEnded ? 0 : options.returnPatience
        enter(after: patience) { desk in
            guard let transfer = desk.transfers[number], transfer.question?.number == question.number,
                !transfer.session.canAnswer
            else { return }
            desk.answer(transfer, transfer.question?.defaultAnswer ?? .done)
        }
    }

    private func take(_ answer: TaskAnswer, to question: Int, of task: TaskID?, _ session: Session) {
        guard let transfer = session.transfers.values.first(where: { $0.question?.number == question }),
            task == nil || task == transfer.task
        else { return }
        self.answer(transfer, answer)
    }

    private func answer(_ transfer: Transfer, _ answer: TaskAnswer) {
        guard let question = transfer.question else { return }
        transfer.question = nil
        question.answer(answer)
        noteChange(transfer)
    }
}

extension Transfer.Question {
    /// What holds where no delegate has the method.
    var defaultAnswer: TaskAnswer {
        if case .delayedRequest = question { .delayed(.proceed) } else { .credential(.performDefaultHandling) }
    }
}
