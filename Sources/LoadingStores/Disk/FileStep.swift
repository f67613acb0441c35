//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// The steps in which a file is changed, so that a test can have each of them fail, or the process end before it.
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

    /// What a test may have happen before a step: the failure to report, or nil.
    package typealias Fault = @Sendable (FileStep) -> StoreFailure?
}
