// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import BackgroundClient
import BackgroundProtocol
import Foundation
import LoadingModel

/// `urlsession background install`: makes systemd start the daemon.
struct BackgroundInstallCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "install",
        abstract: "Makes systemd start urlsessiond for this user, so that transfers continue after a reboot.",
        discussion: """
            Writes \(ServiceUnits.socket) and \(ServiceUnits.service) to XDG_CONFIG_HOME/systemd/user. They contain the path \
            of urlsessiond: install them again if it moves. Without them, the first program that needs urlsessiond starts it.
            """
    )

    @Flag(help: "Also enable and start them.")
    var now = false

    func run() async throws {
        guard let program = DaemonStarter.program() else {
            throw ToolFailure(
                7, "urlsessiond was not found beside this program, in libexec or in PATH; set URLSESSIOND to its path")
        }
        let units = try ServiceUnits()
        try units.write(program: URL(fileURLWithPath: program).standardizedFileURL.path)
        try StandardOutput.write([ServiceUnits.socket, ServiceUnits.service].map { units.file($0).path + "\n" }.joined())
        let names = [ServiceUnits.socket, ServiceUnits.service]
        guard now else {
            let lines = [["daemon-reload"], ["enable", "--now"] + names].map {
                "  systemctl --user \($0.joined(separator: " "))\n"
            }
            return StandardError.write("To enable and start them:\n\(lines.joined())")
        }
        // A daemon that a program started occupies the socket's path, so it is asked to exit.
        if let manager = ManagerConnection.open() { _ = try? await manager.ask(.handOver) }
        // Restart the units, because a daemon that a program started may have taken over the path of an existing systemd socket.
        for command in [["daemon-reload"], ["enable"] + names, ["restart"] + names] where !ServiceUnits.systemctl(command) {
            throw ToolFailure(1, "systemctl --user \(command.joined(separator: " ")) failed")
        }
        try await verifyThatDaemonResponds()
    }

    private func verifyThatDaemonResponds() async throws {
        var reason = "nothing listens at \(DaemonPlace().socket)"
        do throws(LoadError) {
            if let manager = ManagerConnection.open() {
                _ = try await manager.ask(.status)
                return
            }
        } catch {
            reason = TextTable.sanitized(error.message)
        }
        throw ToolFailure(
            7, "urlsessiond does not answer (\(reason)); see: journalctl --user -u \(ServiceUnits.service)")
    }
}

/// `urlsession background uninstall`: removes the systemd units of the daemon.
struct BackgroundUninstallCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "uninstall",
        abstract: "Undoes \"urlsession background install\".",
        discussion: "Transfers are kept, and continue when a program starts urlsessiond."
    )

    func run() throws {
        let units = try ServiceUnits()
        let names = [ServiceUnits.socket, ServiceUnits.service].filter {
            FileManager.default.fileExists(atPath: units.file($0).path)
        }
        guard !names.isEmpty else { return StandardError.print("there are no units in \(units.folder.path)") }
        if !ServiceUnits.systemctl(["disable", "--now"] + names) {
            StandardError.print("systemctl could not disable the units; removing them anyway")
        }
        for name in names where unlink(units.file(name).path) != 0 {
            throw ToolFailure(23, "cannot remove \(units.file(name).path): \(String(cString: strerror(errno)))")
        }
        _ = ServiceUnits.systemctl(["daemon-reload"])
    }
}
