// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import LoadingModel

/// A delegate and the protocols it conforms to, looked up once for its session or task.
final class DelegateConformances: Sendable {
    let object: any URLSessionDelegate
    let task: (any URLSessionTaskDelegate)?
    let data: (any URLSessionDataDelegate)?
    let download: (any URLSessionDownloadDelegate)?
    let webSocket: (any URLSessionWebSocketDelegate)?
    let stream: (any URLSessionStreamDelegate)?

    init(_ delegate: any URLSessionDelegate) {
        object = delegate
        task = delegate as? any URLSessionTaskDelegate
        data = delegate as? any URLSessionDataDelegate
        download = delegate as? any URLSessionDownloadDelegate
        webSocket = delegate as? any URLSessionWebSocketDelegate
        stream = delegate as? any URLSessionStreamDelegate
    }

    /// Whether the delegate's class might implement a method; for a class that conforms to the protocol, true until a first call
    /// shows the contrary.
    func mayImplement(_ method: DelegateMethod) -> Bool {
        let conforms =
            switch method {
            case .sessionChallenge, .becameInvalid, .finishedBackgroundEvents: true
            case .taskChallenge, .redirection, .newBodyStream, .newBodyStreamFromOffset, .delayedRequest, .createdTask,
                .waitsForConnectivity, .sentRequestHead, .sentBodyData, .informationalResponse, .collectedMetrics, .completed:
                task != nil
            case .response, .willCacheResponse, .becameDownload, .becameStreamTask, .data: data != nil
            case .wroteData, .resumedAtOffset, .beganFile: download != nil
            case .openedWebSocket, .closedWebSocket: webSocket != nil
            case .readClosed, .writeClosed, .foundBetterRoute, .becameStreams: stream != nil
            }
        return conforms && DelegateForms.form(of: method, in: type(of: object)) != .absent
    }
}
