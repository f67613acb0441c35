// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import URLLoading

struct StreamCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stream",
        abstract: "Connects standard input and output to a server.",
        discussion: """
            Standard input is sent, and received data is written to standard output unchanged. At the end of the input, the sending side \
            is closed, and data that the server still sends is written. With --starttls, the server is first asked to start TLS with \
            its protocol's command; if it refuses, nothing is sent in clear text.
            """
    )

    @Argument(help: "A host name or an address.")
    var host: String

    @Argument(help: "The port, from 1 to 65535.")
    var port: Int

    @Flag("--tls", "Start TLS immediately.")
    var tls = false

    @Option("--starttls <protocol>", "Ask the server to start TLS: smtp, imap, pop3 or ftp.")
    var starttls: StartTLS.Dialogue?

    @OptionGroup var options: RequestOptions

    func validate() throws {
        try refuse(if: !(1...65_535 ~= port), "The port must be a number from 1 to 65535.")
        try refuse(if: tls && starttls != nil, "--tls cannot be combined with --starttls.")
        try options.refuseRepetition(for: "stream")
    }

    func run() async throws { try await options.perform(exchange) }

    private func exchange() async throws {
        let name = host.contains(":") ? "[\(host)]" : host
        let prepared = try options.prepared("https://\(name):\(port)")
        let observer = ConversationObserver(answers: prepared.answers, showsMetrics: options.metrics)
        let session = URLSession(configuration: prepared.configuration, delegate: observer, delegateQueue: nil)
        defer { session.finishTasksAndInvalidate() }
        let task = session.streamTask(withHostName: host, port: port)
        try await observer.run(task, interrupt: { task.cancel() }) {
            try await secure(task)
            try await transfer(task)
        }
    }

    private func secure(_ task: URLSessionStreamTask) async throws {
        guard tls || starttls != nil else { return }
        if let starttls { try await StartTLS(task).ask(in: starttls) }
        task.startSecureConnection()
        // An empty write completes after the handshake, so standard input is read only after the server has been authenticated.
        try await task.write(Data(), timeout: 0)
    }

    private func transfer(_ task: URLSessionStreamTask) async throws {
        let input = MessageInput(isBinary: true)
        let sending = Task {
            do {
                while case .data(let data)? = try await input.next() { try await task.write(data, timeout: 0) }
                task.closeWrite()
            } catch {
                // The receiving side reports a broken connection.
                if error is ToolFailure { task.cancel() }
            }
        }
        defer { sending.cancel() }
        while true {
            let (data, isAtEnd): (Data?, Bool)
            do {
                (data, isAtEnd) = try await task.readData(ofMinLength: 1, maxLength: 65_536, timeout: 0)
            } catch {
                throw input.failure ?? error
            }
            if let data { try StandardOutput.write(data, advice: nil) }
            if isAtEnd { break }
        }
        // A server that has closed its side usually does not read any more.
        task.closeWrite()
        if let failure = input.failure { throw failure }
    }
}
