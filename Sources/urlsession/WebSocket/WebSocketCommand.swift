// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import URLLoading

struct WebSocketCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ws",
        abstract: "Exchanges messages over WebSocket.",
        discussion: """
            Each line of standard input is sent as a message, and each received message is written as a line to standard output. At the \
            end of the input, the connection is closed, and messages that the server still sends are written.

            The exit code is 0 if the server closes with 1000, 1001 or no code, and 22 with any other code.
            """
    )

    @Argument(help: "The URL; without a scheme, ws:// is assumed.")
    var url: String

    @Flag("--binary", "Send standard input as binary messages, and write received binary messages unchanged.")
    var binary = false

    @Option("--ping <seconds>", "Send a ping at this interval, and fail if one is not answered.")
    var ping: Double?

    @Option("--subprotocol <name>", "Offer a subprotocol; may be repeated.")
    var subprotocol: [String] = []

    @Option("--max-message <bytes>", "Fail if a message is larger; 64 MiB by default.")
    var maxMessage = 67_108_864

    @Flag("--deflate", "Offer to compress messages.")
    var deflate = false

    @OptionGroup var options: RequestOptions

    func validate() throws {
        try refuse(if: ping.map({ !($0 > 0) }) ?? false, "--ping must be greater than 0.")
        try refuse(if: maxMessage < 1, "--max-message must be at least 1.")
        try options.refuseRepetition(for: "ws")
    }

    func run() async throws { try await options.perform(exchange) }

    private func exchange() async throws {
        let prepared = try options.prepared(url.contains("://") ? url : "ws://" + url)
        let observer = ConversationObserver(
            answers: prepared.answers, showsMetrics: options.metrics, isVerbose: options.verbose, redirects: options.redirects)
        let session = URLSession(configuration: prepared.configuration, delegate: observer, delegateQueue: nil)
        defer { session.finishTasksAndInvalidate() }
        var request = options.request(for: prepared.url)
        if !subprotocol.isEmpty {
            request.setValue(subprotocol.joined(separator: ", "), forHTTPHeaderField: "Sec-WebSocket-Protocol")
        }
        let task = session.webSocketTask(with: request)
        task.maximumMessageSize = maxMessage
        task.offersCompression = deflate
        task.pingInterval = ping
        let (input, isBinary) = (MessageInput(isBinary: binary), binary)
        let sending = Task {
            do {
                while let message = try await input.next() { try await task.send(message) }
                // The handshake must be complete first, because cancelling the task earlier would cancel the handshake.
                await observer.opening()
                task.cancel(with: .normalClosure, reason: nil)
            } catch {
                // The receiving side reports a closed connection.
                if error is ToolFailure { task.cancel() }
            }
        }
        defer { sending.cancel() }
        try await observer.run(task, interrupt: { task.cancel(with: .normalClosure, reason: nil) }) {
            do {
                for try await message in task.messages { try Self.write(message, isBinary: isBinary) }
            } catch {
                throw input.failure ?? error
            }
        }
        if let failure = input.failure { throw failure }
        try conclude(task)
    }

    private func conclude(_ task: URLSessionWebSocketTask) throws {
        let code = task.closeCode
        let reason = task.closeReason.map { String(decoding: $0, as: UTF8.self) } ?? ""
        guard ![.normalClosure, .goingAway, .noStatusReceived].contains(code) else { return }
        let text = "the server closed the WebSocket with code \(code.rawValue)" + (reason.isEmpty ? "" : ": \(reason)")
        throw ToolFailure(22, TextTable.sanitized(text))
    }

    private static func write(_ message: URLSessionWebSocketTask.Message, isBinary: Bool) throws(ToolFailure) {
        switch message {
        case .string(let text): try StandardOutput.write(text + "\n")
        case .data(let data):
            try StandardOutput.write(
                isBinary ? data : data + Data("\n".utf8), advice: isBinary ? nil : "use --binary, and write to a file or a pipe")
        }
    }
}
