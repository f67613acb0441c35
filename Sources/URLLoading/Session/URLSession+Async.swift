//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

public import Foundation
internal import LoadingModel

/// The methods that suspend until the result is there. Results go straight from the event loop to the caller; cancelling the Swift
/// task cancels the load, which then throws `URLError.cancelled`.
extension URLSession {
    /// Loads a request into memory.
    ///
    /// - Returns: The body and the response, whatever its status.
    /// - Throws: A `URLError` that says why it failed; an error of the app's own where a ``URLProtocol`` class reports one.
    public nonisolated(nonsending) func data(for request: URLRequest) async throws -> (Data, URLResponse) {
        try await data(for: request, delegate: nil)
    }

    /// Loads a URL into memory.
    ///
    /// - Returns: The body and the response, whatever its status.
    /// - Throws: A `URLError` that says why it failed; an error of the app's own where a ``URLProtocol`` class reports one.
    public nonisolated(nonsending) func data(from url: URL) async throws -> (Data, URLResponse) {
        try await data(for: URLRequest(url: url), delegate: nil)
    }

    /// Loads a request into memory, telling a delegate of the task's own besides the session's.
    ///
    /// - Returns: The body and the response, whatever its status.
    /// - Throws: A `URLError` that says why it failed; an error of the app's own where a ``URLProtocol`` class reports one.
    public nonisolated(nonsending) func data(
        for request: URLRequest, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, URLResponse) {
        if delegate == nil, let answer = answerAtOnce(request) { return answer }
        return try await collectingTask(request, delegate).data()
    }

    /// Loads a URL into memory, telling a delegate of the task's own besides the session's.
    ///
    /// - Returns: The body and the response, whatever its status.
    /// - Throws: A `URLError` that says why it failed; an error of the app's own where a ``URLProtocol`` class reports one.
    public nonisolated(nonsending) func data(
        from url: URL, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, URLResponse) {
        try await data(for: URLRequest(url: url), delegate: delegate)
    }

    /// Sends a file as the request's body and loads the answer into memory.
    ///
    /// - Returns: The answer's body and the response, whatever its status.
    /// - Throws: A `URLError` that says why it failed; an error of the app's own where a ``URLProtocol`` class reports one.
    public nonisolated(nonsending) func upload(
        for request: URLRequest, fromFile fileURL: URL
    ) async throws -> (Data, URLResponse) {
        try await upload(for: request, fromFile: fileURL, delegate: nil)
    }

    /// Sends data as the request's body and loads the answer into memory.
    ///
    /// - Returns: The answer's body and the response, whatever its status.
    /// - Throws: A `URLError` that says why it failed; an error of the app's own where a ``URLProtocol`` class reports one.
    public nonisolated(nonsending) func upload(for request: URLRequest, from bodyData: Data) async throws -> (Data, URLResponse) {
        try await upload(for: request, from: bodyData, delegate: nil)
    }

    /// Sends a file as the request's body and loads the answer into memory, telling a delegate of the task's own.
    ///
    /// - Returns: The answer's body and the response, whatever its status.
    /// - Throws: A `URLError` that says why it failed; an error of the app's own where a ``URLProtocol`` class reports one.
    public nonisolated(nonsending) func upload(
        for request: URLRequest, fromFile fileURL: URL, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, URLResponse) {
        let task = uploadTask(request, .file(fileURL), .caller)
        announce(task, delegate: delegate)
        return try await task.data()
    }

    /// Sends data as the request's body and loads the answer into memory, telling a delegate of the task's own.
    ///
    /// - Returns: The answer's body and the response, whatever its status.
    /// - Throws: A `URLError` that says why it failed; an error of the app's own where a ``URLProtocol`` class reports one.
    public nonisolated(nonsending) func upload(
        for request: URLRequest, from bodyData: Data, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, URLResponse) {
        let task = uploadTask(request, .data(bodyData), .caller)
        announce(task, delegate: delegate)
        return try await task.data()
    }

    /// Continues an earlier upload and loads the answer into memory, telling a delegate of the task's own.
    ///
    /// As ``URLSession/uploadTask(withResumeData:)``.
    ///
    /// - Returns: The answer's body and the response, whatever its status.
    /// - Throws: A `URLError` that says why it failed; its ``Foundation/URLError/uploadTaskResumeData`` continues the upload, where that is
    ///   possible.
    public nonisolated(nonsending) func upload(
        resumeFrom resumeData: Data, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, URLResponse) {
        let task = uploadTask(resuming: resumeData, .caller)
        announce(task, delegate: delegate)
        return try await task.data()
    }

    /// Loads a request into a file in the temporary directory.
    ///
    /// The file stays until the app moves or deletes it.
    ///
    /// - Returns: The file and the response, whatever its status.
    /// - Throws: A `URLError` that says why it failed; its ``Foundation/URLError/downloadTaskResumeData`` resumes what has
    ///   come, where that is possible.
    public nonisolated(nonsending) func download(
        for request: URLRequest, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (URL, URLResponse) {
        let task = downloadTask(request, nil, .caller)
        announce(task, delegate: delegate)
        return try await task.file()
    }

    /// Loads a URL into a file in the temporary directory.
    ///
    /// The file stays until the app moves or deletes it.
    ///
    /// - Returns: The file and the response, whatever its status.
    /// - Throws: A `URLError` that says why it failed; its ``Foundation/URLError/downloadTaskResumeData`` resumes what has
    ///   come, where that is possible.
    public nonisolated(nonsending) func download(
        from url: URL, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (URL, URLResponse) {
        try await download(for: URLRequest(url: url), delegate: delegate)
    }

    /// Resumes an earlier download.
    ///
    /// The file stays until the app moves or deletes it.
    ///
    /// - Returns: The file and the response, whatever its status.
    /// - Throws: A `URLError` that says why it failed; its ``Foundation/URLError/downloadTaskResumeData`` resumes what has
    ///   come, where that is possible.
    public nonisolated(nonsending) func download(
        resumeFrom resumeData: Data, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (URL, URLResponse) {
        let task = downloadTask(nil, resumeData, .caller)
        announce(task, delegate: delegate)
        return try await task.file()
    }

    /// What the cache has fresh, where nobody wants to hear how it was loaded.
    ///
    /// Cancelled callers take the long way, and are told.
    @inline(never)
    private func answerAtOnce(_ request: URLRequest) -> (Data, URLResponse)? {
        let equipment = equipment
        guard conformances == nil, equipment.customClasses.isEmpty, !equipment.memory.isPartlyOfTheApp,
            let (response, data) = equipment.service.answerAtOnce(request.loadRequest),
            !Task.isCancelled, !registry.isClosed
        else { return nil }
        return (data, URLResponse.make(response))
    }

    /// Apart from the async methods, and out of line, so that what making a task needs takes no room while the caller waits.
    @inline(never)
    private func collectingTask(_ request: URLRequest, _ delegate: (any URLSessionTaskDelegate)?) -> URLSessionDataTask {
        let task = URLSessionDataTask(
            session: self, identifier: registry.nextIdentifier(), request: request, delivery: .collect, audience: .caller
        )
        announce(task, delegate: delegate)
        return task
    }

    // MARK: About the session

    /// The tasks that have not completed, also those never resumed.
    public var tasks: ([URLSessionDataTask], [URLSessionUploadTask], [URLSessionDownloadTask]) {
        get async {
            let sorted = TasksByKind(await settledTasks)
            return (sorted.data, sorted.upload, sorted.download)
        }
    }

    /// The tasks that have not completed, also those never resumed.
    public var allTasks: [URLSessionTask] {
        get async { await settledTasks }
    }

    /// Those of a background session as they are once the delegate's methods that run now have returned, and it is durable that the app
    /// knows: a program may end when none is left.
    private var settledTasks: [URLSessionTask] {
        get async {
            // A queue that the app has suspended says nothing before it goes on.
            guard equipment.background != nil, !delegateQueue.isSuspended else { return watchedTasks }
            return await withCheckedContinuation { continuation in
                delegateQueue.addOperation {
                    // Behind urlSessionDidFinishEvents, where the last end made that due.
                    self.delegateQueue.addOperation { continuation.resume(returning: self.watchedTasks) }
                }
            }
        }
    }

    /// Empties what the session remembers; see `reset(completionHandler:)`.
    public nonisolated(nonsending) func reset() async {
        await withUnsafeContinuation { continuation in renew(.reset) { continuation.resume() } }
    }

    /// Makes what the session remembers durable; see `flush(completionHandler:)`.
    public nonisolated(nonsending) func flush() async {
        await withUnsafeContinuation { continuation in renew(.flush) { continuation.resume() } }
    }
}
