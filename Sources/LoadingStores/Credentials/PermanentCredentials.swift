// SPDX-License-Identifier: Apache-2.0

/// A backing store for credentials that outlast the process: the desktop's Secret Service, an encrypted file.
///
/// All methods except ``mayHaveChanged()`` may wait for the disk, another process, or the user who has to unlock a keyring; a
/// ``CredentialStore`` calls them on its own queue, one call at a time. Several processes may use the store at once without
/// losing each other's changes.
package protocol PermanentCredentials: Sendable {
    /// The name of the store in warnings.
    var place: String { get }

    /// Whether loading again may return something else. Does not wait.
    func mayHaveChanged() -> Bool

    /// Loads all credentials.
    ///
    /// Returns nil if the stored data was damaged and set aside, so that only the caller still has the credentials.
    func load() throws(StoreFailure) -> [StoredCredential]?

    /// Applies changes in order and makes them durable.
    ///
    /// - Parameters:
    ///   - changes: The changes, oldest first.
    ///   - known: The credentials that the caller knows, with the changes applied; used only if the stored data is damaged.
    /// - Throws: The reason why a change could not be made.
    func apply(_ changes: [CredentialChange], knowing known: [StoredCredential]) throws(StoreFailure)
}
