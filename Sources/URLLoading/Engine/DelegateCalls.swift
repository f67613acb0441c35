// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import HTTPWire
internal import LoadingModel

/// Calls delegate methods for one task: on the task's own delegate and, for methods that this delegate lacks, on the session's.
struct DelegateCalls: Sendable {
    let session: URLSession
    let own: DelegateConformances?
    let shared: DelegateConformances?

    /// The methods that may be called for a task whose result goes to a completion handler or an `async` caller.
    private static let methodsForEveryAudience: [DelegateMethod] = [
        .taskChallenge, .redirection, .newBodyStream, .newBodyStreamFromOffset, .delayedRequest, .waitsForConnectivity,
        .sentRequestHead, .sentBodyData, .informationalResponse, .collectedMetrics, .sessionChallenge,
    ]

    /// Whether a delegate might implement a method that has to be called for a task with this audience.
    func mayCallDelegates(for audience: TaskAudience) -> Bool {
        guard own != nil || shared != nil else { return false }
        if case .delegate = audience { return true }
        return Self.methodsForEveryAudience.contains { mayImplement($0) }
    }

    func mayImplement(_ method: DelegateMethod) -> Bool {
        own?.mayImplement(method) == true || shared?.mayImplement(method) == true
    }

    // MARK: Methods without a result

    private func tell<Delegate>(
        _ method: DelegateMethod, _ conformance: (DelegateConformances) -> Delegate?, _ call: (Delegate) -> Void
    ) {
        if let own, let delegate = conformance(own), DelegateCall.tell(method, own.object, { call(delegate) }) { return }
        if let shared, let delegate = conformance(shared) { DelegateCall.tell(method, shared.object) { call(delegate) } }
    }

    func created(_ task: URLSessionTask) {
        tell(.createdTask, \.task) { $0.urlSession(session, didCreateTask: task) }
    }

    func sent(_ task: URLSessionTask, bytes: Int64, total: Int64, expected: Int64) {
        tell(.sentBodyData, \.task) {
            $0.urlSession(
                session, task: task, didSendBodyData: bytes, totalBytesSent: total, totalBytesExpectedToSend: expected
            )
        }
    }

    func sentHead(_ task: URLSessionTask, _ head: RequestHead) {
        tell(.sentRequestHead, \.task) { $0.urlSession(session, task: task, didSendRequestHead: MessageLines.of(head)) }
    }

    func waitsForConnectivity(_ task: URLSessionTask) {
        tell(.waitsForConnectivity, \.task) { $0.urlSession(session, taskIsWaitingForConnectivity: task) }
    }

    func informational(_ task: URLSessionTask, _ response: HTTPURLResponse) {
        tell(.informationalResponse, \.task) { $0.urlSession(session, task: task, didReceiveInformationalResponse: response) }
    }

    func received(_ task: URLSessionDataTask, _ data: Data) {
        tell(.data, \.data) { $0.urlSession(session, dataTask: task, didReceive: data) }
    }

    func became(_ task: URLSessionDataTask, _ download: URLSessionDownloadTask) {
        tell(.becameDownload, \.data) { $0.urlSession(session, dataTask: task, didBecome: download) }
    }

    func became(_ task: URLSessionDataTask, _ stream: URLSessionStreamTask) {
        tell(.becameStreamTask, \.data) { $0.urlSession(session, dataTask: task, didBecome: stream) }
    }

    func wrote(_ task: URLSessionDownloadTask, bytes: Int64, total: Int64, expected: Int64) {
        tell(.wroteData, \.download) {
            $0.urlSession(
                session, downloadTask: task, didWriteData: bytes, totalBytesWritten: total, totalBytesExpectedToWrite: expected
            )
        }
    }

    func resumed(_ task: URLSessionDownloadTask, offset: Int64, expected: Int64) {
        tell(.resumedAtOffset, \.download) {
            $0.urlSession(session, downloadTask: task, didResumeAtOffset: offset, expectedTotalBytes: expected)
        }
    }

    func began(_ task: URLSessionDownloadTask, _ resumeData: Data) {
        tell(.beganFile, \.download) { $0.urlSession(session, downloadTask: task, didBeginFileWithResumeData: resumeData) }
    }

    /// Whether a delegate handles the opening or closing of WebSockets.
    var handlesWebSockets: Bool { mayImplement(.openedWebSocket) || mayImplement(.closedWebSocket) }

    func handle(_ event: WebSocketEvent, of task: URLSessionWebSocketTask) {
        switch event {
        case .opened(let name):
            tell(.openedWebSocket, \.webSocket) { $0.urlSession(session, webSocketTask: task, didOpenWithProtocol: name) }
        case .closed(let code, let reason):
            let code = URLSessionWebSocketTask.CloseCode(rawValue: Int(code)) ?? .invalid
            tell(.closedWebSocket, \.webSocket) {
                $0.urlSession(session, webSocketTask: task, didCloseWith: code, reason: reason)
            }
        case .message, .sent, .ponged: break
        }
    }

    /// Whether a delegate handles events of stream tasks.
    var handlesStreams: Bool {
        mayImplement(.readClosed) || mayImplement(.writeClosed) || mayImplement(.foundBetterRoute) || mayImplement(.becameStreams)
    }

    func handle(_ event: StreamEvent, of task: URLSessionStreamTask) {
        switch event {
        case .readClosed: tell(.readClosed, \.stream) { $0.urlSession(session, readClosedFor: task) }
        case .writeClosed: tell(.writeClosed, \.stream) { $0.urlSession(session, writeClosedFor: task) }
        case .foundBetterRoute: tell(.foundBetterRoute, \.stream) { $0.urlSession(session, betterRouteDiscoveredFor: task) }
        case .read, .wrote, .failed, .captured: break
        }
    }

    func became(_ task: URLSessionStreamTask, _ input: InputStream, _ output: OutputStream) {
        tell(.becameStreams, \.stream) {
            $0.urlSession(session, streamTask: task, didBecome: input, outputStream: output)
        }
    }

    /// Calls the only required delegate method: on the task's own delegate if that is a download delegate, otherwise on the
    /// session's.
    func downloaded(_ task: URLSessionDownloadTask, to location: URL) {
        let delegate = own?.download ?? shared?.download
        delegate?.urlSession(session, downloadTask: task, didFinishDownloadingTo: location)
    }

    func collected(_ task: URLSessionTask, _ metrics: @autoclosure () -> URLSessionTaskMetrics) {
        guard mayImplement(.collectedMetrics) else { return }
        let metrics = metrics()
        tell(.collectedMetrics, \.task) { $0.urlSession(session, task: task, didFinishCollecting: metrics) }
    }

    func completed(_ task: URLSessionTask, _ error: (any Error)?) {
        tell(.completed, \.task) { $0.urlSession(session, task: task, didCompleteWithError: error) }
    }
}
