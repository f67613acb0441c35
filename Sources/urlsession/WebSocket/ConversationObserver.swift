// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import URLLoading

/// The delegate of a WebSocket or of a stream.
final class ConversationObserver: NSObject, ChallengeAnswering, URLSessionWebSocketDelegate {
    let answers: ChallengeAnswers
    private let isVerbose: Bool
    private let showsMetrics: Bool
    private let redirects: RedirectRule
    private let redirectCount = Mutex(0)
    private let (openings, opened) = AsyncStream.makeStream(of: Never.self)
    private let (ends, ended) = AsyncStream.makeStream(of: Never.self)

    init(answers: ChallengeAnswers, showsMetrics: Bool, isVerbose: Bool = false, redirects: RedirectRule = RedirectRule()) {
        self.answers = answers
        self.showsMetrics = showsMetrics
        self.isVerbose = isVerbose
        self.redirects = redirects
    }

    /// Waits until the handshake has succeeded, or the task is complete.
    func opening() async { for await _ in openings {} }

    /// Runs a task until it is complete.
    ///
    /// - Parameters:
    ///   - task: The task.
    ///   - interrupt: Ends the task after Ctrl-C.
    ///   - exchange: Sends and receives.
    /// - Throws: The failure of the exchange, or one with the code 130 after Ctrl-C.
    func run(
        _ task: URLSessionTask, interrupt: @escaping @Sendable () -> Void, _ exchange: () async throws -> Void
    ) async throws {
        let interruption = Interruption(interrupt)
        task.resume()
        var failure: ToolFailure?
        do {
            try await exchange()
        } catch {
            task.cancel()
            let isAnswered = task.response != nil || task.countOfBytesReceived > 0
            failure = error as? ToolFailure ?? ToolFailure(error, answered: isAnswered)
        }
        for await _ in ends {}
        if interruption.happened { throw ToolFailure(130, nil) }
        if let failure { throw failure }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        let count = redirectCount.withLock { count in
            count += 1
            return count
        }
        completionHandler((try? redirects.allows(count, to: request.url)) == true ? request : nil)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didSendRequestHead head: [String]) {
        if isVerbose { StandardError.write(HeadText.request(head, prefix: "> ")) }
    }

    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol protocol: String?
    ) {
        if isVerbose, let response = webSocketTask.response {
            StandardError.write(HeadText.response(response, prefix: "< "))
        }
        opened.finish()
    }

    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask,
        didCloseWith closeCode: URLSessionWebSocketTask.CloseCode, reason: Data?
    ) {
        guard isVerbose else { return }
        let text = reason.map { String(decoding: $0, as: UTF8.self) } ?? ""
        StandardError.print(TextTable.sanitized("* closed with \(closeCode.rawValue)" + (text.isEmpty ? "" : ": \(text)")))
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
        if showsMetrics { StandardError.write(Waterfall(metrics).text()) }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        opened.finish()
        ended.finish()
    }
}
