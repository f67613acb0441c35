// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import BackgroundClient
import BackgroundProtocol
import Foundation
import LoadingModel

/// `urlsession background list`: prints a line for each transfer of each program.
struct BackgroundListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "Shows the background transfers of all programs.",
        discussion: """
            For each transfer: its number, its state (running, waiting, paused, or ended: its program has not collected it yet), its \
            program, its progress, its URL without the query, and why it waits. On a terminal, long values are cut, so that each \
            transfer has one line.
            """
    )

    @OptionGroup var output: ListOutput

    /// A date that is formatted only when it is encoded as JSON, because there may be thousands of dates.
    private struct Instant: Encodable {
        let seconds: Double

        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            try container.encode(Date(timeIntervalSinceReferenceDate: seconds).ISO8601Format())
        }
    }

    private struct Item: ListItem {
        let number: Int64
        let state: String
        let program: String
        let session: String
        let task: Int
        let url: String
        let isUpload: Bool
        let sent: Int64
        let expectedToSend: Int64
        let received: Int64
        let expectedToReceive: Int64
        let reason: String
        let created: Instant
        let description: String?
        private let progress: String

        enum CodingKeys: CodingKey {
            case number, state, program, session, task, url, isUpload, sent, expectedToSend, received, expectedToReceive, reason
            case created, description
        }

        init(_ report: BackgroundProtocol.TransferReport) {
            number = report.number
            state = report.state.rawValue
            program = report.program
            session = report.session
            task = report.task
            url = report.url
            isUpload = report.isUpload
            sent = report.counts.sent
            expectedToSend = report.counts.expectedToSend
            received = report.counts.received
            expectedToReceive = report.counts.expectedToReceive
            reason = report.reason
            created = Instant(seconds: report.created)
            description = report.description
            progress = (report.isUpload ? "sent " : "") + TransferText.progress(report)
        }

        static var titles: [String] { ["NUMBER", "STATE", "PROGRAM", "PROGRESS", "URL", "WHY"] }

        var row: [String] {
            [String(number), state, TransferText.name(ofProgram: program), progress, url, reason.isEmpty ? "-" : reason]
        }
    }

    func run() async throws {
        guard let manager = try ManagerConnection.found() else {
            if output.json { return try output.write([Item]()) }
            return StandardError.print(ToolFailure.noDaemon.message ?? "")
        }
        let reports: [BackgroundProtocol.TransferReport]
        do throws(LoadError) {
            reports = try await manager.list()
        } catch {
            throw ToolFailure(error)
        }
        try output.write(reports.map(Item.init), fits: true)
    }
}
