// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import URLLoading

/// `urlsession background collect`: collects complete transfers; the daemon runs this command when a transfer that the tool started
/// is complete.
struct BackgroundCollectCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "collect",
        abstract: "Moves completed transfers to their destinations; run by urlsessiond.",
        shouldDisplay: false
    )

    func run() async throws {
        let collector = TransferCollector(isUnattended: true)
        var sessions: [URLSession] = []
        let (deliveries, delivery) = AsyncStream.makeStream(of: Void.self)
        var failure: (any Error)?
        URLSession.handleEventsForBackgroundURLSession { identifier, completionHandler in
            collector.whenAllEventsDelivered(identifier) {
                completionHandler()
                delivery.yield()
            }
            do {
                let configuration = try BackgroundOrders.configuration(identifier)
                sessions.append(URLSession(configuration: configuration, delegate: collector, delegateQueue: nil))
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
        guard !sessions.isEmpty else {
            throw ToolFailure(2, "urlsessiond starts this command when a transfer is complete")
        }
        var missing = sessions.count
        for await _ in deliveries {
            missing -= 1
            if missing == 0 { break }
        }
        collector.leave(0)
    }
}
