//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import ArgumentParser
import BackgroundProtocol

/// `urlsession background pause`.
struct BackgroundPauseCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pause",
        abstract: "Holds transfers until they are resumed.",
        discussion: "What has come is kept, where the server lets them be gone on with."
    )

    @OptionGroup var selection: TransferSelection

    func run() async throws { try await selection.ask { .pause($0) } }
}

/// `urlsession background resume`.
struct BackgroundResumeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "resume",
        abstract: "Goes on with transfers that were paused."
    )

    @OptionGroup var selection: TransferSelection

    func run() async throws { try await selection.ask { .resume($0) } }
}

/// `urlsession background cancel`.
struct BackgroundCancelCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cancel",
        abstract: "Gives transfers up.",
        discussion: "Their programs are told that they were cancelled."
    )

    @OptionGroup var selection: TransferSelection

    func run() async throws { try await selection.ask { .cancel($0) } }
}
