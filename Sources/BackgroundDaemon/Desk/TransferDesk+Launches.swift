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
import LoadingModel
import NIOCore
import SystemThreads

#if canImport(Glibc)
import Glibc
#else
import Musl
#endif

/// Programs are started for what happened to their sessions.
extension TransferDesk {
    /// The longest that a program waits between two starts.
    private static let longestDelay = 86_400.0

    /// Starts the session's program where it is gone and has something to hear or to decide.
    ///
    /// Each start doubles the time until the next one may be, so that a program that crashes at each is not started without end; that
    /// time passing without a start, or a start of the user's, has it begin anew.
    func considerLaunch(_ session: Session) {
        guard session.isLaunchDue, !isClosing, let launch = session.settings.launch else { return }
        let elapsed = session.record.launched.map { now - $0 } ?? .infinity
        if elapsed < 0 || elapsed >= session.record.launchDelay * 2 { session.record.launchDelay = 0 }
        guard elapsed >= session.record.launchDelay else {
            let id = session.id
            return enter(after: session.record.launchDelay - elapsed + 0.01) { desk in
                if let session = desk.sessionsByID[id] { desk.considerLaunch(session) }
            }
        }
        session.isLaunched = true
        session.record.launched = now
        session.record.launchDelay = min(max(options.launchDelay, session.record.launchDelay * 2), Self.longestDelay)
        save(session)
        journal.say(.notice, "starting \(session.program) for its session \(session.identifier)")
        let (id, program, identifier, journal) = (session.id, session.program, session.identifier, journal)
        programFiles.run {
            if case .arguments = launch {} else { ProgramLauncher.announce(identifier, to: program) }
            if let trouble = ProgramLauncher.start(launch, identifier: identifier) {
                journal.say(.error, "\(program) cannot be started for its session \(identifier): \(trouble)")
            }
        }
        // A program that has not dealt with its events by then counts as hung, or as never come.
        enter(after: options.launchPatience) { desk in
            guard let session = desk.sessionsByID[id], session.isLaunched else { return }
            session.isLaunched = false
            if session.client == nil { desk.considerLaunch(session) }
        }
    }

    /// As if the user ended a program by force.
    ///
    /// - Returns: Whether there is such a program.
    func quit(program: String) -> Bool {
        let known = sessions.values.filter { $0.program == program || $0.program.hasSuffix("/" + program) }
        for session in known {
            session.record.wasQuit = true
            save(session)
            for transfer in session.transfers.values { cancel(transfer, as: .quit) }
            if let process = session.client?.process, process > 1 { kill(process, SIGKILL) }
        }
        return !known.isEmpty
    }
}

extension Session {
    /// Whether the program can be had when it is not there.
    var canBeLaunched: Bool { settings.sendsLaunchEvents && settings.launch != nil && !record.wasQuit }

    /// Whether it should be started: everything is done, or something needs it.
    var isLaunchDue: Bool {
        guard client == nil, canBeLaunched, !isLaunched, !transfers.isEmpty else { return false }
        return transfers.values.contains { $0.question != nil } || transfers.values.allSatisfy { $0.isOver && $0.isEndDurable }
    }
}

/// The ways to start a program.
enum ProgramLauncher {
    /// - Returns: Nil, or why it cannot be started.
    static func start(_ launch: BackgroundSettings.Launch, identifier: String) -> String? {
        switch launch {
        case .arguments(let arguments, let directory):
            guard let program = arguments.first, program.hasPrefix("/") else { return "its path is not absolute" }
            return run(program, arguments, in: directory, ["URLSESSION_BACKGROUND_EVENTS": identifier])
        case .systemdUnit(let unit):
            return run("/usr/bin/systemctl", ["systemctl", "--user", "start", "--no-block", "--", unit], in: nil, [:])
        case .dBusName(let name):
            return run(
                "/usr/bin/dbus-send",
                [
                    "dbus-send", "--session", "--type=method_call", "--dest=org.freedesktop.DBus", "/org/freedesktop/DBus",
                    "org.freedesktop.DBus.StartServiceByName", "string:\(name)", "uint32:0",
                ], in: nil, [:])
        }
    }

    /// Leaves word for a program that has no variable of ours in its environment.
    static func announce(_ identifier: String, to program: String) {
        let path = DaemonPlace().events(for: program)
        let known = (try? String(contentsOfFile: path, encoding: .utf8))?.split(separator: "\n").map(String.init) ?? []
        guard !known.contains(identifier), !identifier.contains("\n"), known.count < 1000 else { return }
        try? (known + [identifier]).joined(separator: "\n").write(toFile: path, atomically: true, encoding: .utf8)
    }

    private static func run(
        _ program: String, _ arguments: [String], in directory: String?, _ additional: [String: String]
    ) -> String? {
        let environment = ProcessInfo.processInfo.environment.merging(additional) { $1 }
        let result = CStringList.with(arguments) { arguments in
            CStringList.with(environment.map { "\($0.key)=\($0.value)" }) { environment in
                cls_start_daemon(program, arguments, environment, directory ?? "/", nil)
            }
        }
        return result == 0 ? nil : "\(program): \(String(cString: strerror(-result)))"
    }
}
