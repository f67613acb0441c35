// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import BackgroundClient
import BackgroundProtocol
import Foundation

/// `urlsession background watch`: shows the progress of transfers.
struct BackgroundWatchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch",
        abstract: "Shows the progress of the background transfers of all programs, until Ctrl-C.",
        discussion:
            "On a terminal, each transfer has a progress bar, and running ones come first; elsewhere, each change is a line."
    )

    @Flag(name: .customLong("until-done"), help: "Exit when no transfers are left.")
    var untilDone = false

    func run() async throws {
        guard let manager = try ManagerConnection.found() else { return StandardError.print(ToolFailure.noDaemon.message ?? "") }
        let screen = TransferScreen(.standardOutput)
        SignalActions.set(SIGINT) {
            screen.finish()
            Foundation.exit(0)
        }
        let own = DaemonStarter.executable()
        // The first pages contain the complete list; the last of them is marked.
        var isListed = false
        for await page in manager.reports(.watch) {
            let isDone = screen.update(page.reports, own: own)
            isListed = isListed || page.isLast
            if untilDone, isListed, isDone { return screen.finish() }
        }
        screen.finish()
        throw ToolFailure(7, "the connection to urlsessiond was lost")
    }
}
