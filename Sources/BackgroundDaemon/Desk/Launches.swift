// SPDX-License-Identifier: Apache-2.0

import BackgroundProtocol
import CLoadingSystem
import LoadingModel
import NIOCore
import SystemThreads

/// Launches programs for the events of their sessions.
final class Launches {
    /// How long, in seconds, a program may take to reconnect to a restarted daemon before it counts as gone.
    private static let returnPatience = 3.0
    /// How long, in seconds, a running program whose connection was closed may take to reconnect before it is launched again.
    private static let leavePatience = 1.0

    /// Several threads, so that a slow launch delays only the programs that share its thread.
    private let threads = (0..<4).map { _ in WorkThread("bg-launches") }
    private var threadsOfPrograms: [String: WorkThread] = [:]

    /// Launches the session's program if it is gone and has events or questions to process.
    ///
    /// The ``LaunchLimit`` decides how often the program may be launched.
    func consider(_ session: Session, _ desk: isolated TransferDesk) {
        guard session.candidate.isDue, !desk.isClosing, let launch = session.settings.launch else { return }
        let program = session.program
        let all = desk.sessions.values.filter { $0.program == program }
        var limit = session.record.launches
        let due: [Session]
        switch limit.decide(session.id, among: all.map(\.candidate), now: desk.now, patience: desk.options.launchPatience) {
        case .none: return
        case .wait(let seconds):
            if session.launch.timer == nil {
                let text = "\(program) is not started for \(session.identifier) before \(Int(seconds.rounded(.up))) s are over"
                desk.journal.log(.info, text)
            }
            return plan(session, after: seconds, desk)
        case .start(let ids): due = ids.compactMap { desk.sessionsByID[$0] }
        }
        session.launch.timer?.cancel()
        session.launch.timer = nil
        for session in all { session.record.launches = limit }
        // To store the limit, the row of one session is enough.
        session.launch.isKept = true
        desk.save(session)
        for session in due {
            session.launch.isUnderWay = true
            session.launch.isHandedOver = false
            session.launch.number += 1
        }
        let identifiers = due.map(\.identifier)
        desk.journal.log(.notice, "starting \(program) for its session \(identifiers.joined(separator: ", "))")
        let launched = due.map { (id: $0.id, number: $0.launch.number) }
        thread(of: program).run {
            if case .arguments = launch {} else { ProgramLauncher.announce(identifiers, to: program) }
            switch ProgramLauncher.start(launch, identifiers: identifiers) {
            case .failed(let trouble): desk.enter { $0.launches.failed(program, launched, trouble, $0) }
            case .started(process: nil): break
            case .ended: desk.enter { $0.launches.ended(program, launched, $0) }
            case .started(let process?): Self.watch(process, of: program, launched, desk)
            }
        }
        // A program that has not processed its events by then counts as hung, or as not launched.
        desk.enter(after: desk.options.launchPatience) { desk in
            for session in Self.underWay(launched, desk) { session.launch.isUnderWay = false }
            desk.launches.considerAll(of: program, desk)
        }
    }

    /// Launches a program for all of its sessions that need a launch; sessions with the same launch method share one launch.
    private func considerAll(of program: String, _ desk: isolated TransferDesk) {
        var ways: Set<BackgroundSettings.Launch> = []
        let due = desk.sessions.values.filter { $0.program == program && $0.candidate.isDue }.sorted { $0.id < $1.id }
        for session in due {
            if let launch = session.settings.launch, ways.insert(launch).inserted { consider(session, desk) }
        }
    }

    /// Waits on a thread of its own for the end of a launched process, for as long as the launch may be under way.
    private static func watch(
        _ process: CInt, of program: String, _ launched: [(id: Int64, number: Int)], _ desk: TransferDesk
    ) {
        let wait: @Sendable () -> Void = {
            guard ProgramLauncher.waitForEnd(of: process, seconds: desk.options.launchPatience) else { return }
            desk.enter { $0.launches.ended(program, launched, $0) }
        }
        if Threads.start("bg-launched", wait) == nil { _ = cls_close(process) }
    }

    /// Ends the launch of a process that has ended without joining its sessions, so that the program is launched again.
    private func ended(_ program: String, _ launched: [(id: Int64, number: Int)], _ desk: isolated TransferDesk) {
        for session in Self.underWay(launched, desk) where session.client == nil {
            session.launch.isUnderWay = false
            session.launch.isHandedOver = true
        }
        considerAll(of: program, desk)
    }

    private func failed(
        _ program: String, _ launched: [(id: Int64, number: Int)], _ trouble: String, _ desk: isolated TransferDesk
    ) {
        desk.journal.log(.error, "\(program) cannot be started: \(trouble)")
        // If a session has a client, the program has joined the session despite the failure.
        for session in Self.underWay(launched, desk) where session.client == nil {
            session.launch.trouble = trouble
            session.launch.isUnderWay = false
            for transfer in session.transfers.values { desk.noteChange(of: transfer) }
        }
        considerAll(of: program, desk)
    }

    /// Returns the sessions whose last launch is in the list and is still under way.
    private static func underWay(_ launched: [(id: Int64, number: Int)], _ desk: isolated TransferDesk) -> [Session] {
        launched.compactMap { id, number in
            desk.sessionsByID[id].flatMap { $0.launch.isUnderWay && $0.launch.number == number ? $0 : nil }
        }
    }

    /// Ends a session's launch after the program has processed its events or has left.
    func end(of session: Session, _ desk: isolated TransferDesk) {
        guard session.launch.isUnderWay else { return consider(session, desk) }
        session.launch.isUnderWay = false
        guard session.endedCount == 0, session.askingCount == 0 else { return consider(session, desk) }
        session.record.launches.settle()
        session.launch.isKept = true
        desk.save(session)
        for other in desk.sessions.values where other.program == session.program {
            other.record.launches = session.record.launches
        }
        considerAll(of: session.program, desk)
    }

    private func plan(_ session: Session, after seconds: Double, _ desk: isolated TransferDesk) {
        let id = session.id
        session.launch.timer?.cancel()
        session.launch.timer = desk.timer(after: seconds) { desk in
            if let session = desk.sessionsByID[id] { desk.launches.consider(session, desk) }
        }
    }

    private func thread(of program: String) -> WorkThread {
        if let known = threadsOfPrograms[program] { return known }
        let chosen = threads[threadsOfPrograms.count % threads.count]
        threadsOfPrograms[program] = chosen
        return chosen
    }

    // MARK: Arriving and leaving programs

    /// Notes that the program has joined its session.
    ///
    /// - Returns: Whether the durable state of the session has changed.
    func noteArrival(for session: Session, wasLaunched: Bool, _ desk: isolated TransferDesk) -> Bool {
        session.launch.trouble = nil
        if wasLaunched, session.launch.isHandedOver { session.launch.isUnderWay = true }
        session.launch.isHandedOver = false
        guard !wasLaunched else { return false }
        session.launch.isUnderWay = false
        var isOther = false
        // The user started the program, so the limit on launches starts over.
        for other in desk.sessions.values where other.program == session.program {
            let isChanged = other.record.wasQuit || other.launch.isKept
            other.launch.isKept = false
            other.record.launches = LaunchLimit()
            other.record.wasQuit = false
            other.record.doomed = nil
            if other === session { isOther = isChanged } else if isChanged { desk.save(other) }
        }
        return isOther
    }

    /// Notes that the program has left its session.
    func noteLeaving(of session: Session, wasAttaching: Bool, _ desk: isolated TransferDesk) {
        // The process may still be running, and may reconnect at once after a lost connection.
        if session.launch.isUnderWay, !wasAttaching || session.hasProgramEnded {
            end(of: session, desk)
        } else if session.candidate.isDue, !session.hasProgramEnded {
            plan(session, after: Self.leavePatience, desk)
        } else {
            consider(session, desk)
        }
    }

    /// For each program, gives all sessions the latest launch limit that was stored with any of them.
    func restoreLimits(_ desk: isolated TransferDesk) {
        for known in Dictionary(grouping: desk.sessions.values, by: \.program).values {
            let limit = LaunchLimit.latest(known.map(\.record.launches))
            for session in known { session.record.launches = limit }
        }
    }

    /// Gives running programs a moment to rejoin their sessions.
    func awaitReturns(_ desk: isolated TransferDesk) {
        for session in desk.sessions.values where session.candidate.isDue { plan(session, after: Self.returnPatience, desk) }
    }
}
