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
import LoadingModel

/// `urlsession background schedule`: sets when the transfers of all programs may run, and how fast.
struct BackgroundScheduleCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "schedule",
        abstract: "Says when background transfers may run, and how fast.",
        discussion: """
            For the transfers of all programs, those that run included, until it is said otherwise. Without options it shows what holds. \
            Out of the hours none begins; what runs is paused, and goes on where it was, where the server lets it. Hours are those of the \
            clock here. The rate is that of all transfers together: each waits until what it moved is paid for.
            """
    )

    @Option(
        name: .long,
        help: ArgumentHelp(
            "The hours at which transfers may run, in place of those of before. Many take several of them.",
            valueName: "22:00-06:00"))
    var hours: [DayHours] = []

    @Flag(name: .long, help: "Transfers may run at any time.")
    var anyTime = false

    @Option(
        name: .customLong("limit-rate"),
        help: ArgumentHelp(
            "All transfers together move no more than so many bytes in a second; k, M and G may follow. 0 ends that.",
            valueName: "bytes"))
    var limit: ByteCount?

    func validate() throws {
        if anyTime, !hours.isEmpty { throw ValidationError("--any-time excludes --hours.") }
    }

    func run() async throws {
        let manager = try ManagerConnection.required(isStarted: true)
        do throws(LoadError) {
            guard case .status(let status, _) = try await manager.ask(.status) else {
                throw LoadError(.backgroundSessionDisconnected, "urlsessiond gave no status; nothing was changed")
            }
            guard var terms = status.terms else {
                throw LoadError(
                    .backgroundSessionDisconnected,
                    "the urlsessiond that runs is of version \(status.version), which has no schedule; urlsessiond --replace starts this one"
                )
            }
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
