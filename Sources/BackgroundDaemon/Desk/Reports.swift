// SPDX-License-Identifier: Apache-2.0

import BackgroundProtocol
import FoundationEssentials

/// Describes transfers for the user, and reports changes to watching connections.
final class Reports {
    /// The maximum length of a displayed URL or description, in characters.
    private static let textLimit = 1000
    /// Seconds between two reports to watching connections.
    static let interval = 0.2

    /// Why a transfer waits, and what the reason is about.
    struct Wait {
        var reason: TransferScheduler.WaitReason?
        var terms: TransferTerms
        /// The space that is missing, as text.
        var space: String
    }

    /// The requests of the watching connections.
    private(set) var requests: [ObjectIdentifier: [Int]] = [:]
    private var changed: Set<Int64> = []
    private var isPlanned = false

    func add(_ connection: ClientConnection, _ request: Int) {
        requests[ObjectIdentifier(connection), default: []].append(request)
    }

    func remove(_ connection: ClientConnection) { requests[ObjectIdentifier(connection)] = nil }

    /// Describes a transfer.
    ///
    /// - Parameters:
    ///   - transfer: The transfer.
    ///   - now: The time.
    ///   - wait: Why the transfer waits, if it does.
    /// - Returns: The report.
    static func report(on transfer: Transfer, now: Double, _ wait: () -> Wait) -> TransferReport {
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
            url: String(record.url.prefix(textLimit)), isUpload: record.isUpload, state: state,
            reason: reason(of: transfer, state, now, wait), counts: transfer.counts,
            created: record.created, description: record.notes.description.map { String($0.prefix(textLimit)) })
    }

    /// Returns why a transfer waits, or how it ended, in plain words.
    private static func reason(
        of transfer: Transfer, _ state: TransferReport.State, _ now: Double, _ wait: () -> Wait
    ) -> String {
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
        let wait = wait()
        switch wait.reason {
        case .turn?: return "its turn"
        case .host?: return "other transfers to its host"
        case .earliestBegin(let date)?: return "until \(Date(timeIntervalSinceReferenceDate: date).formatted(.iso8601))"
        case .retry(let at, let attempts)?:
            return "retry in \(max(1, Int(min(at - now, 1e15).rounded(.up)))) s after \(attempts) attempts\(trouble)"
        case .origin(let at, let attempts)?:
            return
                "its host did not respond \(attempts) times; retry in \(max(1, Int(min(at - now, 1e15).rounded(.up)))) s"
        case .network?: return "no network"
        case .meteredOrBattery?: return "an unmetered network and external power"
        case .held?: return "suspended by its program"
        case .hours?: return "the hours \(wait.terms.hours.map(\.text).joined(separator: ", "))"
        case .space?: return "disk space\(trouble)\(wait.space)"
        case nil: return ""
        }
    }

    private static func absence(of session: Session) -> String {
        guard session.client == nil else { return "" }
        return session.launch.trouble.map { ", which cannot be started: \($0)" } ?? ", which is not running"
    }

    // MARK: Watching connections

    /// Notes a changed transfer.
    ///
    /// - Returns: Whether the changes have to be reported after the ``interval``.
    func note(_ number: Int64) -> Bool {
        guard !requests.isEmpty else { return false }
        changed.insert(number)
        defer { isPlanned = true }
        return !isPlanned
    }

    /// Returns the changed transfers, which are about to be reported.
    func takeChanged() -> [Int64] {
        isPlanned = false
        defer { changed = [] }
        return changed.sorted()
    }
}
