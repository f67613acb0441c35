//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import ArgumentParser
import BackgroundClient
import BackgroundProtocol
import Foundation
import LoadingModel

/// `urlsession background install`: makes systemd start the daemon.
struct BackgroundInstallCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "install",
        abstract: "Has systemd start urlsessiond for this user, so that transfers go on after a restart of the machine.",
        discussion: """
            Writes \(ServiceUnits.socket) and \(ServiceUnits.service) to XDG_CONFIG_HOME/systemd/user. They have the program's path: \
            install them again where it moves. Without them urlsessiond is started by the first program that wants it.
            """
    )

    @Flag(help: "Enable and start them, too.")
    var now = false

    func run() async throws {
        guard let program = DaemonStarter.program() else {
            throw ToolFailure(
                7, "urlsessiond was not found beside this program, in libexec or in PATH; say where it is by URLSESSIOND")
        }
        let units = try ServiceUnits()
        try units.write(program: URL(fileURLWithPath: program).standardizedFileURL.path)
        try StandardOutput.write([ServiceUnits.socket, ServiceUnits.service].map { units.file($0).path + "\n" }.joined())
        let names = [ServiceUnits.socket, ServiceUnits.service]
        guard now else {
            let lines = [["daemon-reload"], ["enable", "--now"] + names].map {
                "  systemctl --user \($0.joined(separator: " "))\n"
            }
            return StandardError.write("To have them take effect, now and from now on:\n\(lines.joined())")
        }
        // A daemon that a program started occupies the socket's path.
        if let manager = ManagerConnection.open() { _ = try? await manager.ask(.handOver) }
        // Restart: an existing systemd socket may have lost its path to that daemon.
        for command in [["daemon-reload"], ["enable"] + names, ["restart"] + names] where !ServiceUnits.systemctl(command) {
            throw ToolFailure(1, "systemctl --user \(command.joined(separator: " ")) failed")
        }
        try await seeThatItAnswers()
    }

    private func seeThatItAnswers() async throws {
        var reason = "none listens at \(DaemonPlace().socket)"
        do throws(LoadError) {
            if let manager = ManagerConnection.open() {
                _ = try await manager.ask(.status)
                return
            }
        } catch {
            reason = TextTable.harmless(error.message)
        }
        throw ToolFailure(
            7, "urlsessiond does not answer (\(reason)); see: journalctl --user -u \(ServiceUnits.service)")
    }
}

/// `urlsession background uninstall`.
struct BackgroundUninstallCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "uninstall",
        abstract: "Takes back what \"urlsession background install\" did.",
        discussion: "Transfers stay, and go on when a program starts urlsessiond."
    )

    func run() throws {
        let units = try ServiceUnits()
        let names = [ServiceUnits.socket, ServiceUnits.service].filter {
            FileManager.default.fileExists(atPath: units.file($0).path)
        }
        guard !names.isEmpty else { return StandardError.print("there are no units in \(units.folder.path)") }
        if !ServiceUnits.systemctl(["disable", "--now"] + names) {
            StandardError.print("systemctl could not disable them; they are removed all the same")
        }
        for name in names where unlink(units.file(name).path) != 0 {
            throw ToolFailure(23, "cannot remove \(units.file(name).path): \(String(cString: strerror(errno)))")
        }
        _ = ServiceUnits.systemctl(["daemon-reload"])
    }
}
