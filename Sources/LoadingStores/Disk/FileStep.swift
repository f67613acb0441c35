// SPDX-License-Identifier: Apache-2.0

/// The steps of a file change, at each of which a test can inject a failure or the end of the process.
package enum FileStep: CaseIterable, Hashable, Sendable {
    case openDirectory
    case lock
    case read
    case setAside
    case create
    /// Before each piece of at most ``AtomicFile/pieceSize`` bytes.
    case write
    case sync
    case rename
    case syncDirectory

    /// A test's hook before a step: returns the failure to report, or nil.
    package typealias Fault = @Sendable (FileStep) -> StoreFailure?
}
