// SPDX-License-Identifier: Apache-2.0

/// The optional delegate methods.
package enum DelegateMethod: UInt8, Sendable, Hashable, CaseIterable {
    // Methods with a result, in completion-handler form or in `async` form.
    case sessionChallenge, taskChallenge
    case redirection, newBodyStream, newBodyStreamFromOffset, delayedRequest
    case response, willCacheResponse
    // Methods without a result.
    case becameInvalid, finishedBackgroundEvents
    case createdTask, waitsForConnectivity, sentRequestHead, sentBodyData, informationalResponse, collectedMetrics, completed
    case becameDownload, becameStreamTask, data
    case wroteData, resumedAtOffset, beganFile
    case openedWebSocket, closedWebSocket
    case readClosed, writeClosed, foundBetterRoute, becameStreams
}
