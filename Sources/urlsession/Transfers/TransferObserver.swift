//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation
import Synchronization
import URLLoading

/// The delegate of the tool's one task: writes the body, counts, and ends ``load(_:)``.
final class TransferObserver: NSObject, URLSessionDataDelegate, URLSessionDownloadDelegate, ChallengeAnswering {
    struct Plan: Sendable {
        var redirects = RedirectRule()
        var showsHeaders = false
        var failsOnHTTPError = false
        var isVerbose = false
    }

    struct State: Sendable {
        var continuation: CheckedContinuation<Void, Never>?
        var response: URLResponse?
        var error: (any Error)?
        /// Why the tool itself stopped the load; it explains the cancellation that follows.
        var failure: ToolFailure?
        var metrics: URLSessionTaskMetrics?
        var redirects = 0
        var received: Int64 = 0
        var offset: Int64?
    }

    let plan: Plan
    let answers: ChallengeAnswers
    let sink: BodySink
    let meter: ProgressMeter?
    private let takeFile: (@Sendable (URL, URLResponse?) throws -> Void)?
    private let bodyStream: Mutex<(@Sendable () -> InputStream?)?>
    private let state = Mutex(State())

    init(
        plan: Plan, answers: ChallengeAnswers, sink: BodySink, meter: ProgressMeter? = nil,
        bodyStream: (@Sendable () -> InputStream?)? = nil, takeFile: (@Sendable (URL, URLResponse?) throws -> Void)? = nil
    ) {
        self.plan = plan
        self.answers = answers
        self.sink = sink
        self.meter = meter
        self.takeFile = takeFile
        self.bodyStream = Mutex(bodyStream)
    }

    /// Runs the task to its end and says how it went.
    func load(_ task: URLSessionTask) async -> State {
        await withCheckedContinuation { continuation in
            state.withLock { $0.continuation = continuation }
            task.resume()
        }
        meter?.finish()
        return state.withLock { $0 }
    }

    private func stop(_ task: URLSessionTask, because failure: ToolFailure) {
        state.withLock { $0.failure = $0.failure ?? failure }
        task.cancel()
    }

    // MARK: Requests

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        let number = state.withLock { state in
            state.redirects += 1
            return state.redirects
        }
        do throws(ToolFailure) {
            guard try plan.redirects.admits(number) else { return completionHandler(nil) }
            show(response, of: task)
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
        let open = bodyStream.withLock { stream in
            defer { stream = nil }
            return stream
        }
        completionHandler(open?())
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    ) {
        meter?.update(totalBytesSent, of: totalBytesExpectedToSend)
    }

    // MARK: Data

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        state.withLock { $0.response = response }
        show(response, of: dataTask)
        if let failure = httpFailure(response) {
            state.withLock { $0.failure = failure }
            return completionHandler(.cancel)
        }
        completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        let isWanted = state.withLock { state in
            state.received += Int64(data.count)
            return state.failure == nil
        }
        if isWanted {
            write(data, for: dataTask)
        }
    }

    private func write(_ data: Data, for task: URLSessionTask) {
        do {
            try sink.write(data)
        } catch {
            stop(task, because: ToolFailure(23, error.message))
        }
    }

    // MARK: Downloads

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64, totalBytesWritten: Int64,
        totalBytesExpectedToWrite: Int64
    ) {
        state.withLock { $0.received = totalBytesWritten }
        meter?.update(totalBytesWritten, of: totalBytesExpectedToWrite)
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
        expectedTotalBytes: Int64
    ) {
        state.withLock { $0.offset = fileOffset }
        meter?.begin(at: fileOffset)
    }

    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
        if let failure = httpFailure(downloadTask.response) {
            return state.withLock { $0.failure = failure }
        }
        do {
            try takeFile?(location, downloadTask.response)
        } catch {
            let failure = error as? ToolFailure ?? ToolFailure(23, ToolFailure.describe(error))
            state.withLock { $0.failure = failure }
        }
    }

    // MARK: The end

    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
        state.withLock { $0.metrics = metrics }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        let continuation = state.withLock { state in
            state.error = error
            if error != nil { state.failure = state.failure ?? answers.failure }
            state.response = state.response ?? task.response
            defer { state.continuation = nil }
            return state.continuation
        }
        continuation?.resume()
    }

    // MARK: What is shown

    private func httpFailure(_ response: URLResponse?) -> ToolFailure? {
        guard plan.failsOnHTTPError, let response = response as? HTTPURLResponse, response.statusCode >= 400 else { return nil }
        return ToolFailure(22, "the server answered \(response.statusCode)")
    }

    private func show(_ response: URLResponse, of task: URLSessionTask) {
        if plan.isVerbose {
            StandardError.write(HeadText.request(task.currentRequest ?? task.originalRequest, prefix: "> "))
            StandardError.write(HeadText.response(response, prefix: "< "))
        }
        if plan.showsHeaders {
            write(Data(HeadText.response(response, prefix: "").utf8), for: task)
        }
    }
}
