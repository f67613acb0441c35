// SPDX-License-Identifier: Apache-2.0

public import Foundation

extension Notification.Name {
    /// Posted when the credentials of a storage have changed; the object is the ``URLCredentialStorage``.
    public static let NSURLCredentialStorageChanged = Notification.Name("NSURLCredentialStorageChangedNotification")
}

/// The option of ``URLCredentialStorage/remove(_:for:options:)`` that, if true, also removes a credential with
/// ``URLCredential/Persistence/synchronizable`` persistence.
public let NSURLCredentialStorageRemoveSynchronizableCredentials = "NSURLCredentialStorageRemoveSynchronizableCredentials"
