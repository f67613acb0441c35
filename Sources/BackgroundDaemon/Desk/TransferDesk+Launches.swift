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
    /// Starts the session's program where it is gone and has something to hear or to decide.
    ///
    /// How often that may be is the ``LaunchLimit``'s to say.
    func considerLaunch(_ session: Session) {
        guard session.isLaunchDue, !isClosing, let launch = session.settings.launch else { return }
        let program = session.program
        let all = sessions.values.filter { $0.program == program }
        var limit = session.record.launches
        let wait = limit.start(now, patience: options.launchPatience)
        guard wait == nil, !all.contains(where: \.isLaunched) else {
            // One start at a time: the session has its turn when the program has dealt with the others, or that took too long.
            let seconds = max(wait ?? 1, 0.01)
            if session.launchTimer == nil {
                journal.say(
                    .info, "\(program) is not started for \(session.identifier) before \(Int(seconds.rounded(.up))) s are over")
            }
            return planLaunch(of: session, after: seconds)
        }
        session.launchTimer?.cancel()
        session.launchTimer = nil
        // For all of its sessions that it would be started for in the same way.
        let due = all.filter { $0.isLaunchDue && $0.settings.launch == launch }.sorted { $0.id < $1.id }
        for session in all {
            session.record.launches = limit
            save(session)
        }
        for session in due { session.isLaunched = true }
        let identifiers = due.map(\.identifier)
        journal.say(.notice, "starting \(program) for its session \(identifiers.joined(separator: ", "))")
        launches.run { [journal] in
            if case .arguments = launch {} else { ProgramLauncher.announce(identifiers, to: program) }
            if let trouble = ProgramLauncher.start(launch, identifiers: identifiers) {
                journal.say(.error, "\(program) cannot be started: \(trouble)")
            }
        }
        // A program that has not dealt with its events by then counts as hung, or as never come.
        let ids = due.map(\.id)
        enter(after: options.launchPatience) { desk in
            for id in ids {
                guard let session = desk.sessionsByID[id], session.isLaunched else { continue }
                session.isLaunched = false
                if session.client == nil { desk.considerLaunch(session) }
            }
        }
    }

    func planLaunch(of session: Session, after seconds: Double) {
        let id = session.id
        session.launchTimer?.cancel()
        session.launchTimer = executor.loop.scheduleTask(in: .nanoseconds(Int64(seconds * 1e9))) {
            self.assumeIsolated { desk in
                if let session = desk.sessionsByID[id] { desk.considerLaunch(session) }
            }
        }
    }

    /// As if the user ended a program by force.
    ///
    /// - Parameters:
    ///   - program: Its file, or the file's name.
    ///   - done: Called when that is durable.
    /// - Returns: Whether there is such a program.
    func quit(program: String, done: @escaping @Sendable () -> Void) -> Bool {
        let known = sessions.values.filter { $0.program == program || $0.program.hasSuffix("/" + program) }
        var changes: [TransferStore.Change] = []
        for session in known {
            session.record.wasQuit = true
            if let client = session.client, !client.isPeerGone {
                session.record.doomed = mark(of: client.process)
                // It hears no more of anything.
                session.takesEvents = false
            }
            changes.append(.saveSession(session.row))
            for transfer in session.transfers.values where !transfer.isOver {
                cancel(transfer, as: .quit)
                changes.append(.setState(transfer.number, transfer.record.encoded))
            }
        }
        guard !known.isEmpty else { return false }
        let ids = known.map(\.id)
        // Not before: a program that is ended, and whose transfers go on, was not quit.
        store.apply(changes) { _ in
            self.enter { desk in
                for id in ids { desk.endProgram(of: id) }
                done()
            }
        }
        return true
    }

    private func endProgram(of id: Int64) {
        guard let session = sessionsByID[id], let client = session.client, let doomed = session.record.doomed,
            doomed == mark(of: client.process)
        else { return }
        kill(client.process, SIGKILL)
    }

    /// Ends a process that was to end with its program, where the daemon that was told so did not live to do it.
    func endIfDoomed(_ connection: ClientConnection) -> Bool {
        let doomed = sessions.values.compactMap { $0.program == connection.program ? $0.record.doomed : nil }
        guard !doomed.isEmpty, let mark = mark(of: connection.process), doomed.contains(mark) else { return false }
        kill(connection.process, SIGKILL)
        return true
    }

    /// Which of all the processes that ever had its number one is.
    private func mark(of process: Int32) -> String? {
        guard let text = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8), let end = text.lastIndex(of: ")")
        else { return nil }
        // When it started is the 22nd field, and its name, which may have spaces, the second (proc_pid_stat(5)).
        let fields = text[end...].split(separator: " ")
        return fields.count > 20 ? "\(spool.bootID) \(process) \(fields[20])" : nil
    }
}

extension Session {
    /// Whether the program can be had when it is not there.
    var canBeLaunched: Bool { settings.sendsLaunchEvents && settings.launch != nil && !record.wasQuit }

    /// Whether it should be started: everything is done, or something needs it.
    var isLaunchDue: Bool {
        guard client == nil, canBeLaunched, !isLaunched, !transfers.isEmpty else { return false }
        return askingCount > 0 || endedCount == transfers.count
    }
}

/// The ways to start a program.
enum ProgramLauncher {
    /// - Returns: Nil, or why it cannot be started.
    static func start(_ launch: BackgroundSettings.Launch, identifiers: [String]) -> String? {
        switch launch {
        case .arguments(let arguments, let directory):
            guard let program = arguments.first, program.hasPrefix("/") else { return "its path is not absolute" }
            return run(program, arguments, in: directory, ["URLSESSION_BACKGROUND_EVENTS": identifiers.joined(separator: "\n")])
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
    static func announce(_ identifiers: [String], to program: String) {
        let path = DaemonPlace().events(for: program)
        let known = (try? String(contentsOfFile: path, encoding: .utf8))?.split(separator: "\n").map(String.init) ?? []
        let new = identifiers.filter { !known.contains($0) && !$0.contains("\n") }
        guard !new.isEmpty, known.count < 1000 else { return }
        try? (known + new).joined(separator: "\n").write(toFile: path, atomically: true, encoding: .utf8)
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
