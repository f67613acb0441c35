// SPDX-License-Identifier: Apache-2.0

import ArgumentParser

/// `urlsession cookies`: manages the stored cookies, which the other commands send.
struct CookiesCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cookies",
        abstract: "Shows, deletes, imports and exports the stored cookies.",
        discussion:
            "They are stored in XDG_DATA_HOME, accessible only to their owner. Session cookies end with the run that received them.",
        subcommands: [
            CookieListCommand.self, CookieDeleteCommand.self, CookieImportCommand.self, CookieExportCommand.self,
        ]
    )
}
