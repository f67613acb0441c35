// SPDX-License-Identifier: Apache-2.0

import BackgroundProtocol
import CLoadingSystem
import LibC
import SystemThreads

/// The units of systemd's user manager that start the daemon when a program connects to the daemon's socket.
package enum ServiceUnit {
    package static let socket = "urlsessiond.socket"
    package static let service = "urlsessiond.service"
    /// How to show the daemon's log, which systemd stores.
    static let log = "journalctl --user -u \(service)"
    /// The exit statuses after which the program has to be repaired before it can run: 127 if a library is missing, 203 if systemd
    /// could not execute the program (systemd.exec(5)).
    package static let unusableStatuses = [127, 203]

    /// The timeout, in seconds, for systemctl.
    private static let patience = 1.0
    /// The maximum size of systemctl's output in bytes.
    private static let outputLimit = 16_384

    /// Why systemd could not start the daemon.
    package struct Failure: Hashable, Sendable {
        /// Whether the program has to be repaired; otherwise the next start may succeed.
        package let isFinal: Bool
        package let message: String

        /// - Parameters:
        ///   - properties: The output of `systemctl show` for the service.
        ///   - time: The time in seconds on the monotonic clock before which a failure is of no interest.
        package init?(properties: String, since time: Double) {
            var values: [Substring: Substring] = [:]
            for line in properties.split(separator: "\n") {
                let parts = line.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                if parts.count == 2 { values[parts[0]] = parts[1] }
            }
            let isRestarted = values["ActiveState"] == "activating" && values["SubState"]?.hasPrefix("auto-restart") == true
            guard values["ActiveState"] == "failed" || isRestarted,
                let microseconds = values["StateChangeTimestampMonotonic"].flatMap({ Double($0) }), microseconds >= time * 1e6
            else { return nil }
            let status = values["ExecMainStatus"].flatMap { Int($0) } ?? 0
            let isExit = values["Result"] == "exit-code"
            let reason: String
            switch values["Result"] {
            case "exit-code" where status == 203:
                let path = values["ExecStart"].flatMap(Self.path) ?? "the program"
                let error = access(path, X_OK) == 0 ? "cannot be executed" : String(cString: strerror(errno))
                reason = "203/EXEC: \(path): \(error)"
            case "exit-code": reason = "status \(status)"
            case "signal", "core-dump": reason = "signal \(status)"
            case let result: reason = result.map { String($0) } ?? "unknown"
            }
            isFinal = isExit && ServiceUnit.unusableStatuses.contains(status)
            let isGone = isExit && status == 203
            message =
                "\(service) failed (\(reason)); "
                + (isGone ? #"if urlsessiond was moved, run "urlsession background install --now" again"# : "see: \(log)")
        }

        /// Returns the program in the value of the property ExecStart: `{ path=/usr/libexec/urlsessiond ; argv[]=…`.
        private static func path(in command: Substring) -> String? {
            guard let start = command.firstRange(of: "path=")?.upperBound else { return nil }
            let rest = command[start...]
            return rest.firstRange(of: " ;").map { String(rest[..<$0.lowerBound]) }
        }
    }

    /// Asks systemd whether it could not start the daemon that listens in a folder.
    ///
    /// - Parameters:
    ///   - socket: The path of the daemon's socket.
    ///   - time: The time on the monitor's clock before which a failure is of no interest.
    /// - Returns: The failure; nil if the service has not failed since then, or if there is no systemd to ask.
    static func failure(ofSocket socket: String, since time: Double) -> Failure? {
        let end = "/urlloading/" + Self.socket
        guard socket.hasSuffix(end) else { return nil }
        return properties(in: String(socket.dropLast(end.count))).flatMap { Failure(properties: $0, since: time) }
    }

    /// Returns the output of `systemctl show` for the service.
    private static func properties(in runtimeFolder: String) -> String? {
        let environment = DaemonStarter.environment
        let folders = (environment["PATH"] ?? "").split(separator: ":").filter { $0.hasPrefix("/") } + ["/usr/bin", "/bin"]
        guard let program = folders.lazy.map({ $0 + "/systemctl" }).first(where: DaemonStarter.isProgram) else { return nil }
        let names = "ActiveState,SubState,StateChangeTimestampMonotonic,Result,ExecMainStatus,ExecStart"
        let arguments = [program, "--user", "show", "--property=" + names, "--", service]
        let variables = environment.filter { ["HOME", "PATH"].contains($0.key) }
            .merging(["XDG_RUNTIME_DIR": runtimeFolder, "LC_ALL": "C"]) { $1 }
        var output: CInt = -1
        // A child of this process would disturb a program that waits for its children.
        let result = CStringList.with(arguments) { arguments in
            CStringList.with(variables.map { "\($0.key)=\($0.value)" }) { environment in
                cls_start_daemon(program, arguments, environment, "/", nil, &output, nil)
            }
        }
        guard result == 0 else { return nil }
        // A systemctl that is too late ends when it writes to the closed pipe.
        defer { _ = cls_close(output) }
        return text(from: output)
    }

    private static func text(from descriptor: CInt) -> String? {
        let end = Monitor.clock + patience
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 4096)
        while bytes.count < outputLimit {
            let rest = end - Monitor.clock
            guard rest > 0, cls_wait_any([descriptor], 1, CInt(rest * 1000) + 1) != 0 else { return nil }
            let count = cls_read_some(descriptor, &piece, piece.count)
            if count == -Int64(EAGAIN) { continue }
            guard count > 0 else { break }
            bytes += piece.prefix(Int(count))
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
