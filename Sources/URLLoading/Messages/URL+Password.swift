//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

internal import Foundation

extension URL {
    /// The same URL for where it may be read by others: in errors, descriptions and files.
    ///
    /// The user stays; nil where the password cannot be told from the rest.
    var withoutPassword: URL? {
        guard password != nil else { return self }
        guard var parts = URLComponents(url: self, resolvingAgainstBaseURL: true) else { return nil }
        parts.password = nil
        return parts.url
    }
}
