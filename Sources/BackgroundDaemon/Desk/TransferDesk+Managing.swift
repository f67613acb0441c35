//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import BackgroundProtocol
import CLoadingSystem
import FoundationEssentials
import HTTPRules
import LoadingModel
import NIOCore

#if canImport(Glibc)
import Glibc
#else
import Musl
#endif

/// The user looks at transfers, and drives them.
extension TransferDesk {
    private static let pageSize = 500
    /// Characters of a URL or a description that people see.
    private static let textLimit = 1000
    /// Seconds between two reports to whoever watches.
    private static let reportInterval = 0.2

    func manage(_ request: ManagerRequest, _ number: Int, _ connection: ClientConnection) {
        guard connection.role == .manager else { return connection.refuse(.malformed, "that is for the user's tool") }
        switch request {
        case .list: list(transfers.values.sorted { $0.number < $1.number }, number, connection)
        case .watch:
            watchers[ObjectIdentifier(connection), default: []].append(number)
            list(transfers.values.sorted { $0.number < $1.number }, number, connection)
        case .status: connection.send(.status(status, request: number))
        case .log: connection.send(.log(journal.recent, request: number))
        case .pause(let transfer):
            drive(transfer, number, connection) { desk, transfer in
                transfer.record.isPaused = true
                desk.held(transfer)
            }
        case .resume(let transfer):
            drive(transfer, number, connection) { desk, transfer in
                transfer.record.isPaused = false
                desk.held(transfer)
            }
        case .cancel(let transfer) where transfers[transfer]?.isEndDurable == true:
            // Nobody came for it, and nobody shall.
            if let over = transfers[transfer], over.session.client == nil { told(over.task, over.session) }
            connection.send(.done(request: number))
        case .cancel(let transfer): drive(transfer, number, connection) { $0.cancel($1, as: .cancelled) }
        case .quit(let program):
            let isKnown = quit(program: program) { connection.send(.done(request: number)) }
            guard !isKnown else { return }
            let error = LoadError(.resourceUnavailable, "no program \(program) has background transfers")
            connection.send(.failed(error, request: number))
        case .handOver:
            journal.say(.notice, "another urlsessiond takes over")
            connection.send(.done(request: number))
            onIdle?()
        }
    }

    private func drive(
        _ number: Int64, _ request: Int, _ connection: ClientConnection, _ action: (isolated TransferDesk, Transfer) -> Void
    ) {
        guard let transfer = transfers[number], !transfer.isOver else {
            return connection.send(.failed(LoadError(.resourceUnavailable, "there is no transfer \(number)"), request: request))
        }
        action(self, transfer)
        // What was done is done for good when that is said.
        store.apply([.setState(number, transfer.record.encoded)]) { _ in connection.send(.done(request: request)) }
    }

    private func list(_ transfers: [Transfer], _ request: Int, _ connection: ClientConnection) {
        list(transfers.map(\.number)[...], request, connection)
    }

    /// In pages, each when the one before was read.
    private func list(_ numbers: ArraySlice<Int64>, _ request: Int, _ connection: ClientConnection) {
        let page = numbers.prefix(Self.pageSize)
        let rest = numbers.dropFirst(page.count)
        let reports = page.compactMap { transfers[$0] }.map { report(on: $0) }
        connection.send(.transfers(reports, request: request, isLast: rest.isEmpty))
        guard !rest.isEmpty else { return }
        connection.whenWritten { self.enter { $0.list(rest, request, connection) } }
    }

    // MARK: Reports

    private func report(on transfer: Transfer) -> TransferReport {
        let record = transfer.record
        var state = TransferReport.State.waiting
        if transfer.isOver {
            state = .ended
        } else if record.isHeld {
            state = .paused
        } else if transfer.attempt != nil || transfer.isClosing {
            state = .running
        }
        return TransferReport(
            number: transfer.number, program: transfer.session.program, session: transfer.session.identifier, task: transfer.task,
            url: String(record.url.prefix(Self.textLimit)), isUpload: record.isUpload, state: state,
            reason: reason(of: transfer, state),
            counts: transfer.counts,
            created: record.created, description: record.notes.description.map { String($0.prefix(Self.textLimit)) })
    }

    /// Why it waits, or how it ended, in plain words.
    private func reason(of transfer: Transfer, _ state: TransferReport.State) -> String {
        if transfer.question != nil {
            return transfer.session.client == nil
                ? "needs a decision of its program, which is not running" : "needs a decision of its program"
        }
        switch state {
        case .running: return transfer.isWaitingForNetwork ? "no network" : ""
        case .ended: return transfer.lastTrouble.isEmpty ? "waits for its program" : transfer.lastTrouble
        case .gone: return ""
        case .paused where transfer.record.isPaused: return "paused"
        case .waiting, .paused: break
        }
        let trouble = transfer.lastTrouble.isEmpty ? "" : ": \(transfer.lastTrouble)"
        switch scheduler.waitReason(of: transfer.number) {
        case .turn?: return "its turn"
        case .host?: return "others at its host"
        case .earliestBegin(let date)?: return "until \(Date(timeIntervalSinceReferenceDate: date).formatted(.iso8601))"
        case .retry(let at, let attempts)?:
            return "tried again in \(max(1, Int(min(at - now, 1e15).rounded(.up)))) s after \(attempts) attempts\(trouble)"
        case .network?: return "no network"
        case .meteredOrBattery?: return "an unmetered network and external power"
        case .held?: return "held back by its program"
        case .space?: return "room on the disk\(trouble)\(spaceReason(of: transfer))"
        case nil: return ""
        }
    }

    /// Whoever watches is told soon.
    func noteChange(_ transfer: Transfer) {
        guard !watchers.isEmpty else { return }
        changed.insert(transfer.number)
        guard !isReporting else { return }
        isReporting = true
        enter(after: Self.reportInterval) { $0.tellWatchers([]) }
    }

    /// The program knows how it ended.
    func noteGone(_ transfer: Transfer) {
        guard !watchers.isEmpty else { return }
        changed.remove(transfer.number)
        var last = report(on: transfer)
        last.state = .gone
        tellWatchers([last])
    }

    private func tellWatchers(_ additional: [TransferReport]) {
        isReporting = false
        let reports = changed.sorted().compactMap { transfers[$0] }.map { report(on: $0) } + additional
        changed = []
        guard !reports.isEmpty else { return }
        for (id, requests) in watchers {
            for request in requests { connections[id]?.send(.transfers(reports, request: request, isLast: true)) }
        }
    }

    private var status: DaemonStatus {
        var status = DaemonStatus()
        status.process = getpid()
        status.version = LibraryVersion.text
        status.socket = DaemonPlace().socket
        status.directory = options.stateDirectory
        status.uptime = now - started
        status.connections = connections.count
        status.sessions = sessions.count
        for transfer in transfers.values {
            if transfer.isOver {
                status.ended += 1
            } else if transfer.record.isHeld {
                status.paused += 1
            } else if transfer.attempt != nil {
                status.running += 1
            } else {
                status.waiting += 1
            }
        }
        status.residentBytes = cls_resident_bytes()
        status.trouble = [storageTrouble, store.trouble, spaceTrouble].compactMap { $0 }
        status.isConnected = conditions.isConnected
        status.isMetered = conditions.isMetered
        status.hasExternalPower = conditions.hasExternalPower
        return status
    }
}
