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
    /// Seconds after which a quit that the disk did not take is given to it again.
    private static let quitPause = 5.0

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
        guard !known.isEmpty else { return false }
        var doomed: Set<String> = []
        for session in known {
            session.record.wasQuit = true
            for transfer in session.transfers.values where !transfer.isOver && transfer.record.givenUp == nil {
                transfer.record.givenUp = .quit
            }
            guard let client = session.client, !client.isPeerGone, let mark = mark(of: client.process) else { continue }
            session.record.doomed = mark
            doomed.insert(mark)
            // It hears no more of anything, and nothing that it says counts.
            session.takesEvents = false
            for connection in connections.values where connection.process == client.process { connection.isDoomed = true }
        }
        undurableQuits.formUnion(doomed)
        // Before the ends of them all, which may be more than the store takes at a time.
        keepQuit(of: known.map(\.id), doomed, done)
        for session in known {
            for transfer in session.transfers.values where !transfer.isOver { cancel(transfer, as: .quit) }
        }
        return true
    }

    /// Ends the processes when their quit is durable, and tries until it is: where one is ended and its transfers go on, it was not quit.
    private func keepQuit(of ids: [Int64], _ doomed: Set<String>, _ done: @escaping @Sendable () -> Void) {
        let known = ids.compactMap { sessionsByID[$0] }
        let givenUp = known.flatMap { $0.transfers.values.filter { $0.record.givenUp != nil } }
        // Their ends are being kept already, and say the same.
        let ending = givenUp.filter { $0.isOver && $0.isAccepted && !$0.isEndDurable }.map(\.number)
        var changes = known.map { TransferStore.Change.saveSession($0.row) }
        for transfer in givenUp where !transfer.isOver {
            let change = TransferStore.Change.setState(transfer.number, transfer.record.encoded)
            // One that is not accepted has a row that is on its way, or none, and is then given one that says so.
            if transfer.isAccepted { changes.append(change) } else { store.apply([change]) { _ in } }
        }
        store.apply(changes) { result in
            self.enter { desk in
                desk.noteStorage(result)
                switch result {
                case .success where !ending.contains(where: { desk.transfers[$0]?.isEndDurable == false }):
                    desk.undurableQuits.subtract(doomed)
                    desk.endProcesses(doomed)
                    done()
                case .failure(.closed): break
                case .success, .failure: desk.enter(after: Self.quitPause) { $0.keepQuit(of: ids, doomed, done) }
                }
            }
        }
    }

    private func endProcesses(_ doomed: Set<String>) {
        for process in Set(connections.values.filter(\.isDoomed).map(\.process)) {
            if let mark = mark(of: process), doomed.contains(mark) { kill(process, SIGKILL) }
        }
    }

    /// Ends a process that was to end with its program, where the daemon that was told so did not live to do it.
    ///
    /// - Returns: Whether it is to end; not before that is durable.
    func endIfDoomed(_ connection: ClientConnection) -> Bool {
        let known = sessions.values.compactMap { $0.program == connection.program ? $0.record.doomed : nil }
        let doomed = undurableQuits.union(known)
        guard !doomed.isEmpty, let mark = mark(of: connection.process), doomed.contains(mark) else { return false }
        connection.isDoomed = true
        guard !undurableQuits.contains(mark) else { return true }
        kill(connection.process, SIGKILL)
        connection.close()
        return true
    }

    /// Which of all the processes that ever had its number one is.
    private func mark(of process: Int32) -> String? {
        // When it started is the 22nd field. Its name, the second, is cut off after 15 bytes, which need not be text (proc_pid_stat(5)).
        guard let facts = FileManager.default.contents(atPath: "/proc/\(process)/stat"),
            let end = facts.lastIndex(of: UInt8(ascii: ")"))
        else { return nil }
        let fields = String(decoding: facts[end...], as: UTF8.self).split(separator: " ")
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
