// SPDX-License-Identifier: Apache-2.0

import BackgroundClient
import Foundation

/// The systemd units that start the daemon when a program connects to the daemon's socket, and at the user's first login.
struct ServiceUnits {
    static let socket = ServiceUnit.socket
    static let service = ServiceUnit.service
    /// The idle time in seconds after which the daemon exits; systemd starts it again for the next client.
    private static let idleLimit = 60
    /// The pause in seconds before systemd restarts a daemon that failed; the number of restarts is unlimited.
    private static let restartPause = 1
    /// The exit statuses after which only a program that connects makes systemd start the daemon again: wrong arguments, files
    /// that cannot be created or read, and a program that cannot run.
    private static let lastingFailures = [64, 73, 74] + ServiceUnit.unusableStatuses

    let folder: URL

    init() throws(ToolFailure) {
        let environment = ProcessInfo.processInfo.environment
        if let configured = environment["XDG_CONFIG_HOME"], configured.hasPrefix("/") {
            folder = URL(fileURLWithPath: configured, isDirectory: true).appendingPathComponent("systemd/user")
        } else if let home = environment["HOME"], home.hasPrefix("/") {
            folder = URL(fileURLWithPath: home, isDirectory: true).appendingPathComponent(".config/systemd/user")
        } else {
            throw ToolFailure(23, "cannot find the folder for systemd units: neither XDG_CONFIG_HOME nor HOME is set")
        }
    }

    func file(_ name: String) -> URL { folder.appendingPathComponent(name) }

    func write(program: String) throws(ToolFailure) {
        do {
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            try Self.socketText(canFlush: Self.canFlush).write(to: file(Self.socket), atomically: true, encoding: .utf8)
            try Self.serviceText(program).write(to: file(Self.service), atomically: true, encoding: .utf8)
        } catch {
            throw ToolFailure(23, "cannot write to \(folder.path): \(ToolFailure.reason(error))")
        }
    }

    /// The socket listens whatever happens to the service.
    ///
    /// By default, systemd closes the socket for good after twenty failed starts in two seconds. Without that limit, a connection
    /// that waits for a daemon that fails would start it again without end, so the limit is only removed if systemd rejects such
    /// connections.
    private static func socketText(canFlush: Bool) -> String {
        """
        [Unit]
        Description=Background transfers of programs: the socket

        [Socket]
        ListenStream=%t/urlloading/urlsessiond.socket
        SocketMode=0600
        DirectoryMode=0700
        \(canFlush ? "TriggerLimitIntervalSec=0\nFlushPending=yes\n" : "")
        [Install]
        WantedBy=sockets.target

        """
    }

    /// Whether systemd knows FlushPending=, since version 247; true if there is no systemd to ask.
    private static var canFlush: Bool {
        let (process, output) = (Process(), Pipe())
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["systemctl", "--version"]
        (process.standardOutput, process.standardError) = (output, FileHandle.nullDevice)
        guard (try? process.run()) != nil else { return true }
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        // "systemd 252 (252.38-1~deb12u1)"
        guard text.hasPrefix("systemd "), let version = Int(text.dropFirst(8).prefix { $0.isNumber }) else { return true }
        return version >= 247
    }

    private static func serviceText(_ program: String) -> String {
        """
        [Unit]
        Description=Background transfers of programs
        Requires=\(socket)
        After=\(socket)
        StartLimitIntervalSec=0

        [Service]
        Type=simple
        ExecStart=\(quoted(program)) --idle-exit \(idleLimit)
        Restart=on-failure
        RestartSec=\(restartPause)
        RestartPreventExitStatus=\(lastingFailures.map { String($0) }.joined(separator: " "))
        KillMode=process

        [Install]
        Also=\(socket)
        WantedBy=default.target

        """
    }

    /// Quotes a path for ExecStart= (systemd.service(5)).
    private static func quoted(_ path: String) -> String {
        var text = ""
        for character in path {
            switch character {
            case "\\", "\"": text += "\\\(character)"
            case "%", "$": text += "\(character)\(character)"
            default: text.append(character)
            }
        }
        return "\"\(text)\""
    }

    /// Runs `systemctl --user`, and shows its output to the user.
    ///
    /// - Returns: Whether systemctl succeeded.
    static func systemctl(_ arguments: [String]) -> Bool {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["systemctl", "--user"] + arguments
        guard (try? process.run()) != nil else { return false }
        process.waitUntilExit()
        return process.terminationStatus == 0
    }
}
