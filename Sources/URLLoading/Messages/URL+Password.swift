// SPDX-License-Identifier: Apache-2.0

internal import Foundation

extension URL {
    /// The URL without its password, for errors, descriptions and files that other people can read.
    ///
    /// The user name remains. Nil if the password cannot be separated.
    var withoutPassword: URL? {
        guard password != nil else { return self }
        guard var parts = URLComponents(url: self, resolvingAgainstBaseURL: true) else { return nil }
        parts.password = nil
        return parts.url
    }
}
