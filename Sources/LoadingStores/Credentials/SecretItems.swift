//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// What ``SecretServiceCredentials`` asks of the desktop's Secret Service (freedesktop.org, Secret Service API): items that have
/// attributes, by which they are found, and a secret.
///
/// Each function may wait for the service, and that for the user.
package protocol SecretItems: Sendable {
    /// Whether there is a service to speak to.
    var isAvailable: Bool { get }

    /// All that have these attributes, and perhaps more.
    func items(with attributes: [String: String]) throws(StoreFailure) -> [SecretItem]

    /// In place of one that has the same attributes.
    func store(_ item: SecretItem, label: String) throws(StoreFailure)

    /// All that have these attributes, and perhaps more.
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
    /// Nothing of what is in it.
    package var description: String { "a secret item of \(attributes.count) attributes" }

    package var debugDescription: String { description }

    package var customMirror: Mirror { Mirror(self, children: [:]) }
}
