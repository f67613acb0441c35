// SPDX-License-Identifier: Apache-2.0

import BackgroundClient
import BackgroundProtocol
import Foundation
import LoadingModel
import URLLoading

/// The transfers that one command creates.
///
/// Each transfer has its own session, because the daemon starts a program only when all tasks of a session are complete. A complete
/// file should wait neither for another file, whose transfer may begin only tomorrow, nor for another run of the tool that is using
/// the same session.
final class BackgroundOrders {
    /// The prefix of the identifiers of the tool's sessions.
    private static let prefix = "urlsession-"

    struct Order {
        let identifier: String
        let url: URL
        let session: URLSession
        let note: TransferNote
        var number: Int64?
    }

    private let options: BackgroundTransferOptions
    private let collector: TransferCollector
    private let screen: TransferScreen?
    private var orders: [Order] = []

    init(_ options: BackgroundTransferOptions) {
        self.options = options
        collector = TransferCollector(isUnattended: !options.wait)
        let screen = options.wait ? TransferScreen(.standardError, isWanted: !options.silent) : nil
        self.screen = screen
        guard let screen else { return }
        collector.whenEnded { text, isFailure in screen.say(text, always: isFailure) }
    }

    /// Returns the configuration of one of the tool's sessions; it makes the daemon start the tool when the session's tasks are
    /// complete.
    static func configuration(_ identifier: String) throws(ToolFailure) -> URLSessionConfiguration {
        let configuration = URLSessionConfiguration.background(withIdentifier: identifier)
        // The same setting as in the other commands that load something.
        configuration.appTransportSecurity = ["NSAllowsArbitraryLoads": true]
        guard let program = DaemonStarter.executable() else { throw ToolFailure(26, "cannot find this program's file") }
        configuration.backgroundLaunch = .arguments([program, "background", "collect"])
        return configuration
    }

    /// Creates and resumes a transfer, and waits until the daemon has stored it durably or the transfer has failed.
    func add(_ url: URL, _ note: TransferNote, _ make: (URLSession) -> URLSessionTask) throws {
        let identifier = Self.prefix + UUID().uuidString.lowercased()
        let configuration = try Self.configuration(identifier)
        configuration.isDiscretionary = options.discretionary
        let session = URLSession(configuration: configuration, delegate: collector, delegateQueue: nil)
        let task = make(session)
        options.apply(to: task)
        task.taskDescription = note.text
        task.resume()
        orders.append(Order(identifier: identifier, url: url, session: session, note: note))
    }

    /// Prints the transfers' numbers, waits for the transfers if `--wait` is given, and exits.
    func conclude() async throws -> Never {
        let manager = ManagerConnection.open()
        var reports: [BackgroundProtocol.TransferReport] = []
        do throws(LoadError) {
            reports = try await manager?.list() ?? []
        } catch {
            StandardError.print("urlsession: cannot determine the transfers' numbers: \(TextTable.sanitized(error.message))")
        }
        var failure: Int32?
        var lines = ""
        for index in orders.indices {
            let order = orders[index]
            orders[index].number = reports.first { $0.session == order.identifier }?.number
            let ending = await collector.currentEnding(of: order.session)
            if orders[index].number == nil, case .failed(let reason)? = ending {
                // Without a daemon, no transfer can be created.
                failure = reason.code
                continue
            }
            // The daemon has a number for every durable transfer; the number is unknown here if the list could not be read.
            let number = orders[index].number.map(String.init) ?? (ending == nil ? "?" : "done")
            let address = RequestOptions.hidingUser(order.url.absoluteString)
            let target = order.note.target.map { "  \($0)" } ?? ""
            lines += TextTable.sanitized("\(number)  \(address)\(target)") + "\n"
        }
        if !options.silent { try StandardOutput.write(lines) }
        guard let screen else { collector.leave(failure ?? 0) }
        let code = await wait(screen, manager)
        collector.leave(failure ?? code)
    }

    private func wait(_ screen: TransferScreen, _ manager: ManagerConnection?) async -> Int32 {
        let numbers = Set(orders.compactMap(\.number))
        let collector = collector
        SignalActions.set(SIGINT) {
            screen.finish()
            StandardError.print("the transfers continue: see \"urlsession background list\"")
            collector.leave(130)
        }
        let showing = Task {
            guard let manager else { return }
            for await page in manager.reports(.watch) { screen.update(page.reports.filter { numbers.contains($0.number) }) }
        }
        var code: Int32 = 0
        for order in orders {
            if case .failed(let failure) = await collector.ending(of: order.identifier) { code = failure.code }
        }
        showing.cancel()
        screen.finish()
        return code
    }
}

extension ToolFailure {
    /// Creates the failure for an error of the daemon or of the connection to it.
    init(_ error: LoadError) {
        let code: Int32
        switch error.kind {
        case .backgroundSessionDisconnected: code = 7
        case .resourceUnavailable: code = 78
        default: code = 56
        }
        self.init(code, TextTable.sanitized(error.message))
    }

    static var noDaemon: ToolFailure { ToolFailure(7, "urlsessiond is not running: there are no background transfers") }
}

extension ManagerConnection {
    /// Returns the connection to the daemon; nil if no daemon is running and no transfers are left from an earlier daemon.
    static func found(isNeeded: Bool = false) throws(ToolFailure) -> ManagerConnection? {
        do throws(LoadError) {
            return try find(isNeeded: isNeeded)
        } catch {
            throw ToolFailure(error)
        }
    }

    /// Returns the connection to the daemon.
    ///
    /// - Parameter isStarted: Whether to start the daemon if it is not running.
    /// - Throws: If no daemon is running, or if the daemon cannot be started.
    /// - Returns: The connection.
    static func required(isStarted: Bool = false) throws(ToolFailure) -> ManagerConnection {
        guard let manager = try found(isNeeded: isStarted) else { throw .noDaemon }
        return manager
    }
}
