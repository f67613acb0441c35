// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization

/// The requests that a server received, and the connections that wait at its gates.
final class Journal: Sendable {
    private enum Event: Hashable {
        case reached(String)
        case opened(String)
    }

    private struct State {
        var requests: [ScriptedLoopbackServer.Request] = []
        var past: Set<Event> = []
        var isOver = false
        var waiting: [Event: [Int: CheckedContinuation<Void, Never>]] = [:]
        var lastNumber = 0
        /// Waiters that were cancelled before they started to wait.
        var cancelled: Set<Int> = []
    }

    private let state = Mutex(State())

    var requests: [ScriptedLoopbackServer.Request] { state.withLock { $0.requests } }

    func note(_ request: ScriptedLoopbackServer.Request) { state.withLock { $0.requests.append(request) } }

    /// Waits until a gate is opened, or the server stops.
    func pass(_ gate: String) async throws {
        happen(.reached(gate))
        await wait(for: .opened(gate))
        try Task.checkCancellation()
    }

    func open(_ gate: String) { happen(.opened(gate)) }

    /// Waits until a connection reaches a gate, the server stops, or the task is cancelled.
    func reached(_ gate: String) async { await wait(for: .reached(gate)) }

    private func happen(_ event: Event) {
        let waiting = state.withLock { state in
            state.past.insert(event)
            return state.waiting.removeValue(forKey: event) ?? [:]
        }
        for continuation in waiting.values { continuation.resume() }
    }

    /// Resumes all waiters, because the server stops.
    func openAll() {
        let waiting = state.withLock { state in
            state.isOver = true
            defer { state.waiting = [:] }
            return state.waiting.values.flatMap(\.values)
        }
        for continuation in waiting { continuation.resume() }
    }

    private func wait(for event: Event) async {
        let number = state.withLock { state in
            state.lastNumber += 1
            return state.lastNumber
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let shouldResume = state.withLock { state in
                    if state.cancelled.remove(number) != nil || state.isOver || state.past.contains(event) { return true }
                    state.waiting[event, default: [:]][number] = continuation
                    return false
                }
                if shouldResume { continuation.resume() }
            }
        } onCancel: {
            let continuation = state.withLock { state in
                let waiting = state.waiting[event]?.removeValue(forKey: number)
                if waiting == nil { state.cancelled.insert(number) }
                return waiting
            }
            continuation?.resume()
        }
    }
}
