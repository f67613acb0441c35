//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

public import Foundation

/// What a delegate hears of the session's stream tasks.
///
/// All methods are optional, as in Apple's: one that a class does not have does nothing.
public protocol URLSessionStreamDelegate: URLSessionTaskDelegate {
    /// Nothing more can be read: the peer has ended its side, or the task closed its own. What came before can still be read.
    func urlSession(_ session: URLSession, readClosedFor streamTask: URLSessionStreamTask)

    /// The task's writing side is closed.
    func urlSession(_ session: URLSession, writeClosedFor streamTask: URLSessionStreamTask)

    /// The machine has a network that it did not have, by which the host may be reached better: a new task would find out.
    func urlSession(_ session: URLSession, betterRouteDiscoveredFor streamTask: URLSessionStreamTask)

    /// The connection is these two streams now, which are not opened, and the task is complete; nothing more is told of it.
    ///
    /// They can be polled, and scheduled in run loops. Closing the output stream ends the writing side; what is left of the connection when both
    /// are closed, or released, is ended.
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

    /// Closes both streams, and so the connection.
    public func urlSession(
        _ session: URLSession, streamTask: URLSessionStreamTask, didBecome inputStream: InputStream, outputStream: OutputStream
    ) {
        _ = DelegateProbe.note(.becameStreams, on: self)
    }
}
