//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation
import Synchronization

/// The requests that a server received, and the connections that wait at its gates.
final class Journal: Sendable {
    private struct State {
        var requests: [ScriptedLoopbackServer.Request] = []
        var openGates: Set<String> = []
        var isOpen = false
        var waiting: Waiters = [:]
        var reached: Set<String> = []
        var watching: Waiters = [:]
        var lastNumber = 0
        /// Waiters that were cancelled before they started to wait.
        var cancelled: Set<Int> = []
    }

    private let state = Mutex(State())

    var requests: [ScriptedLoopbackServer.Request] { state.withLock { $0.requests } }

    func note(_ request: ScriptedLoopbackServer.Request) { state.withLock { $0.requests.append(request) } }

    /// Waits until a gate is opened, or the server stops.
    func pass(_ gate: String) async throws {
        let watching = state.withLock { state in
            state.reached.insert(gate)
            return state.watching.removeValue(forKey: gate) ?? [:]
        }
        for watcher in watching.values { watcher.resume() }
        await wait(at: gate, in: \.waiting) { $0.isOpen || $0.openGates.contains(gate) }
        try Task.checkCancellation()
    }

    func open(_ gate: String) {
        let waiting = state.withLock { state in
            state.openGates.insert(gate)
            return state.waiting.removeValue(forKey: gate) ?? [:]
        }
        for continuation in waiting.values { continuation.resume() }
    }

    /// Resumes all waiters, because the server stops.
    func openAll() {
        let waiting = state.withLock { state in
            state.isOpen = true
            defer {
                state.waiting = [:]
                state.watching = [:]
            }
            return state.waiting.values.flatMap(\.values) + state.watching.values.flatMap(\.values)
        }
        for continuation in waiting { continuation.resume() }
    }

    /// Waits until a connection reaches a gate, the server stops, or the task is cancelled.
    func reached(_ gate: String) async {
        await wait(at: gate, in: \.watching) { $0.isOpen || $0.reached.contains(gate) }
    }

    private typealias Waiters = [String: [Int: CheckedContinuation<Void, Never>]]

    private func wait(
        at gate: String, in list: any WritableKeyPath<State, Waiters> & Sendable, unless isOver: @Sendable (State) -> Bool
    ) async {
        let number = state.withLock { state in
            state.lastNumber += 1
            return state.lastNumber
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let shouldResume = state.withLock { state in
                    if state.cancelled.remove(number) != nil || isOver(state) { return true }
                    state[keyPath: list][gate, default: [:]][number] = continuation
                    return false
                }
                if shouldResume { continuation.resume() }
            }
        } onCancel: {
            let continuation = state.withLock { state in
                let waiting = state[keyPath: list][gate]?.removeValue(forKey: number)
                if waiting == nil { state.cancelled.insert(number) }
                return waiting
            }
            continuation?.resume()
        }
    }
}
