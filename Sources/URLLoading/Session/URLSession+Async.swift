// SPDX-License-Identifier: Apache-2.0

public import Foundation
internal import LoadingModel

/// The async methods. The event loop resumes the caller directly with the result. Canceling the Swift task cancels the load, which
/// then throws `URLError.cancelled`.
extension URLSession {
    /// Loads a request into memory.
    ///
    /// - Returns: The body and the response, whatever its status.
    /// - Throws: A `URLError`, or the error that a ``URLProtocol`` class of the app reports.
    public nonisolated(nonsending) func data(for request: URLRequest) async throws -> (Data, URLResponse) {
        try await data(for: request, delegate: nil)
    }

    /// Loads a URL into memory.
    ///
    /// - Returns: The body and the response, whatever its status.
    /// - Throws: A `URLError`, or the error that a ``URLProtocol`` class of the app reports.
    public nonisolated(nonsending) func data(from url: URL) async throws -> (Data, URLResponse) {
        try await data(for: URLRequest(url: url), delegate: nil)
    }

    /// Loads a request into memory, with a task-specific delegate in addition to the session's.
    ///
    /// - Returns: The body and the response, whatever its status.
    /// - Throws: A `URLError`, or the error that a ``URLProtocol`` class of the app reports.
    public nonisolated(nonsending) func data(
        for request: URLRequest, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, URLResponse) {
        if delegate == nil, let answer = immediateResponse(request) { return answer }
        return try await collectingTask(request, delegate).data()
    }

    /// Loads a URL into memory, with a task-specific delegate in addition to the session's.
    ///
    /// - Returns: The body and the response, whatever its status.
    /// - Throws: A `URLError`, or the error that a ``URLProtocol`` class of the app reports.
    public nonisolated(nonsending) func data(
        from url: URL, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, URLResponse) {
        try await data(for: URLRequest(url: url), delegate: delegate)
    }

    /// Uploads a file as the request body and loads the response into memory.
    ///
    /// - Returns: The response body and the response, whatever its status.
    /// - Throws: A `URLError`, or the error that a ``URLProtocol`` class of the app reports.
    public nonisolated(nonsending) func upload(
        for request: URLRequest, fromFile fileURL: URL
    ) async throws -> (Data, URLResponse) {
        try await upload(for: request, fromFile: fileURL, delegate: nil)
    }

    /// Uploads data as the request body and loads the response into memory.
    ///
    /// - Returns: The response body and the response, whatever its status.
    /// - Throws: A `URLError`, or the error that a ``URLProtocol`` class of the app reports.
    public nonisolated(nonsending) func upload(for request: URLRequest, from bodyData: Data) async throws -> (Data, URLResponse) {
        try await upload(for: request, from: bodyData, delegate: nil)
    }

    /// Uploads a file as the request body and loads the response into memory, with a task-specific delegate.
    ///
    /// - Returns: The response body and the response, whatever its status.
    /// - Throws: A `URLError`, or the error that a ``URLProtocol`` class of the app reports.
    public nonisolated(nonsending) func upload(
        for request: URLRequest, fromFile fileURL: URL, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, URLResponse) {
        try await announced(uploadTask(request, .file(fileURL), .caller), delegate).data()
    }

    /// Uploads data as the request body and loads the response into memory, with a task-specific delegate.
    ///
    /// - Returns: The response body and the response, whatever its status.
    /// - Throws: A `URLError`, or the error that a ``URLProtocol`` class of the app reports.
    public nonisolated(nonsending) func upload(
        for request: URLRequest, from bodyData: Data, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, URLResponse) {
        try await announced(uploadTask(request, .data(bodyData), .caller), delegate).data()
    }

    /// Resumes an earlier upload and loads the response into memory, with a task-specific delegate.
    ///
    /// See ``URLSession/uploadTask(withResumeData:)``.
    ///
    /// - Returns: The response body and the response, whatever its status.
    /// - Throws: A `URLError`. If the upload can be resumed, the error has ``Foundation/URLError/uploadTaskResumeData``.
    public nonisolated(nonsending) func upload(
        resumeFrom resumeData: Data, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (Data, URLResponse) {
        try await announced(uploadTask(resuming: resumeData, .caller), delegate).data()
    }

    /// Downloads the response to a request into a file in the temporary directory.
    ///
    /// The file remains until the app moves or deletes it.
    ///
    /// - Returns: The file and the response, whatever its status.
    /// - Throws: A `URLError`. If the download can be resumed, the error has ``Foundation/URLError/downloadTaskResumeData``.
    public nonisolated(nonsending) func download(
        for request: URLRequest, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (URL, URLResponse) {
        try await announced(downloadTask(request, nil, .caller), delegate).file()
    }

    /// Downloads a URL to a file in the temporary directory.
    ///
    /// The file remains until the app moves or deletes it.
    ///
    /// - Returns: The file and the response, whatever its status.
    /// - Throws: A `URLError`. If the download can be resumed, the error has ``Foundation/URLError/downloadTaskResumeData``.
    public nonisolated(nonsending) func download(
        from url: URL, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (URL, URLResponse) {
        try await download(for: URLRequest(url: url), delegate: delegate)
    }

    /// Resumes an earlier download.
    ///
    /// The file remains until the app moves or deletes it.
    ///
    /// - Returns: The file and the response, whatever its status.
    /// - Throws: A `URLError`. If the download can be resumed, the error has ``Foundation/URLError/downloadTaskResumeData``.
    public nonisolated(nonsending) func download(
        resumeFrom resumeData: Data, delegate: (any URLSessionTaskDelegate)? = nil
    ) async throws -> (URL, URLResponse) {
        try await announced(downloadTask(nil, resumeData, .caller), delegate).file()
    }

    /// Returns a fresh cached response without making a task, if no delegate must be notified of the load.
    ///
    /// Returns nil if the Swift task is cancelled: the ordinary load then throws.
    @inline(never)
    private func immediateResponse(_ request: URLRequest) -> (Data, URLResponse)? {
        let equipment = equipment
        guard conformances == nil, equipment.customClasses.isEmpty, !equipment.memory.hasAppSubclasses,
            let (response, data) = equipment.service.immediateResponse(request.loadRequest),
            !Task.isCancelled, !registry.isClosed
        else { return nil }
        return (data, URLResponse.make(response))
    }

    /// Makes a task in a function that is not inlined, so that this step takes no space in the frames of `async` methods that wait.
    @inline(never)
    private func collectingTask(_ request: URLRequest, _ delegate: (any URLSessionTaskDelegate)?) -> URLSessionDataTask {
        announced(
            URLSessionDataTask(
                session: self, identifier: registry.nextIdentifier(), request: request, delivery: .collect, audience: .caller),
            delegate)
    }

    // MARK: State of the session

    /// The tasks that have not completed, including tasks that were never resumed.
    public var tasks: ([URLSessionDataTask], [URLSessionUploadTask], [URLSessionDownloadTask]) {
        get async {
            let sorted = TasksByKind(await settledTasks)
            return (sorted.data, sorted.upload, sorted.download)
        }
    }

    /// The tasks that have not completed, including tasks that were never resumed.
    public var allTasks: [URLSessionTask] {
        get async { await settledTasks }
    }

    /// The tasks that have not completed.
    ///
    /// A program with a background session can exit as soon as no task is listed. Therefore this property first waits in such a
    /// session: the delegate methods that are running must have returned, and the daemon must have durably recorded that the app
    /// knows the results of the completed tasks.
    private var settledTasks: [URLSessionTask] {
        get async {
            // On a suspended queue, the operations would wait for the app to resume the queue.
            guard equipment.background != nil, !delegateQueue.isSuspended else { return tasksReportingCounts }
            return await withCheckedContinuation { continuation in
                delegateQueue.addOperation {
                    // The second operation runs after `urlSessionDidFinishEvents`, which the last completion may have queued.
                    self.delegateQueue.addOperation { continuation.resume(returning: self.tasksReportingCounts) }
                }
            }
        }
    }

    /// Empties the stores of the session; see `reset(completionHandler:)`.
    public nonisolated(nonsending) func reset() async {
        await withUnsafeContinuation { continuation in equipment.renew(.reset) { continuation.resume() } }
    }

    /// Writes the stores of the session to disk; see `flush(completionHandler:)`.
    public nonisolated(nonsending) func flush() async {
        await withUnsafeContinuation { continuation in equipment.renew(.flush) { continuation.resume() } }
    }
}
