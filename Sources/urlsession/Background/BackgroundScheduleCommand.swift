// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import BackgroundClient
import BackgroundProtocol
import LoadingModel

/// `urlsession background schedule`: sets when the transfers of all programs may run, and how fast.
struct BackgroundScheduleCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "schedule",
        abstract: "Sets when background transfers may run, and how fast.",
        discussion: """
            The schedule applies to the transfers of all programs, including running ones, until it is changed. Without options, it is \
            shown. Outside of the hours, no transfer begins, and running ones are paused; they continue where they stopped if the server \
            supports that. Hours are in local time. The rate is shared by all transfers.
            """
    )

    @Option(
        name: .long,
        help: ArgumentHelp(
            "The hours during which transfers may run, instead of the previous ones; may be repeated.",
            valueName: "22:00-06:00"))
    var hours: [DayHours] = []

    @Flag(name: .long, help: "Transfers may run at any time.")
    var anyTime = false

    @Option(
        name: .customLong("limit-rate"),
        help: ArgumentHelp(
            "The maximum rate of all transfers together, in bytes per second; k, M or G may follow. 0 removes the limit.",
            valueName: "bytes"))
    var limit: ByteCount?

    func validate() throws {
        if anyTime, !hours.isEmpty { throw ValidationError("--any-time cannot be combined with --hours.") }
    }

    func run() async throws {
        let manager = try ManagerConnection.required(isStarted: true)
        do throws(LoadError) {
            guard case .status(let status, _) = try await manager.ask(.status) else {
                throw LoadError(.backgroundSessionDisconnected, "urlsessiond reported no status; nothing was changed")
            }
            guard var terms = status.terms else {
                throw LoadError(
                    .backgroundSessionDisconnected,
                    "the running urlsessiond has version \(status.version), which has no schedule; 'urlsessiond --replace' starts this version"
                )
            }
            for trouble in status.trouble { StandardError.print(trouble) }
            let before = terms
            if anyTime { terms.hours = [] }
            if !hours.isEmpty { terms.hours = hours }
            if let limit { terms.rate = limit.bytes > 0 ? limit.bytes : nil }
            if terms != before { _ = try await manager.ask(.setTerms(terms)) }
            guard !anyTime, hours.isEmpty, limit == nil else { return }
            try? StandardOutput.write("\(terms.text)\(status.isWithinHours ? "" : " (not now)")\n")
        } catch {
            throw ToolFailure(error)
        }
    }
}

extension DayHours: ExpressibleByArgument {
    package init?(argument: String) { self.init(argument) }
}
