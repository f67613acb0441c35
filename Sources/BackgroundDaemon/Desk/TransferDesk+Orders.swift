// SPDX-License-Identifier: Apache-2.0

import BackgroundProtocol
import FoundationEssentials
import LoadingModel
import SystemThreads

/// The messages of programs about their tasks.
extension TransferDesk: ConnectionOwner {
    nonisolated func take(_ event: ClientConnection.Event, of connection: ClientConnection) {
        assumeIsolated { desk in
            switch event {
            case .opened: desk.clients.add(connection, desk)
            case .closed: desk.clients.remove(connection, desk)
            case .pending(let change): desk.clients.notePending(change)
            case .unread(let change): desk.clients.noteUnread(change)
            case .message(let message, let payload): desk.receive(message, payload, from: connection)
            case .refused(let reason):
                desk.journal.log(.warning, "\(connection.program) (\(connection.process)): \(reason)")
            }
        }
    }

    /// Seconds that an order, or a quit of a program, waits for disk space before it fails.
    static let orderPatience = 8.0

    /// - Parameters:
    ///   - message: The message.
    ///   - payload: The bytes of the message.
    ///   - connection: The program's connection.
    private func receive(_ message: ClientMessage, _ payload: [UInt8], from connection: ClientConnection) {
        guard !isClosing, !connection.isDoomed else { return }
        if case .manage(let request, let number) = message { return manage(request, number, connection) }
        if case .attach(let attachment) = message { return clients.attach(attachment, connection, self) }
        guard let session = connection.session, session.client === connection else {
            // A program that waits for its session must not send anything else.
            return connection.refuse(.malformed, "the connection has no session")
        }
        switch message {
        case .submit(let order):
            guard let encoded = try? MessageCoding.order(inSubmit: payload) else {
                return connection.refuse(.malformed, "the order cannot be stored")
            }
            submit(order, encoded, session, connection)
        case .command(let command, let task): if let transfer = session.transfers[task] { execute(command, transfer) }
        case .note(let notes, let task):
            guard let transfer = session.transfers[task], !transfer.isOver else { return }
            transfer.record.notes = notes
            save(transfer)
        case .answer(let answer, let task, let question): questions.take(answer, to: question, of: task, session, self)
        case .told(let task): removals.told(task, session, self)
        case .eventsHandled: launches.end(of: session, self)
        case .invalidate: clients.invalidate(session, self)
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
        case .hello, .attach, .manage: connection.refuse(.malformed, "the message was already sent")
        }
    }

    // MARK: Orders

    private func submit(_ order: BackgroundOrder, _ encoded: [UInt8], _ session: Session, _ connection: ClientConnection) {
        let task = order.task.id
        if let known = session.transfers[task] {
            // The program repeats an order after a lost connection.
            if known.machine.isAccepted { connection.accept(task) }
            return
        }
        var objection: String?
        let policies = [order.task.request.cachePolicy, session.settings.policy.cachePolicy]
        if policies.contains(.returnCacheDataDontLoad) {
            objection = "a background session has no cache, and the cache policy forbids sending the request"
        } else if session.transfers.count >= Self.sessionLimit || transfers.count >= Self.totalLimit {
            objection = "there are too many background transfers: a session can have at most \(Self.sessionLimit)"
        }
        if let objection {
            return connection.send(
                .rejected(task, LoadError(.resourceUnavailable, objection, url: order.task.request.url)))
        }
        let transfer = Transfer(
            number: nextNumber, session: session, task: task, record: TransferRecord(order, session.settings),
            machine: TransferMachine())
        register(transfer)
        guard case .file(let path) = order.task.request.body else {
            return persistOrder(transfer, order, encoded, connection)
        }
        let number = transfer.number
        files(of: session.program).run {
            let version = Spool.version(ofProgramFile: path)
            self.enter(number) { desk, transfer in
                switch version {
                case .success(let version):
                    transfer.record.uploadFile = version
                    desk.persistOrder(transfer, order, encoded, connection)
                case .failure(var error):
                    error.url = order.task.request.url
                    desk.reject(transfer, error, connection)
                }
            }
        }
    }

    /// Makes the order durable, and then confirms it; if the disk is full, retries for some seconds.
    private func persistOrder(
        _ transfer: Transfer, _ order: BackgroundOrder, _ encoded: [UInt8], _ connection: ClientConnection,
        until end: Double? = nil
    ) {
        let patience = end ?? now + Self.orderPatience
        let row = TransferStore.TransferRow(
            id: transfer.number, session: transfer.session.id, task: transfer.task, state: transfer.record.encoded)
        let number = transfer.number
        let session: [TransferStore.Change] = transfer.session.isSaved ? [] : [.saveSession(transfer.session.row)]
        store.apply(session + [.addTransfer(row, order: encoded)]) { result in
            self.enter(number) { desk, transfer in
                desk.noteStorage(result)
                switch result {
                case .success:
                    transfer.session.isSaved = true
                    // The program may have reconnected in the meantime.
                    transfer.session.client?.accept(transfer.task)
                    // If the transfer starts at once, its order need not be read.
                    transfer.order = order
                    desk.handle(.accepted, transfer)
                    transfer.order = nil
                // The program repeats the order to the next daemon.
                case .failure(.closed), .failure(.damaged): break
                case .failure(.busy) where desk.now < patience, .failure(.diskFull) where desk.now < patience:
                    desk.enter(number, after: 0.5) { $0.persistOrder($1, order, encoded, connection, until: patience) }
                case .failure(let failure):
                    desk.reject(
                        transfer, LoadError(.cannotWriteToFile, "urlsessiond cannot store the task: \(failure.reason)"),
                        connection
                    )
                }
            }
        }
    }

    private func reject(_ transfer: Transfer, _ error: LoadError, _ connection: ClientConnection) {
        handle(.rejected, transfer)
        unregister(transfer)
        (transfer.session.client ?? connection).send(.rejected(transfer.task, error))
    }

    // MARK: Commands

    func execute(_ command: TaskCommand, _ transfer: Transfer) {
        guard !transfer.isOver else { return }
        switch command {
        case .suspend, .resume:
            transfer.record.isSuspended = if case .suspend = command { true } else { false }
            held(transfer)
        case .cancel: handle(.giveUp(.cancelled, wantsData: false), transfer)
        case .cancelProducingResumeData: handle(.giveUp(.cancelled, wantsData: true), transfer)
        case .setPriority(let priority):
            transfer.record.priority = min(max(priority, 0), 1)
            schedule(.priorityChanged(transfer.number, transfer.record.priority))
            save(transfer)
        case .consumed, .reportCounts, .webSocket, .stream: break
        }
    }

    /// Stores and reports that the transfer was suspended or resumed, and tells the scheduler.
    func held(_ transfer: Transfer) {
        guard transfer.machine.isAccepted else { return }
        schedule(transfer.record.isHeld ? .held(transfer.number) : .released(transfer.number))
        save(transfer)
        noteChange(of: transfer)
    }

    func note(_ why: TransferMachine.GiveUpReason, of transfer: Transfer) {
        guard transfer.record.givenUp == nil else { return }
        transfer.record.givenUp = why
        save(transfer)
    }
}
