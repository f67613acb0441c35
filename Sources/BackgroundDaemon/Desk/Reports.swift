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

/// Describes transfers for the user, and reports changes to watching connections.
final class Reports {
    /// The maximum length of a displayed URL or description, in characters.
    private static let textLimit = 1000
    /// Seconds between two reports to watching connections.
    private static let interval = 0.2

    private var watchers: [ObjectIdentifier: [Int]] = [:]
    private var changed: Set<Int64> = []
    private var isPlanned = false

    func add(_ connection: ClientConnection, _ request: Int) {
        watchers[ObjectIdentifier(connection), default: []].append(request)
    }

    func remove(_ connection: ClientConnection) { watchers[ObjectIdentifier(connection)] = nil }

    func report(on transfer: Transfer, _ desk: isolated TransferDesk) -> TransferReport {
        let record = transfer.record
        var state = TransferReport.State.waiting
        if transfer.isOver {
            state = .ended
        } else if record.isHeld {
            state = .paused
        } else if transfer.machine.hasAttempt || transfer.machine.isClosing {
            state = .running
        }
        return TransferReport(
            number: transfer.number, program: transfer.session.program, session: transfer.session.identifier, task: transfer.task,
            url: String(record.url.prefix(Self.textLimit)), isUpload: record.isUpload, state: state,
            reason: reason(of: transfer, state, desk), counts: transfer.counts,
            created: record.created, description: record.notes.description.map { String($0.prefix(Self.textLimit)) })
    }

    /// Returns why a transfer waits, or how it ended, in plain words.
    private func reason(of transfer: Transfer, _ state: TransferReport.State, _ desk: isolated TransferDesk) -> String {
        if transfer.question != nil {
            return "needs a decision from its program" + absence(of: transfer.session)
        }
        switch state {
        case .running:
            guard let pause = transfer.attempt?.load.pause else { return transfer.isWaitingForNetwork ? "no network" : "" }
            return "slow mode: continues in \(max(1, Int(min(pause, 1e15).rounded(.up)))) s"
        case .ended where transfer.lastTrouble.isEmpty: return "waits for its program" + absence(of: transfer.session)
        case .ended: return transfer.lastTrouble
        case .gone: return ""
        case .paused where transfer.record.isPaused: return "paused"
        case .waiting, .paused: break
        }
        let trouble = transfer.lastTrouble.isEmpty ? "" : ": \(transfer.lastTrouble)"
        switch desk.scheduler.waitReason(of: transfer.number) {
        case .turn?: return "its turn"
        case .host?: return "other transfers to its host"
        case .earliestBegin(let date)?: return "until \(Date(timeIntervalSinceReferenceDate: date).formatted(.iso8601))"
        case .retry(let at, let attempts)?:
            return "retry in \(max(1, Int(min(at - desk.now, 1e15).rounded(.up)))) s after \(attempts) attempts\(trouble)"
        case .origin(let at, let attempts)?:
            return
                "its host did not respond \(attempts) times; retry in \(max(1, Int(min(at - desk.now, 1e15).rounded(.up)))) s"
        case .network?: return "no network"
        case .meteredOrBattery?: return "an unmetered network and external power"
        case .held?: return "suspended by its program"
        case .hours?: return "the hours \(desk.terms.terms.hours.map(\.text).joined(separator: ", "))"
        case .space?: return "disk space\(trouble)\(desk.space.reason(of: transfer))"
        case nil: return ""
        }
    }

    private func absence(of session: Session) -> String {
        guard session.client == nil else { return "" }
        return session.launch.trouble.map { ", which cannot be started: \($0)" } ?? ", which is not running"
    }

    /// Reports a changed transfer to watching connections soon.
    func note(_ transfer: Transfer, _ desk: isolated TransferDesk) {
        guard !watchers.isEmpty else { return }
        changed.insert(transfer.number)
        guard !isPlanned else { return }
        isPlanned = true
        desk.enter(after: Self.interval) { $0.reports.tell([], $0) }
    }

    /// Reports a transfer as gone, because its program knows the end.
    func noteRemoval(_ transfer: Transfer, _ desk: isolated TransferDesk) {
        guard !watchers.isEmpty else { return }
        changed.remove(transfer.number)
        var last = report(on: transfer, desk)
        last.state = .gone
        tell([last], desk)
    }

    private func tell(_ additional: [TransferReport], _ desk: isolated TransferDesk) {
        isPlanned = false
        let reports = changed.sorted().compactMap { desk.transfers[$0] }.map { report(on: $0, desk) } + additional
        changed = []
        guard !reports.isEmpty else { return }
        for (id, requests) in watchers {
            for request in requests { desk.clients.connections[id]?.send(.transfers(reports, request: request, isLast: true)) }
        }
    }
}
