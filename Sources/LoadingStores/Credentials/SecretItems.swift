// SPDX-License-Identifier: Apache-2.0

package import SystemLibraries

/// The operations of the desktop's Secret Service (freedesktop.org, Secret Service API) that ``SecretServiceCredentials`` uses:
/// items that have a secret and are found by their attributes.
///
/// Each function may wait for the service, which may wait for the user.
package protocol SecretItems: Sendable {
    /// Whether a Secret Service is available.
    var isAvailable: Bool { get }

    /// All items that have at least these attributes.
    func items(with attributes: [String: String]) throws(StoreFailure) -> [SecretItem]

    /// Stores an item, and replaces any item with the same attributes.
    func store(_ item: SecretItem) throws(StoreFailure)

    /// Removes all items that have at least these attributes.
    func removeItems(with attributes: [String: String]) throws(StoreFailure)
}

package typealias SecretItem = SecretService.Item
