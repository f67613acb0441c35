// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A user name and a password; the password is never displayed.
struct Login: Sendable, CustomStringConvertible, CustomReflectable {
    let user: String
    let password: String

    /// Parses a login as curl does: the user name ends at the first colon, and the password may contain colons.
    ///
    /// If there is no colon, the user is asked for the password. A password may be empty.
    ///
    /// - Throws: If the password is missing, and the user cannot be asked for it.
    init(_ text: String, asking question: String) throws(ToolFailure) {
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        user = String(parts[0])
        password = parts.count > 1 ? String(parts[1]) : try PasswordPrompt.askOnce("Enter \(question) '\(user)'")
    }

    init(user: String, password: String) {
        self.user = user
        self.password = password
    }

    /// The user name and password in a URL; nil if the URL has no user name, or if they are not UTF-8: only the library sends other
    /// octets.
    init?(userOf url: URL) {
        guard let parts = URLComponents(url: url, resolvingAgainstBaseURL: true), let user = parts.user, !user.isEmpty,
            parts.password != nil || parts.percentEncodedPassword == nil
        else { return nil }
        self.user = user
        password = parts.password ?? ""
    }

    var description: String { user }

    var customMirror: Mirror { Mirror(self, children: ["user": user]) }
}

extension URL {
    /// The URL without its user name and password.
    var withoutUserInfo: URL {
        guard user() != nil || password() != nil, var parts = URLComponents(url: self, resolvingAgainstBaseURL: true) else {
            return self
        }
        parts.user = nil
        parts.password = nil
        return parts.url ?? self
    }
}
