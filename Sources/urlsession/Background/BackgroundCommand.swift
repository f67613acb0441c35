// SPDX-License-Identifier: Apache-2.0

import ArgumentParser

/// `urlsession background`: manages the transfers that urlsessiond carries out for the tool and for all other programs.
struct BackgroundCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "background",
        abstract: "Starts, shows and controls transfers that continue after the program that started them has exited.",
        discussion: """
            The daemon urlsessiond performs the transfers of all programs of this user, and is started if it is not running. \
            "urlsession background list" shows the transfers' numbers.
            """,
        subcommands: [
            BackgroundDownloadCommand.self, BackgroundUploadCommand.self, BackgroundListCommand.self, BackgroundWatchCommand.self,
            BackgroundPauseCommand.self, BackgroundResumeCommand.self, BackgroundCancelCommand.self, BackgroundQuitCommand.self,
            BackgroundScheduleCommand.self, BackgroundLogCommand.self, BackgroundInstallCommand.self,
            BackgroundUninstallCommand.self,
            BackgroundCollectCommand.self,
        ]
    )
}
