// SPDX-License-Identifier: Apache-2.0

public import Foundation

extension URLSessionTaskDelegate {
    /// Does nothing.
    public func urlSession(_ session: URLSession, didCreateTask task: URLSessionTask) {
        _ = DelegateProbe.note(.createdTask, on: self)
    }

    /// The default for classes that do not implement the method: the request is sent unchanged.
    public func urlSession(
        _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLSession.DelayedRequestDisposition, URLRequest?) -> Void
    ) {
        DelegateCall.answer(
            .delayedRequest, self, otherwise: (.continueLoading, nil),
            asyncForm: { await self.urlSession(session, task: task, willBeginDelayedRequest: request) },
            handler: { completionHandler($0.0, $0.1) }
        )
    }

    /// The default for classes that do not implement the method: the request is sent unchanged.
    ///
    /// - Returns: `.continueLoading`, or the answer of the completion-handler form.
    public func urlSession(
        _ session: URLSession, task: URLSessionTask, willBeginDelayedRequest request: URLRequest
    ) async -> (URLSession.DelayedRequestDisposition, URLRequest?) {
        if DelegateProbe.note(.delayedRequest, .async, on: self) { return (.continueLoading, nil) }
        return await DelegateCall.answer(.delayedRequest, self, otherwise: (.continueLoading, nil)) { handler in
            self.urlSession(session, task: task, willBeginDelayedRequest: request) { handler(($0, $1)) }
        }
    }

    /// Does nothing.
    public func urlSession(_ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask) {
        _ = DelegateProbe.note(.waitsForConnectivity, on: self)
    }

    /// The default for classes that do not implement the method: the redirect is followed.
    public func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        DelegateCall.answer(
            .redirection, self, otherwise: request,
            asyncForm: {
                await self.urlSession(session, task: task, willPerformHTTPRedirection: response, newRequest: request)
            },
            handler: completionHandler
        )
    }

    /// The default for classes that do not implement the method: the redirect is followed.
    ///
    /// - Returns: The new request, or the answer of the completion-handler form.
    public func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest
    ) async -> URLRequest? {
        if DelegateProbe.note(.redirection, .async, on: self) { return request }
        return await DelegateCall.answer(.redirection, self, otherwise: request) { handler in
            self.urlSession(
                session, task: task, willPerformHTTPRedirection: response, newRequest: request, completionHandler: handler
            )
        }
    }

    /// The default for classes that do not implement the method: default handling.
    public func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        DelegateCall.answer(
            .taskChallenge, self, otherwise: (.performDefaultHandling, nil),
            asyncForm: { await self.urlSession(session, task: task, didReceive: challenge) },
            handler: { completionHandler($0.0, $0.1) }
        )
    }

    /// The default for classes that do not implement the method: default handling.
    ///
    /// - Returns: `.performDefaultHandling`, or the answer of the completion-handler form.
    public func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge
    ) async -> (URLSession.AuthChallengeDisposition, URLCredential?) {
        if DelegateProbe.note(.taskChallenge, .async, on: self) { return (.performDefaultHandling, nil) }
        return await DelegateCall.answer(.taskChallenge, self, otherwise: (.performDefaultHandling, nil)) { handler in
            self.urlSession(session, task: task, didReceive: challenge) { handler(($0, $1)) }
        }
    }

    /// The default for classes that do not implement the method: there is no stream.
    public func urlSession(
        _ session: URLSession, task: URLSessionTask,
        needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
    ) {
        DelegateCall.answer(
            .newBodyStream, self, otherwise: BodyStreamAnswer(nil),
            asyncForm: { BodyStreamAnswer(await self.urlSession(session, needNewBodyStreamForTask: task)) },
            handler: { completionHandler($0.stream) }
        )
    }

    /// The default for classes that do not implement the method: there is no stream.
    ///
    /// - Returns: Nil, or the answer of the completion-handler form.
    public func urlSession(
        _ session: URLSession, needNewBodyStreamForTask task: URLSessionTask
    ) async -> InputStream? {
        if DelegateProbe.note(.newBodyStream, .async, on: self) { return nil }
        return await DelegateCall.answer(.newBodyStream, self, otherwise: BodyStreamAnswer(nil)) { handler in
            self.urlSession(session, task: task, needNewBodyStream: { handler(BodyStreamAnswer($0)) })
        }.stream
    }

    /// The default for classes that do not implement the method: there is no stream.
    public func urlSession(
        _ session: URLSession, task: URLSessionTask, needNewBodyStreamFrom offset: Int64,
        completionHandler: @escaping @Sendable (InputStream?) -> Void
    ) {
        DelegateCall.answer(
            .newBodyStreamFromOffset, self, otherwise: BodyStreamAnswer(nil),
            asyncForm: { BodyStreamAnswer(await self.urlSession(session, needNewBodyStreamForTask: task, from: offset)) },
            handler: { completionHandler($0.stream) }
        )
    }

    /// The default for classes that do not implement the method: there is no stream.
    ///
    /// - Returns: Nil, or the answer of the completion-handler form.
    public func urlSession(
        _ session: URLSession, needNewBodyStreamForTask task: URLSessionTask, from offset: Int64
    ) async -> InputStream? {
        if DelegateProbe.note(.newBodyStreamFromOffset, .async, on: self) { return nil }
        return await DelegateCall.answer(.newBodyStreamFromOffset, self, otherwise: BodyStreamAnswer(nil)) { handler in
            self.urlSession(session, task: task, needNewBodyStreamFrom: offset) { handler(BodyStreamAnswer($0)) }
        }.stream
    }

    /// Does nothing.
    public func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    ) {
        _ = DelegateProbe.note(.sentBodyData, on: self)
    }

    /// Does nothing.
    public func urlSession(_ session: URLSession, task: URLSessionTask, didSendRequestHead head: [String]) {
        _ = DelegateProbe.note(.sentRequestHead, on: self)
    }

    /// Does nothing.
    public func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceiveInformationalResponse response: HTTPURLResponse
    ) {
        _ = DelegateProbe.note(.informationalResponse, on: self)
    }

    /// Does nothing.
    public func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
        _ = DelegateProbe.note(.collectedMetrics, on: self)
    }

    /// Does nothing.
    public func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        _ = DelegateProbe.note(.completed, on: self)
    }
}
