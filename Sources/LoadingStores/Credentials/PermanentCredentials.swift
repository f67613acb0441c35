//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// A place where credentials outlast the process: the desktop's Secret Service, an encrypted file.
///
/// Everything but ``mayHaveChanged()`` may wait, for the disk, another process, or the user who has to unlock a keyring; a
/// ``CredentialStore`` calls it on a queue of its own, one call at a time. Several processes may use the place at once, and none
/// undoes what another has done.
package protocol PermanentCredentials: Sendable {
    /// What a warning calls it.
    var place: String { get }

    /// Whether loading again may show something else. Does not wait.
    func mayHaveChanged() -> Bool

    /// All there are.
    ///
    /// Nil where what was there turned out damaged and was set aside, so that what the caller knows is all that is left.
    func load() throws(StoreFailure) -> [KeptCredential]?

    /// Makes changes, one after the other, durable.
    ///
    /// - Parameters:
    ///   - changes: Often none: then there is something to do only where the place has lost what it had.
    ///   - known: What the caller believes to be kept, the changes included; used only where what was there turns out damaged.
    /// - Throws: What kept a change from being made.
    func apply(_ changes: [CredentialChange], knowing known: [KeptCredential]) throws(StoreFailure)
}
