// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import BackgroundClient
import BackgroundProtocol
import LoadingModel

/// `urlsession background quit`: ends a program and cancels its transfers.
struct BackgroundQuitCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "quit",
        abstract: "Force-quits a program, and cancels its transfers.",
        discussion: "urlsessiond does not start the program again until the user has started it."
    )

    @Argument(help: "The path of the program's file, or the last part of it.")
    var program: String

    func run() async throws {
        let manager = try ManagerConnection.required()
        do throws(LoadError) {
            _ = try await manager.ask(.quit(program: program))
        } catch {
            throw ToolFailure(error)
        }
    }
}

/// `urlsession background log`: shows the recent activity of urlsessiond.
struct BackgroundLogCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "log",
        abstract: "Shows the recent activity of urlsessiond."
    )

    func run() async throws {
        let manager = try ManagerConnection.required()
        var lines: [String] = []
        do throws(LoadError) {
            let answer = try await manager.ask(.log)
            if case .log(let log, _) = answer { lines = log }
        } catch {
            throw ToolFailure(error)
        }
        try StandardOutput.write(lines.map { TextTable.sanitized($0) + "\n" }.joined())
    }
}
