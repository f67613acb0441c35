//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import ArgumentParser

/// `urlsession background`: transfers that urlsessiond carries out, those of the tool and of all other programs.
struct BackgroundCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "background",
        abstract: "Orders, shows and drives transfers that go on when the program that ordered them has ended.",
        discussion: """
            The daemon urlsessiond carries them out, for all programs of this user, and is started where none runs. Numbers are those \
            that "urlsession background list" shows.
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
