//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// The delegate methods that a class may leave out.
package enum DelegateMethod: UInt8, Sendable, Hashable, CaseIterable {
    // Those that are asked: in completion-handler form or in `async` form.
    case sessionChallenge, taskChallenge
    case redirection, newBodyStream, newBodyStreamFromOffset, delayedRequest
    case response, willCacheResponse
    // Those that are told.
    case becameInvalid, finishedBackgroundEvents
    case createdTask, waitsForConnectivity, sentRequestHead, sentBodyData, informationalResponse, collectedMetrics, completed
    case becameDownload, becameStreamTask, data
    case wroteData, resumedAtOffset, beganFile
    case openedWebSocket, closedWebSocket
    case readClosed, writeClosed, foundBetterRoute, becameStreams
}
