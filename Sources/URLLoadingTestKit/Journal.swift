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

/// What a server saw, and who waits at which gate.
final class Journal: Sendable {
    private struct State {
        var requests: [ScriptedLoopbackServer.Request] = []
        var openGates: Set<String> = []
        var isOpen = false
        var waiting: [String: [CheckedContinuation<Void, Never>]] = [:]
        var reached: Set<String> = []
        var watching: [String: [CheckedContinuation<Void, Never>]] = [:]
    }

    private let state = Mutex(State())

    var requests: [ScriptedLoopbackServer.Request] { state.withLock { $0.requests } }

    func note(_ request: ScriptedLoopbackServer.Request) { state.withLock { $0.requests.append(request) } }

    /// Waits until a gate is open.
    func pass(_ gate: String) async throws {
        let watching = state.withLock { state in
            state.reached.insert(gate)
            return state.watching.removeValue(forKey: gate) ?? []
        }
        for watcher in watching { watcher.resume() }
        await withCheckedContinuation { continuation in
            let isOpen = state.withLock { state in
                if state.isOpen || state.openGates.contains(gate) { return true }
                state.waiting[gate, default: []].append(continuation)
                return false
            }
            if isOpen { continuation.resume() }
        }
        try Task.checkCancellation()
    }

    func open(_ gate: String) {
        let waiting = state.withLock { state in
            state.openGates.insert(gate)
            return state.waiting.removeValue(forKey: gate) ?? []
        }
        for continuation in waiting { continuation.resume() }
    }

    /// The server stops: nothing waits any more.
    func openAll() {
        let waiting = state.withLock { state in
            state.isOpen = true
            defer {
                state.waiting = [:]
                state.watching = [:]
            }
            return Array(state.waiting.values.joined()) + Array(state.watching.values.joined())
        }
        for continuation in waiting { continuation.resume() }
    }

    /// Waits until a connection has come to a gate, or the server stops.
    func reached(_ gate: String) async {
        await withCheckedContinuation { continuation in
            let isThere = state.withLock { state in
                if state.isOpen || state.reached.contains(gate) { return true }
                state.watching[gate, default: []].append(continuation)
                return false
            }
            if isThere { continuation.resume() }
        }
    }
}
