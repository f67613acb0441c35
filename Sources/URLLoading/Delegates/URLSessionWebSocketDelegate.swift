//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

public import Foundation

/// What a delegate hears of the session's WebSocket tasks.
///
/// All methods are optional, as in Apple's: one that a class does not have does nothing.
public protocol URLSessionWebSocketDelegate: URLSessionTaskDelegate {
    /// The handshake succeeded; `protocol` is the subprotocol that the server chose, or nil.
    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask, didOpenWithProtocol protocol: String?
    )

    /// The server's close frame came: the first, or the answer to the task's own. The reason is text in UTF-8.
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
