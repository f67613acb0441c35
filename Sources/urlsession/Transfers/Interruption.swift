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

/// Turns the first Ctrl-C into an orderly end; the second one ends the program at once.
final class Interruption<Product: Sendable>: Sendable {
    private struct State {
        var source: (any DispatchSourceSignal)?
        var ending: Task<Product, Never>?
    }

    private let state = Mutex(State())

    init(_ operation: @escaping @Sendable () async -> Product) {
        signal(SIGINT, SIG_IGN)
        state.withLock { state in
            let source = DispatchSource.makeSignalSource(signal: SIGINT, queue: .global())
            source.setEventHandler { [weak self] in
                self?.begin(operation)
            }
            source.resume()
            state.source = source
        }
    }

    var happened: Bool { state.withLock { $0.ending != nil } }

    /// Gives Ctrl-C back its usual meaning, and what the operation produced if it was begun.
    func end() async -> Product? {
        let ending = state.withLock { state in
            state.source?.cancel()
            return state.ending
        }
        signal(SIGINT, SIG_DFL)
        return await ending?.value
    }

    private func begin(_ operation: @escaping @Sendable () async -> Product) {
        state.withLock { state in
            guard state.ending == nil else { exit(130) }
            state.ending = Task { await operation() }
        }
    }
}
