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
import NIOCore
import SystemThreads

/// Programs are started for what happened to their sessions.
extension TransferDesk {
    /// Starts the session's program where it is gone and has something to hear or to decide.
    ///
    /// How often that may be is the ``LaunchLimit``'s to say.
    func considerLaunch(_ session: Session) {
        guard session.candidate.isDue, !isClosing, let launch = session.settings.launch else { return }
        let program = session.program
        let all = sessions.values.filter { $0.program == program }
        var limit = session.record.launches
        let due: [Session]
        switch limit.decide(session.id, among: all.map(\.candidate), now: now, patience: options.launchPatience) {
        case .none: return
        case .wait(let seconds):
            if session.launchTimer == nil {
                let text = "\(program) is not started for \(session.identifier) before \(Int(seconds.rounded(.up))) s are over"
                journal.say(.info, text)
            }
            return planLaunch(of: session, after: seconds)
        case .start(let ids): due = ids.compactMap { sessionsByID[$0] }
        }
        session.launchTimer?.cancel()
        session.launchTimer = nil
        for session in all { session.record.launches = limit }
        // One row is enough to know it by.
        session.hasKeptLaunches = true
        save(session)
        for session in due {
            session.isLaunched = true
            session.launchNumber += 1
        }
        let identifiers = due.map(\.identifier)
        journal.say(.notice, "starting \(program) for its session \(identifiers.joined(separator: ", "))")
        let launched = due.map { (id: $0.id, number: $0.launchNumber) }
        launcher(of: program).run {
            if case .arguments = launch {} else { ProgramLauncher.announce(identifiers, to: program) }
            guard let trouble = ProgramLauncher.start(launch, identifiers: identifiers) else { return }
            self.enter { $0.launchFailed(program, launched, trouble) }
        }
        // A program that has not dealt with its events by then counts as hung, or as never come.
        enter(after: options.launchPatience) { desk in
            for (id, number) in launched {
                guard let session = desk.sessionsByID[id], session.isLaunched, session.launchNumber == number else { continue }
                session.isLaunched = false
            }
            desk.considerLaunches(of: program)
        }
    }

    /// Starts a program for those of its sessions that need it: one start is for all that it would be started for in the same way.
    private func considerLaunches(of program: String) {
        var ways: Set<BackgroundSettings.Launch> = []
        let due = sessions.values.filter { $0.program == program && $0.candidate.isDue }.sorted { $0.id < $1.id }
        for session in due {
            if let launch = session.settings.launch, ways.insert(launch).inserted { considerLaunch(session) }
        }
    }

    private func launchFailed(_ program: String, _ launched: [(id: Int64, number: Int)], _ trouble: String) {
        journal.say(.error, "\(program) cannot be started: \(trouble)")
        for (id, number) in launched {
            // One that came all the same has left again by now.
            guard let session = sessionsByID[id], session.isLaunched, session.launchNumber == number, session.client == nil else {
                continue
            }
            session.launchTrouble = trouble
            session.isLaunched = false
            for transfer in session.transfers.values { reports.note(transfer, self) }
        }
        considerLaunches(of: program)
    }

    /// A program that was started has dealt with its events, or has left.
    func endLaunch(of session: Session) {
        guard session.isLaunched else { return considerLaunch(session) }
        session.isLaunched = false
        guard session.endedCount == 0, session.askingCount == 0 else { return considerLaunch(session) }
        session.record.launches.settle()
        session.hasKeptLaunches = true
        save(session)
        for other in sessions.values where other.program == session.program {
            other.record.launches = session.record.launches
        }
        considerLaunches(of: session.program)
    }

    func planLaunch(of session: Session, after seconds: Double) {
        let id = session.id
        session.launchTimer?.cancel()
        session.launchTimer = timer(after: seconds) { desk in
            if let session = desk.sessionsByID[id] { desk.considerLaunch(session) }
        }
    }
}

extension Session {
    /// Whether the program can be had when it is not there.
    var canBeLaunched: Bool { candidate.way != nil }

    var candidate: LaunchCandidate {
        LaunchCandidate(
            session: id, way: settings.sendsLaunchEvents && !record.wasQuit ? settings.launch : nil, isThere: client != nil,
            isLaunched: isLaunched, transfers: transfers.count, asking: askingCount, ended: endedCount)
    }
}
