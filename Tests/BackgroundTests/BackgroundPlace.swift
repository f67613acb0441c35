// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

#if canImport(Glibc)
import Glibc
#endif

/// A user that exists for one test: folders, a daemon, and programs that share it.
///
/// Each program is this test program under another name, in a folder with the daemon. All processes that run from that folder
/// belong to the test, and are killed when it ends.
final class BackgroundPlace: Sendable {
    /// The path is short because paths of sockets are limited.
    let home: URL
    let bin: URL
    let journal: ProgramJournal
    private let daemonVariables: [String: String]

    init(daemonVariables: [String: String] = [:]) throws {
        let files = FileManager.default
        let name = String(UUID().uuidString.prefix(8)).lowercased()
        home = URL(fileURLWithPath: "/tmp/bg-\(name)")
        let own = try SeparateProcess.executable()
        bin = own.deletingLastPathComponent().appendingPathComponent("background-places/\(name)")
        self.daemonVariables = daemonVariables
        for folder in ["run", "state", "data", "cache", "out", "tmp"] {
            try files.createDirectory(
                at: home.appendingPathComponent(folder), withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700]
            )
        }
        try files.createDirectory(at: bin, withIntermediateDirectories: true)
        journal = try ProgramJournal(home.appendingPathComponent("journal"))
        try put(own.deletingLastPathComponent().appendingPathComponent("urlsessiond"), "urlsessiond")
        guard !daemonVariables.isEmpty else { return }
        // Another process writes the script, because a new child process may inherit a file that this process has open for
        // writing.
        let variables = daemonVariables.map { "\($0.key)='\($0.value)'" }.joined(separator: " ")
        let script = "#!/bin/sh\nexec env \(variables) '\(bin.path)/urlsessiond' \"$@\"\n"
        try ServerProcess.run(
            ServerProcess.Command(
                ["/bin/sh", "-c", "printf %s \"$1\" > \"$2\" && chmod 755 \"$2\"", "sh", script, home.path + "/start"],
                output: .nothing))
    }

    private func put(_ file: URL, _ name: String) throws {
        let target = bin.appendingPathComponent(name)
        guard !FileManager.default.fileExists(atPath: target.path) else { return }
        do {
            try FileManager.default.linkItem(at: file, to: target)
        } catch {
            try FileManager.default.copyItem(at: file, to: target)
        }
    }

    /// The lines that all programs have written.
    var lines: [String] { journal.lines.read { $0.map { "\($0.label): \($0.text)" } } }

    // MARK: Files

    /// Where programs put downloaded files.
    var out: URL { home.appendingPathComponent("out") }

    func downloaded(_ name: String) throws -> [UInt8] { Array(try Data(contentsOf: out.appendingPathComponent(name))) }

    @discardableResult
    func write(_ bytes: some Sequence<UInt8>, to name: String) throws -> URL {
        let file = home.appendingPathComponent(name)
        try Data(bytes).write(to: file)
        return file
    }

    private var spool: URL {
        let state = daemonVariables["XDG_STATE_HOME"] ?? home.path + "/state"
        let named = daemonVariables["URLSESSIOND_SPOOL"].map { $0 + "/urlloading-spool" }
        return URL(fileURLWithPath: named ?? state + "/urlloading/background/spool")
    }

    /// The files of transfers in the daemon's spool.
    var spooled: [String] {
        (FileManager.default.enumerator(atPath: spool.path)?.allObjects ?? []).compactMap { $0 as? String }.filter {
            $0.contains("/")
        }
    }

    /// The total length of the files of transfers in the spool.
    var spooledBytes: Int {
        spooled.reduce(0) { sum, name in
            let facts = try? FileManager.default.attributesOfItem(atPath: spool.appendingPathComponent(name).path)
            return sum + ((facts?[.size] as? NSNumber)?.intValue ?? 0)
        }
    }

    /// Every file that the daemon and programs store, except downloads.
    func kept() throws -> [(path: String, bytes: Data)] {
        var kept: [(path: String, bytes: Data)] = []
        for folder in ["state", "data", "cache", "tmp", "run"].map({ home.appendingPathComponent($0) }) {
            for case let file as URL in FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil) ?? .init() {
                guard try file.resourceValues(forKeys: [.isRegularFileKey]).isRegularFile == true else { continue }
                kept.append((file.path, try Data(contentsOf: file)))
            }
        }
        return kept
    }

    // MARK: Programs

    private func variables(_ label: String) -> [String: String] {
        var variables: [String: String] = [
            "HOME": home.path, "XDG_RUNTIME_DIR": home.path + "/run", "XDG_STATE_HOME": home.path + "/state",
            "XDG_DATA_HOME": home.path + "/data", "XDG_CACHE_HOME": home.path + "/cache", "TMPDIR": home.path + "/tmp",
            "DBUS_SESSION_BUS_ADDRESS": "unix:path=/nonexistent",
            "URLSESSIOND": daemonVariables.isEmpty ? bin.path + "/urlsessiond" : home.path + "/start",
            ProgramScript.labelKey: label, ProgramScript.journalKey: home.path + "/journal", ProgramScript.folderKey: out.path,
            ProgramScript.launchKey: home.path + "/launch",
        ]
        for (key, value) in SeparateProcess.command("BackgroundProgram", by: bin).variables { variables[key] = value }
        return variables
    }

    /// Starts a program that follows orders; the label identifies this one start.
    ///
    /// A program is identified by the name of its file. `launch` is the script that the program follows when the daemon starts it
    /// for events of its sessions; the label is then `launched`. `launchWrapper` is a command that then runs the program.
    /// `wrapper` is a command that runs the program now, and so also runs the daemon that the program starts.
    func start(
        _ label: String, as file: String = "program", launch: [String] = [], launchWrapper: [String] = [],
        launchVariables: [String: String] = [:],
        variables additional: [String: String] = [:], wrapper: [String] = []
    ) throws -> ProgramHandle {
        try put(SeparateProcess.executable(), file)
        let fifo = home.appendingPathComponent("orders-\(label)")
        guard mkfifo(fifo.path, 0o600) == 0 else { throw PlaceFailure("mkfifo: errno \(errno)") }
        // A pipe opened for reading and writing does not wait for the other end.
        let orders = open(fifo.path, O_RDWR | O_CLOEXEC)
        guard orders >= 0 else { throw PlaceFailure("\(fifo.path): errno \(errno)") }
        let command = SeparateProcess.command("BackgroundProgram", by: bin.appendingPathComponent(file))
        let environment = ProcessInfo.processInfo.environment.merging(variables(label)) { $1 }.merging(additional) { $1 }
        if !launch.isEmpty {
            let changed = variables("launched").merging([ProgramScript.scriptKey: launch.joined(separator: ";")]) { $1 }
                .merging(launchVariables) { $1 }
            let arguments = launchWrapper + ["/usr/bin/env"] + changed.map { "\($0.key)=\($0.value)" } + command.arguments
            try Data(arguments.joined(separator: "\u{1}").utf8).write(to: home.appendingPathComponent("launch"))
        }
        let process = try ServerProcess.start(
            ServerProcess.Command(
                wrapper + command.arguments, environment: environment, input: fifo,
                output: home.appendingPathComponent("\(label).log")))
        return ProgramHandle(label: label, process: process, orders: orders, journal: journal)
    }

    /// The user's tool, which sees the transfers of all programs.
    func manager() throws -> ProgramHandle { try start("manager", as: "urlsession") }

    /// Gives a program another runtime folder, like one that was started by cron.
    func otherRuntimeEnvironment() throws -> [String: String] {
        let folder = home.appendingPathComponent("run2").path
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        return ["XDG_RUNTIME_DIR": folder]
    }

    /// The program that the daemon starts.
    var launched: ProgramHandle { ProgramHandle(label: "launched", process: nil, orders: -1, journal: journal) }

    // MARK: Processes

    /// The processes that run a file of the place.
    private func processes(of file: String? = nil) -> [pid_t] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return names.compactMap { pid_t($0) }.filter { process in
            guard let path = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\(process)/exe") else {
                return false
            }
            guard let file else { return path.hasPrefix(bin.path + "/") }
            return path == bin.path + "/" + file || path == bin.path + "/" + file + " (deleted)"
        }
    }

    var daemons: [pid_t] { processes(of: "urlsessiond") }

    /// After this, no daemon can be started.
    func removeDaemon() throws { try FileManager.default.removeItem(at: bin.appendingPathComponent("urlsessiond")) }

    /// After this, a daemon can be started again.
    func bringDaemon() throws {
        try put(SeparateProcess.executable().deletingLastPathComponent().appendingPathComponent("urlsessiond"), "urlsessiond")
    }

    /// Starts a daemon directly.
    func startDaemon(_ arguments: [String]) throws -> ServerProcess {
        try ServerProcess.start(
            ServerProcess.Command(
                [bin.path + "/urlsessiond"] + arguments, environment: variables("daemon"),
                output: home.appendingPathComponent("daemon-\(UUID().uuidString).log")))
    }

    /// Starts a command with the place's environment, and passes its output to `hear`.
    func run(_ arguments: [String], _ hear: @escaping @Sendable (String) -> Void) throws -> ServerProcess {
        try ServerProcess.start(
            ServerProcess.Command(
                arguments, environment: variables("command"), output: .pipe { hear(String(decoding: $0, as: UTF8.self)) }))
    }

    /// Kills the daemon, as the kernel does when memory runs out.
    func killDaemon() { for process in daemons { kill(process, SIGKILL) } }

    /// Kills the daemon and all programs, as a loss of power does, and returns when they are gone.
    func killAll() {
        while case let left = processes(), !left.isEmpty {
            for process in left { kill(process, SIGKILL) }
            sched_yield()
        }
    }

    /// Stops the daemon as the system does, and returns when it is gone.
    ///
    /// There must be no program that would start another one.
    private func stopDaemon() async {
        let daemons = daemons
        for process in processes() where !daemons.contains(process) { kill(process, SIGKILL) }
        for process in daemons { kill(process, SIGTERM) }
        guard !daemons.isEmpty else { return }
        let lock = home.path + "/run/urlloading/urlsessiond.lock"
        let isOver = Watched(false)
        Thread.detachNewThread {
            // The daemon holds this lock for its lifetime.
            let descriptor = open(lock, O_RDWR | O_CLOEXEC)
            if descriptor >= 0 {
                while flock(descriptor, LOCK_EX) != 0, errno == EINTR {}
                close(descriptor)
            }
            isOver.change { $0 = true }
        }
        try? await isOver.value { $0 ? () : nil }
    }

    /// The files of transfers that the daemon leaves when it exits.
    fileprivate func leftovers() async -> [String] {
        // Once the daemon has exited, all its work is finished.
        await stopDaemon()
        return spooled
    }

    fileprivate func end() {
        for process in processes() { kill(process, SIGKILL) }
        journal.close()
        try? FileManager.default.removeItem(at: bin)
        try? FileManager.default.removeItem(at: home)
        if let named = daemonVariables["URLSESSIOND_SPOOL"] { try? FileManager.default.removeItem(atPath: named) }
    }

    /// Information for the report of a failure.
    var report: String {
        let log = (try? String(contentsOfFile: home.path + "/run/urlloading/urlsessiond.log", encoding: .utf8)) ?? ""
        let outputs = ((try? FileManager.default.contentsOfDirectory(atPath: home.path)) ?? []).filter { $0.hasSuffix(".log") }
            .map { (try? String(contentsOfFile: home.path + "/" + $0, encoding: .utf8)) ?? "" }.filter { $0.contains("✘") }
        return (lines + ["daemon: " + log] + outputs.map { String($0.suffix(2000)) }).joined(separator: "\n")
    }
}

/// Runs a test in a place of its own, and expects that the daemon leaves no files of transfers.
func withBackgroundPlace(
    daemonVariables: [String: String] = [:], leaves: Int? = 0, sourceLocation: SourceLocation = #_sourceLocation,
    test: (BackgroundPlace) async throws -> Void
) async throws {
    let place = try BackgroundPlace(daemonVariables: daemonVariables)
    defer { place.end() }
    do {
        try await test(place)
        let leftovers = await place.leftovers()
        #expect(leaves == nil || leftovers.count == leaves, "\(leftovers)\n\(place.report)", sourceLocation: sourceLocation)
    } catch {
        Issue.record("\(error)\n\(place.report)", sourceLocation: sourceLocation)
        throw error
    }
}

extension ScriptedReply {
    /// The same reply, preceded by an effect.
    func after(_ effect: SocketEffect) -> ScriptedReply { ScriptedReply([effect] + effects) }
}
