// SPDX-License-Identifier: Apache-2.0

import BackgroundProtocol
import CLoadingSystem
import FoundationEssentials
import LibC

/// Launches programs.
enum ProgramLauncher {
    /// How many seconds a service manager or a bus may take to report that it cannot start something.
    private static let patience = 10
    /// The maximum size of a command's output in bytes.
    private static let textLimit = 1000

    enum Result {
        /// The program was launched; the descriptor is readable when the process has ended. Nil if its end cannot be watched.
        case started(process: CInt?)
        /// The program has ended already.
        case ended
        /// The program cannot be launched, for this reason.
        case failed(String)
    }

    /// Waits until a launched process has ended, and closes its descriptor.
    ///
    /// - Returns: Whether the process has ended within this many seconds.
    static func waitForEnd(of process: CInt, seconds: Double) -> Bool {
        defer { _ = cls_close(process) }
        return cls_wait_any([process], 1, CInt(min(seconds, 86_400) * 1000)) != 0
    }

    /// Launches a program; may block for some seconds on a service manager or a bus.
    ///
    /// - Returns: How the launch went.
    static func start(_ launch: BackgroundSettings.Launch, identifiers: [String]) -> Result {
        let trouble: String?
        switch launch {
        case .arguments(let arguments, let directory):
            guard let program = arguments.first, program.hasPrefix("/") else { return .failed("its path is not absolute") }
            return run(program, arguments, in: directory, ["URLSESSION_BACKGROUND_EVENTS": identifiers.joined(separator: "\n")])
        case .systemdUnit(let unit):
            trouble = command("/usr/bin/systemctl", ["systemctl", "--user", "start", "--", unit])
        case .dBusName(let name):
            trouble = command(
                "/usr/bin/dbus-send",
                [
                    "dbus-send", "--session", "--print-reply", "--type=method_call", "--dest=org.freedesktop.DBus",
                    "/org/freedesktop/DBus",
                    "org.freedesktop.DBus.StartServiceByName", "string:\(name)", "uint32:0",
                ])
        }
        return trouble.map { .failed($0) } ?? .started(process: nil)
    }

    /// Stores the identifiers for a program that does not get them in its environment.
    static func announce(_ identifiers: [String], to program: String) {
        for path in DaemonPlace().events(for: program) {
            let text = SmallFile.contents(of: path, limit: eventsLimit).map { String(decoding: $0, as: UTF8.self) } ?? ""
            let known = text.split(separator: "\n").map(String.init)
            let new = identifiers.filter { !known.contains($0) && !$0.contains("\n") }
            guard !new.isEmpty, known.count < 1000 else { continue }
            SmallFile.replace(path, with: Array((known + new).joined(separator: "\n").utf8))
        }
    }

    /// The maximum size of a list of sessions in bytes: an identifier has at most 1,024.
    private static let eventsLimit = 2 << 20

    /// Runs a command; a command that takes longer than ``patience`` is assumed to succeed.
    private static func command(_ program: String, _ arguments: [String]) -> String? {
        let environment = ProcessInfo.processInfo.environment
        return withUnsafeTemporaryAllocation(of: CChar.self, capacity: textLimit) { said in
            guard let start = said.baseAddress else { return nil }
            let result = CStringList.with(arguments) { arguments in
                CStringList.with(environment.map { "\($0.key)=\($0.value)" }) { environment in
                    cls_run_command(program, arguments, environment, CInt(patience), start, said.count)
                }
            }
            guard result != 0, result != -ETIMEDOUT else { return nil }
            guard result > 0 else { return "\(program): \(String(cString: strerror(-result)))" }
            let text = String(cString: start).split(whereSeparator: \.isNewline).joined(separator: " ")
            return "\(arguments[0]) ended with \(result)" + (text.isEmpty ? "" : ": \(text)")
        }
    }

    private static func run(
        _ program: String, _ arguments: [String], in directory: String?, _ additional: [String: String]
    ) -> Result {
        var process: CInt = -1
        let environment = ProcessInfo.processInfo.environment.merging(additional) { $1 }
        let result = CStringList.with(arguments) { arguments in
            CStringList.with(environment.map { "\($0.key)=\($0.value)" }) { environment in
                cls_start_daemon(program, arguments, environment, directory ?? "/", nil, nil, &process)
            }
        }
        guard result == 0 else { return .failed("\(program): \(String(cString: strerror(-result)))") }
        return process == -ESRCH ? .ended : .started(process: process >= 0 ? process : nil)
    }
}
