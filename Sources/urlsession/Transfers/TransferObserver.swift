// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization
import URLLoading

/// The delegate of a task: writes the body, counts bytes, and completes ``load(_:)``.
final class TransferObserver: NSObject, URLSessionDataDelegate, URLSessionDownloadDelegate, ChallengeAnswering {
    let plan: Plan
    let answers: ChallengeAnswers
    let sink: BodySink
    private let pace: RateLimiter?
    private let state = Mutex(State())

    /// - Parameters:
    ///   - plan: The relevant options.
    ///   - answers: The answers to challenges.
    ///   - sink: The destination of a data task's body.
    init(_ plan: Plan, _ answers: ChallengeAnswers, to sink: BodySink = BodySink(path: nil)) {
        self.plan = plan
        self.answers = answers
        self.sink = sink
        pace = plan.rate.map { RateLimiter($0) }
    }

    /// Runs a task in a session of its own to completion.
    ///
    /// - Parameters:
    ///   - configuration: The session's configuration.
    ///   - makeTask: Creates the task.
    /// - Returns: The outcome.
    func load(in configuration: URLSessionConfiguration, _ makeTask: (URLSession) -> URLSessionTask) async -> State {
        let session = URLSession(configuration: configuration, delegate: self, delegateQueue: nil)
        defer { session.finishTasksAndInvalidate() }
        return await load(makeTask(session))
    }

    /// Runs the task to completion, and returns its outcome.
    func load(_ task: URLSessionTask) async -> State {
        // The task needs its own delegate, because the session is shared with other loads.
        task.delegate = self
        await withCheckedContinuation { continuation in
            state.withLock { $0.continuation = continuation }
            awaitConnection(task)
            plan.recording?.began { [weak self] in self?.stop(task, because: ToolFailure(130, nil)) }
            if let slowest = plan.slowest {
                let watch = SpeedMonitor(slowest) { [weak self] in self?.stop(task, because: $0) }
                state.withLock { $0.speedMonitor = watch }
            }
            task.resume()
        }
        state.withLock { $0.speedMonitor }?.end()
        plan.meter?.finish()
        return state.withLock { $0 }
    }

    private func stop(_ task: URLSessionTask, because failure: ToolFailure) {
        state.withLock { $0.failure = $0.failure ?? failure }
        task.cancel()
    }

    /// Starts the timer of `--connect-timeout`: the load fails unless a request is sent or a response is received before the timer
    /// fires.
    ///
    /// - Parameters:
    ///   - task: The task that connects.
    ///   - isOffline: Whether the task first waits for a network; that time does not count.
    private func awaitConnection(_ task: URLSessionTask, isOffline: Bool = false) {
        guard let limit = plan.connectTimeout, task.originalRequest?.url?.scheme?.lowercased().hasPrefix("http") == true else {
            return
        }
        let timer = Task {
            if isOffline { await Self.networkReturns() }
            guard (try? await Task.sleep(for: .seconds(min(limit, 1e9)))) != nil, !Task.isCancelled else { return }
            var failure = ToolFailure(28, "connecting took longer than \(limit) s (--connect-timeout)")
            failure.isTemporary = true
            stop(task, because: failure)
        }
        state.withLock { state in
            state.connectTimer?.cancel()
            state.connectTimer = timer
        }
    }

    /// Returns when other networks become reachable, or when the timer is cancelled.
    ///
    /// A network without a route to other networks does not count: a load from a remote host would still have to wait.
    private static func networkReturns() async {
        let before = await NetworkPath.current()
        var path = before
        while path == before || !path.isSatisfied {
            guard (try? await Task.sleep(for: .milliseconds(250))) != nil else { return }
            path = await NetworkPath.current()
        }
    }

    // MARK: Requests

    func urlSession(_ session: URLSession, task: URLSessionTask, didSendRequestHead head: [String]) {
        state.withLock { state in
            state.isSent = true
            state.connectTimer?.cancel()
        }
        plan.recording?.sent(head)
        if plan.isVerbose {
            StandardError.write(HeadText.request(head, prefix: "> "))
        }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        if let response = challenge.failureResponse { show(response, of: task) }
        challenge.answer(completionHandler) { [self] in
            if let trust = challenge.protectionSpace.serverTrust {
                let text = CertificateText(trust, of: challenge.protectionSpace.host)
                state.withLock { $0.certificates = text }
                if plan.isVerbose { text.lines.forEach(StandardError.print) }
            }
            return answers.answer(challenge)
        }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        let number = state.withLock { state in
            state.redirects.append((response.statusCode, request.url))
            return state.redirects.count
        }
        do throws(ToolFailure) {
            guard try plan.redirects.allows(number, to: request.url) else {
                state.withLock { state in
                    state.redirects.removeLast()
                    state.redirectNotFollowed = request.url
                }
                return completionHandler(nil)
            }
            show(response, of: task)
            awaitConnection(task)
            completionHandler(request)
        } catch {
            stop(task, because: error)
            completionHandler(nil)
        }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
    ) {
        completionHandler(plan.bodyStream?())
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    ) {
        state.withLock { $0.speedMonitor }?.note(bytesSent)
        plan.meter?.update(totalBytesSent, of: totalBytesExpectedToSend)
    }

    // MARK: Data

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        state.withLock { state in
            state.response = response
            state.connectTimer?.cancel()
        }
        let failure = plan.objection?(response) ?? httpFailure(response) ?? excess(response.expectedContentLength)
        show(response, of: dataTask, isFinal: failure?.retryWait == nil)
        if let failure {
            if plan.keepsErrorBody, failure.code == 22, failure.retryWait == nil {
                state.withLock { $0.verdict = failure }
                return completionHandler(.allow)
            }
            state.withLock { $0.failure = failure }
            return completionHandler(.cancel)
        }
        completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        plan.recording?.received(data)
        let isWanted = state.withLock { state in
            state.received += Int64(data.count)
            return state.failure == nil
        }
        take(data.count, of: dataTask)
        if isWanted, let failure = excess(state.withLock { $0.received }) {
            stop(dataTask, because: failure)
        } else if isWanted {
            write(data, for: dataTask)
            let (received, expected) = state.withLock { ($0.received, $0.response?.expectedContentLength ?? -1) }
            plan.meter?.update(received, of: expected)
        }
    }

    /// Accounts for received bytes in the speed, the count and the rate limit.
    private func take(_ count: Int, of task: URLSessionTask) {
        state.withLock { $0.speedMonitor }?.note(Int64(count))
        plan.count?(count)
        pace?.hold(task, after: count)
    }

    private func write(_ data: Data, for task: URLSessionTask, isHead: Bool = false) {
        do {
            try sink.write(data, isHead: isHead)
        } catch {
            stop(task, because: error)
        }
    }

    // MARK: Downloads

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64, totalBytesWritten: Int64,
        totalBytesExpectedToWrite: Int64
    ) {
        state.withLock { $0.received = totalBytesWritten }
        take(Int(clamping: bytesWritten), of: downloadTask)
        if let failure = excess(max(totalBytesWritten, totalBytesExpectedToWrite)) { stop(downloadTask, because: failure) }
        plan.meter?.update(totalBytesWritten, of: totalBytesExpectedToWrite)
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
        expectedTotalBytes: Int64
    ) {
        state.withLock { $0.offset = fileOffset }
        plan.meter?.begin(at: fileOffset)
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didBeginFileWithResumeData resumeData: Data
    ) {
        plan.saveResumeData?(resumeData)
    }

    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
        plan.recording?.received(file: location)
        if let response = downloadTask.response { show(response, of: downloadTask) }
        if let failure = httpFailure(downloadTask.response) {
            return state.withLock { $0.failure = failure }
        }
        do {
            try plan.moveDownloadedFile?(location, downloadTask.response)
        } catch {
            let failure = error as? ToolFailure ?? ToolFailure(23, ToolFailure.describe(error))
            state.withLock { $0.failure = failure }
        }
    }

    func urlSession(_ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask) {
        // Waiting for a network does not count as connecting; --max-time and --speed-limit limit it.
        awaitConnection(task, isOffline: true)
        if !plan.isSilent { StandardError.print("urlsession: waiting for a network") }
    }

    // MARK: The end

    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
        state.withLock { $0.metrics = metrics }
        plan.recording?.measured(metrics)
        if plan.isVerbose { showUnreportedResponses(metrics) }
    }

    /// Shows the responses that the session handled without telling the delegate: a 304 to the session's own revalidation, or a 401
    /// or 407 for which the session had the password.
    private func showUnreportedResponses(_ metrics: URLSessionTaskMetrics) {
        var shown = state.withLock { $0.shownHeads }
        let last = metrics.transactionMetrics.last
        for transaction in metrics.transactionMetrics where transaction.resourceFetchType == .networkLoad {
            if let text = SecurityText.connection(transaction) { StandardError.write(text) }
            guard let response = transaction.response as? HTTPURLResponse else { continue }
            let head = HeadText.response(response, prefix: "< ")
            if let index = shown.firstIndex(of: head) {
                shown.remove(at: index)
            } else if response.statusCode == 304, last?.resourceFetchType == .localCache {
                StandardError.write("* from the cache: the server answered 304, not modified\n" + head)
            } else {
                StandardError.write("* before that, the session handled this response by itself\n" + head)
            }
        }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        let continuation = state.withLock { state in
            state.error = error
            if error != nil { state.failure = state.failure ?? answers.failure }
            state.response = state.response ?? task.response
            state.connectTimer?.cancel()
            defer { state.continuation = nil }
            return state.continuation
        }
        plan.recording?.ended(task, error, state.withLock { $0.failure })
        continuation?.resume()
    }

    // MARK: What is shown

    private func httpFailure(_ response: URLResponse?) -> ToolFailure? {
        guard let response = response as? HTTPURLResponse, response.statusCode >= 400 else { return nil }
        let wait = plan.attempts.wait(after: response, isFailure: plan.failsOnHTTPError)
        guard plan.failsOnHTTPError || wait != nil else { return nil }
        var failure = ToolFailure(22, "the server answered \(response.statusCode)")
        failure.retryWait = wait
        return failure
    }

    private func excess(_ length: Int64) -> ToolFailure? {
        guard let most = plan.maximumSize, length > most else { return nil }
        return ToolFailure(63, "the body has more than \(most) bytes (--max-filesize)")
    }

    private func show(_ response: URLResponse, of task: URLSessionTask, isFinal: Bool = true) {
        let wasSent = state.withLock { state in
            defer { state.isSent = false }
            return state.isSent
        }
        if plan.isVerbose {
            if !wasSent, let response = response as? HTTPURLResponse {
                // The session does not report that it sends a CONNECT request to a proxy.
                let isOfProxy = response.statusCode == 407
                StandardError.print(isOfProxy ? "* the proxy's response to CONNECT" : "* from the cache; nothing was sent")
            }
            let head = HeadText.response(response, prefix: "< ")
            state.withLock { $0.shownHeads.append(head) }
            StandardError.write(head)
        }
        if let headSink = plan.headSink, let response = response as? HTTPURLResponse {
            let text = (response.headLines + [""]).map { $0 + "\r\n" }.joined()
            do {
                try headSink.write(Data(text.utf8), isHead: true)
            } catch {
                stop(task, because: error)
            }
        }
        if plan.showsHeaders, isFinal {
            let text = HeadText.response(response, prefix: "", isForPeople: sink.isTerminal)
            write(Data(text.utf8), for: task, isHead: true)
        }
    }
}
