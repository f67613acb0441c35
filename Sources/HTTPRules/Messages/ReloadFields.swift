//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import HTTPWire

/// Asks the caches on the way to fetch a resource anew, for a request that is to be loaded from its origin whatever is stored.
package enum ReloadFields {
    /// `Cache-Control: no-cache` (RFC 9111, section 5.2.1.4), and `Pragma: no-cache` (section 5.4) for caches of HTTP/1.0.
    ///
    /// What the app says itself stands: it may ask for more, `no-store` for instance.
    ///
    /// - Parameter headers: The app's fields.
    /// - Returns: The fields to add.
    package static func fields(besides headers: HeaderBlock) -> [(String, String)] {
        headers.contains(.cacheControl) || headers.contains(.pragma)
            ? [] : [("Cache-Control", "no-cache"), ("Pragma", "no-cache")]
    }
}
