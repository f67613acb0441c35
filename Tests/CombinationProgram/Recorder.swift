// SPDX-License-Identifier: Apache-2.0

import CombinationModel
import Foundation
import LoadingTestKit
import URLLoading

/// The delegate of a row's session: it answers as the row requires, and records its calls for each task.
final class Recorder: NSObject, URLSessionDataDelegate, URLSessionDownloadDelegate, URLSessionWebSocketDelegate, Sendable {
    struct Notes: Sendable {
        /// A letter for each call, in order: c created, t trust, i identity, p password, n stream, s sent, h informational, r
        /// redirect, R response, D data, W written, F file, q resumed, B became a stream, o open, x closed, M metrics, E end.
        var callLog = ""
        var body: [UInt8] = []
        var status: Int?
        var error: Outcome?
        var isOver = false
        /// The stream task that a data task became.
        var stream: URLSessionStreamTask?
    }

    private struct State: Sendable {
        var notes: [Int: Notes] = [:]
        /// Whether questions about a server's trust are held.
        var isHolding = false
        var held: [@Sendable () -> Void] = []
        var faults: [String] = []
        var trustCalls = 0
    }

    private let state = Watched(State())
    private let order: SessionOrder
    private let user: String?
    private let login: Login
    private let identity: SecIdentity?
    private let streams: Int

    init(_ order: SessionOrder, user: String?, login: Login, identity: SecIdentity?, streams: Int) {
        self.order = order
        self.user = user
        self.login = login
        self.identity = identity
        self.streams = streams
    }

    func notes(_ task: Int) -> Notes { state.read { $0.notes[task] ?? Notes() } }
    var faults: [String] { state.read(\.faults) }

    /// Waits until a task ends, or until a condition holds.
    func wait(_ task: Int, until condition: @escaping @Sendable (Notes) -> Bool = { $0.isOver }) async throws -> Notes {
        try await state.value { state in state.notes[task].flatMap { condition($0) ? $0 : nil } }
    }

    // MARK: Holding a question

    func hold() { state.change { $0.isHolding = true } }

    func waitUntilHeld() async throws { try await state.value { $0.held.isEmpty ? nil : () } }

    func release() {
        let held = state.change { state in
            defer { state.held = [] }
            state.isHolding = false
            return state.held
        }
        for answer in held { answer() }
    }

    private func note(_ task: URLSessionTask, _ letter: Character, _ change: (inout Notes) -> Void = { _ in }) {
        let id = task.taskIdentifier
        state.change { state in
            var notes = state.notes[id] ?? Notes()
            if notes.isOver { state.faults.append("'\(letter)' after the end of task \(id)") }
            notes.callLog.append(letter)
            change(&notes)
            state.notes[id] = notes
        }
    }

    // MARK: Challenges

    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        let space = challenge.protectionSpace
        let answer: @Sendable () -> Void
        if space.authenticationMethod == NSURLAuthenticationMethodServerTrust, order.trust == .delegateAnswer,
            let trust = space.serverTrust
        {
            answer = { completionHandler(.useCredential, URLCredential(trust: trust)) }
        } else if space.authenticationMethod == NSURLAuthenticationMethodClientCertificate, let identity {
            answer = {
                completionHandler(.useCredential, URLCredential(identity: identity, certificates: nil, persistence: .forSession))
            }
        } else {
            answer = { completionHandler(.performDefaultHandling, nil) }
        }
        let isHeld = state.change { state in
            state.trustCalls += 1
            if state.isHolding { state.held.append(answer) }
            return state.isHolding
        }
        if !isHeld { answer() }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        // A task's own delegate gets the questions about the server here, and a session's delegate above.
        if challenge.protectionSpace.authenticationMethod == NSURLAuthenticationMethodServerTrust {
            return urlSession(session, didReceive: challenge, completionHandler: completionHandler)
        }
        note(task, "p")
        let isOfOrigin = !challenge.protectionSpace.isProxy() && challenge.protectionSpace.host == "www.shop.localhost"
        guard login.isDelegate, let user, isOfOrigin, challenge.previousFailureCount == 0 else {
            return completionHandler(.performDefaultHandling, nil)
        }
        completionHandler(.useCredential, URLCredential(user: user, password: "secret-of-\(user)", persistence: .forSession))
    }

    // MARK: Tasks

    func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask) { note(task, "c") }

    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
    ) {
        let count = notes(task.taskIdentifier).callLog.filter { $0 == "n" }.count
        note(task, "n")
        completionHandler(count < streams ? InputStream(data: Data(Body.content(LoadOrder.small))) : nil)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, needNewBodyStreamFrom offset: Int64,
        completionHandler: @escaping @Sendable (InputStream?) -> Void
    ) {
        note(task, "n")
        let rest = Body.content(LoadOrder.small).dropFirst(Int(offset))
        completionHandler(streams == .max ? InputStream(data: Data(rest)) : nil)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    ) { note(task, "s") }

    func urlSession(_ session: URLSession, task: URLSessionTask, didReceiveInformationalResponse response: HTTPURLResponse) {
        note(task, "h")
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        note(task, "r")
        completionHandler(request)
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        note(dataTask, "R") { $0.status = (response as? HTTPURLResponse)?.statusCode }
        let isAsking = dataTask.originalRequest?.value(forHTTPHeaderField: "Upgrade") != nil
        completionHandler(isAsking ? .becomeStream : .allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didBecome streamTask: URLSessionStreamTask) {
        note(dataTask, "B") { $0.stream = streamTask }
        read(streamTask)
    }

    /// Reads until the server closes, then closes this side.
    private func read(_ task: URLSessionStreamTask) {
        task.readData(ofMinLength: 1, maxLength: 65_536, timeout: 0) { [self] data, atEOF, error in
            state.change { $0.notes[task.taskIdentifier]?.body += data ?? Data() }
            if atEOF { task.closeWrite() } else if error == nil { read(task) }
        }
    }

    func urlSession(_ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol protocol: String?) {
        note(webSocketTask, "o")
    }

    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask,
        didCloseWith closeCode: URLSessionWebSocketTask.CloseCode, reason: Data?
    ) { note(webSocketTask, "x") }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        note(dataTask, "D") { $0.body += data }
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
        totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
    ) { note(downloadTask, "W") }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
        expectedTotalBytes: Int64
    ) { note(downloadTask, "q") }

    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
        let data = (try? Data(contentsOf: location)) ?? Data("no file".utf8)
        let status = (downloadTask.response as? HTTPURLResponse)?.statusCode
        note(downloadTask, "F") { notes in
            notes.body = Array(data)
            notes.status = status
        }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
        note(task, "M")
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        note(task, "E") { notes in
            notes.error = error.map(Failure.outcome)
            notes.isOver = true
        }
    }
}

/// Converts errors into the outcome that is compared.
enum Failure {
    static func outcome(_ error: any Error) -> Outcome {
        .failed(code(error), String("\(error)".prefix(400)))
    }

    static func code(_ error: any Error) -> Int {
        if let error = error as? URLError { return error.errorCode }
        if error is CancellationError { return -999 }
        return (error as NSError).code == 0 ? -1 : (error as NSError).code
    }
}
