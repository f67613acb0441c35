// SPDX-License-Identifier: Apache-2.0

public import Foundation

/// The delegate methods for WebSocket tasks.
///
/// All methods are optional, as in Apple's API.
public protocol URLSessionWebSocketDelegate: URLSessionTaskDelegate {
    /// Tells the delegate that the handshake succeeded; `protocol` is the subprotocol that the server chose, or nil.
    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol protocol: String?
    )

    /// Tells the delegate that the server's close frame arrived, either unprompted or in reply to the task's close frame.
    ///
    /// The reason is UTF-8 text.
    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask,
        didCloseWith closeCode: URLSessionWebSocketTask.CloseCode, reason: Data?
    )
}

extension URLSessionWebSocketDelegate {
    /// Does nothing.
    public func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol protocol: String?
    ) {
        _ = DelegateProbe.note(.openedWebSocket, on: self)
    }

    /// Does nothing.
    public func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask,
        didCloseWith closeCode: URLSessionWebSocketTask.CloseCode, reason: Data?
    ) {
        _ = DelegateProbe.note(.closedWebSocket, on: self)
    }
}
