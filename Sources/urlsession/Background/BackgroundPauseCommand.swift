// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import BackgroundProtocol

/// `urlsession background pause`: pauses transfers.
struct BackgroundPauseCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pause",
        abstract: "Pauses transfers until they are resumed.",
        discussion: "The data received so far is kept if the server supports resuming."
    )

    @OptionGroup var selection: TransferSelection

    func run() async throws { try await selection.ask { .pause($0) } }
}

/// `urlsession background resume`: resumes paused transfers.
struct BackgroundResumeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "resume",
        abstract: "Resumes paused transfers."
    )

    @OptionGroup var selection: TransferSelection

    func run() async throws { try await selection.ask { .resume($0) } }
}

/// `urlsession background cancel`: cancels transfers.
struct BackgroundCancelCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cancel",
        abstract: "Cancels transfers.",
        discussion: "Their programs are notified of the cancellation."
    )

    @OptionGroup var selection: TransferSelection

    func run() async throws { try await selection.ask { .cancel($0) } }
}
