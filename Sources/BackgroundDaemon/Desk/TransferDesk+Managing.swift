// SPDX-License-Identifier: Apache-2.0

import BackgroundProtocol
import CLoadingSystem
import FoundationEssentials
import HTTPRules
import LoadingModel

/// The user's commands to inspect and control transfers.
extension TransferDesk {
    private static let pageSize = 500

    func manage(_ request: ManagerRequest, _ number: Int, _ connection: ClientConnection) {
        guard connection.role == .manager else { return connection.refuse(.malformed, "this is only for the user's tool") }
        switch request {
        case .list: list(transfers.keys.sorted()[...], number, connection)
        case .watch:
            reports.add(connection, number)
            list(transfers.keys.sorted()[...], number, connection)
        case .status: connection.send(.status(status, request: number))
        case .log: connection.send(.log(journal.recent, request: number))
        case .pause(let transfer):
            applyCommand(transfer, number, connection) { desk, transfer in
                transfer.record.isPaused = true
                desk.held(transfer)
            }
        case .resume(let transfer):
            applyCommand(transfer, number, connection) { desk, transfer in
                transfer.record.isPaused = false
                desk.held(transfer)
            }
        case .cancel(let transfer) where transfers[transfer]?.machine.state == .ended:
            // The user gives up a result that no program has taken yet.
            if let over = transfers[transfer], over.session.client == nil { removals.told(over.task, over.session, self) }
            connection.send(.done(request: number))
        case .cancel(let transfer): applyCommand(transfer, number, connection) { $0.execute(.cancel, $1) }
        case .quit(let program):
            let isKnown = quits.quit(program: program, self) { failure in
                guard let failure else { return connection.send(.done(request: number)) }
                let error = LoadError(
                    .cannotWriteToFile, "\(program) will be ended once that is stored on the disk: \(failure.reason)")
                connection.send(.failed(error, request: number))
            }
            guard !isKnown else { return }
            let error = LoadError(.resourceUnavailable, "no program \(program) has background transfers")
            connection.send(.failed(error, request: number))
        case .setTerms(let next):
            setTerms(next) { error in
                connection.send(error.map { .failed($0, request: number) } ?? .done(request: number))
            }
        case .handOver:
            journal.log(.notice, "another urlsessiond takes over")
            connection.send(.done(request: number))
            onEnd?(nil)
        }
    }

    private func applyCommand(
        _ number: Int64, _ request: Int, _ connection: ClientConnection, _ action: (isolated TransferDesk, Transfer) -> Void
    ) {
        guard let transfer = transfers[number], !transfer.isOver else {
            return connection.send(.failed(LoadError(.resourceUnavailable, "there is no transfer \(number)"), request: request))
        }
        action(self, transfer)
        // The change is durable before it is confirmed.
        store.apply([.setState(number, transfer.record.encoded)]) { result in
            switch result {
            case .success, .failure(.missing): connection.send(.done(request: request))
            case .failure(let failure):
                self.enter { $0.noteStorage(result) }
                self.enter(number) { $0.save($1) }  // Retries.
                let message = "transfer \(number) has changed, but that is not stored on the disk yet: \(failure.reason)"
                connection.send(.failed(LoadError(.cannotWriteToFile, message), request: request))
            }
        }
    }

    /// Sends the list in pages, each after the previous page has been read.
    private func list(_ numbers: ArraySlice<Int64>, _ request: Int, _ connection: ClientConnection) {
        let page = numbers.prefix(Self.pageSize)
        let rest = numbers.dropFirst(page.count)
        let known = page.compactMap { transfers[$0] }.map { report(on: $0) }
        connection.send(.transfers(known, request: request, isLast: rest.isEmpty))
        guard !rest.isEmpty else { return }
        connection.whenWritten { self.enter { $0.list(rest, request, connection) } }
    }

    private func report(on transfer: Transfer) -> TransferReport {
        Reports.report(on: transfer, now: now) {
            Reports.Wait(
                reason: scheduler.waitReason(of: transfer.number), terms: terms, space: space.reason(of: transfer))
        }
    }

    /// Reports a changed transfer to watching connections soon.
    func noteChange(of transfer: Transfer) {
        if reports.note(transfer.number) { enter(after: Reports.interval) { $0.sendReports($0.reports.takeChanged()) } }
    }

    /// Reports a transfer as gone, because its program knows the end.
    func noteRemoval(of transfer: Transfer) {
        guard !reports.requests.isEmpty else { return }
        var last = report(on: transfer)
        last.state = .gone
        sendReports(reports.takeChanged(), and: [last])
    }

    private func sendReports(_ numbers: [Int64], and others: [TransferReport] = []) {
        let changes = numbers.compactMap { transfers[$0] }.map { report(on: $0) } + others
        guard !changes.isEmpty else { return }
        for (id, requests) in reports.requests {
            for request in requests { clients.connections[id]?.send(.transfers(changes, request: request, isLast: true)) }
        }
    }

    private var status: DaemonStatus {
        var status = DaemonStatus()
        status.process = ProcessInfo.processInfo.processIdentifier
        status.version = LibraryVersion.text
        status.socket = DaemonPlace().socket
        status.directory = options.stateDirectory
        status.uptime = now - started
        status.connections = clients.connections.count
        status.sessions = sessions.count
        for transfer in transfers.values {
            if transfer.isOver {
                status.ended += 1
            } else if transfer.record.isHeld {
                status.paused += 1
            } else if transfer.machine.hasAttempt {
                status.running += 1
            } else {
                status.waiting += 1
            }
        }
        status.residentBytes = cls_resident_bytes()
        status.trouble = [storageTrouble, store.trouble, space.trouble(self), termsTrouble].compactMap { $0 }
        status.terms = terms
        status.isWithinHours = isWithinHours
        status.isConnected = conditions.isConnected
        status.isMetered = conditions.isMetered
        status.hasExternalPower = conditions.hasExternalPower
        return status
    }
}
