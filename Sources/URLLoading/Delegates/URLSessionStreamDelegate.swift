// SPDX-License-Identifier: Apache-2.0

public import Foundation

/// The delegate methods for stream tasks.
///
/// All methods are optional, as in Apple's API.
public protocol URLSessionStreamDelegate: URLSessionTaskDelegate {
    /// Tells the delegate that the read side was closed, by the peer or by the task.
    ///
    /// Bytes that arrived earlier can still be read.
    func urlSession(_ session: URLSession, readClosedFor streamTask: URLSessionStreamTask)

    /// Tells the delegate that the write side was closed.
    func urlSession(_ session: URLSession, writeClosedFor streamTask: URLSessionStreamTask)

    /// Tells the delegate that a new network is available, which may be a better route to the host: only a new task would use it.
    func urlSession(_ session: URLSession, betterRouteDiscoveredFor streamTask: URLSessionStreamTask)

    /// Tells the delegate that the connection became two unopened streams, and that the task is complete and has no further events.
    ///
    /// The streams can be polled, and scheduled in run loops. Closing the output stream closes the write side. When both streams are
    /// closed or released, the connection is closed.
    func urlSession(
        _ session: URLSession, streamTask: URLSessionStreamTask, didBecome inputStream: InputStream, outputStream: OutputStream
    )
}

extension URLSessionStreamDelegate {
    /// Does nothing.
    public func urlSession(_ session: URLSession, readClosedFor streamTask: URLSessionStreamTask) {
        _ = DelegateProbe.note(.readClosed, on: self)
    }

    /// Does nothing.
    public func urlSession(_ session: URLSession, writeClosedFor streamTask: URLSessionStreamTask) {
        _ = DelegateProbe.note(.writeClosed, on: self)
    }

    /// Does nothing.
    public func urlSession(_ session: URLSession, betterRouteDiscoveredFor streamTask: URLSessionStreamTask) {
        _ = DelegateProbe.note(.foundBetterRoute, on: self)
    }

    /// Does nothing: the session then releases the streams, which closes the connection.
    public func urlSession(
        _ session: URLSession, streamTask: URLSessionStreamTask, didBecome inputStream: InputStream, outputStream: OutputStream
    ) {
        _ = DelegateProbe.note(.becameStreams, on: self)
    }
}
