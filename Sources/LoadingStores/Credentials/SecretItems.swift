//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

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
    func store(_ item: SecretItem, label: String) throws(StoreFailure)

    /// Removes all items that have at least these attributes.
    func removeItems(with attributes: [String: String]) throws(StoreFailure)
}

package struct SecretItem: Sendable, Hashable {
    package var attributes: [String: String]
    package var secret: String

    package init(attributes: [String: String], secret: String) {
        self.attributes = attributes
        self.secret = secret
    }
}

extension SecretItem: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Reveals neither the attributes nor the secret.
    package var description: String { "a secret item of \(attributes.count) attributes" }

    package var debugDescription: String { description }

    package var customMirror: Mirror { Mirror(self, children: [:]) }
}
