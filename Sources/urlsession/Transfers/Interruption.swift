// SPDX-License-Identifier: Apache-2.0

import Foundation
import Synchronization

/// Makes the first Ctrl-C run an operation that ends a load in an orderly way; the second Ctrl-C ends the program at once.
final class Interruption<Product: Sendable>: Sendable {
    private let ending = Mutex<Task<Product, Never>?>(nil)

    init(_ operation: @escaping @Sendable () async -> Product) {
        SignalActions.set(SIGINT) { [weak self] in self?.begin(operation) }
    }

    var happened: Bool { ending.withLock { $0 != nil } }

    /// Restores the default action of Ctrl-C, and returns the result of the operation if it was started.
    func end() async -> Product? {
        SignalActions.clear(SIGINT)
        return await ending.withLock { $0 }?.value
    }

    private func begin(_ operation: @escaping @Sendable () async -> Product) {
        ending.withLock { ending in
            guard ending == nil else { exit(130) }
            ending = Task { await operation() }
        }
    }
}
