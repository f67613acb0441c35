// SPDX-License-Identifier: Apache-2.0

public import Foundation

extension Notification.Name {
    /// Posted when the cookies of a storage have changed, or may have changed; the object is the ``HTTPCookieStorage``.
    public static let NSHTTPCookieManagerCookiesChanged = Notification.Name("NSHTTPCookieManagerCookiesChangedNotification")

    /// Posted when a storage's accept policy has changed; the object is the ``HTTPCookieStorage``.
    public static let NSHTTPCookieManagerAcceptPolicyChanged =
        Notification.Name("NSHTTPCookieManagerAcceptPolicyChangedNotification")
}
