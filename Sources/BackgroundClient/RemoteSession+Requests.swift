//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import BackgroundProtocol
package import FoundationEssentials
package import LoadingModel
import SystemThreads

/// What is asked of the daemon's session, beside tasks.
extension RemoteSession {
    package func renew(_ renewal: Renewal, completion: @escaping @Sendable () -> Void) {
        let request = monitor.locked { nextRequest() }
        ask(.renew(renewal, request: request), request) { _ in completion() }
    }

    package func proxies(for url: URL) async throws(LoadError) -> [URL?] {
        let request = monitor.locked { nextRequest() }
        let answer = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                ask(.proxies(url, request: request), request) { continuation.resume(returning: $0) }
                if Task.isCancelled { giveUp(request) }
            }
        } onCancel: {
            giveUp(request)
        }
        switch answer {
        case .proxies(let proxies, _): return proxies
        case .failed(let error, _): throw error
        case nil where Task.isCancelled: throw .cancelled
        default: throw LoadError(.backgroundSessionDisconnected, "urlsessiond went away")
        }
    }

    private func nextRequest() -> Int {
        lastRequest += 1
        return lastRequest
    }

    private func ask(_ message: ClientMessage, _ request: Int, _ answer: @escaping @Sendable (DaemonMessage?) -> Void) {
        let isAsked = monitor.locked {
            guard case .attached = standing else { return false }
            requests[request] = answer
            say(message)
            return true
        }
        if !isAsked { answer(nil) }
    }

    /// Nobody waits for the answer any more.
    private func giveUp(_ request: Int) { monitor.locked { requests.removeValue(forKey: request) }?(nil) }
}
