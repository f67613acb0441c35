// SPDX-License-Identifier: Apache-2.0

package import HTTPWire

/// The fields that make intermediate caches fetch a resource from its origin, for requests that ignore all stored responses.
package enum ReloadFields {
    /// Returns `Cache-Control: no-cache` (RFC 9111, section 5.2.1.4), and `Pragma: no-cache` (section 5.4) for HTTP/1.0 caches.
    ///
    /// If the app set one of these fields, no field is added, because the app's own directive may be stricter, for example `no-store`.
    ///
    /// - Parameter headers: The app's header fields.
    /// - Returns: The fields to add.
    package static func fields(besides headers: HeaderBlock) -> [(String, String)] {
        headers.contains(.cacheControl) || headers.contains(.pragma)
            ? [] : [("Cache-Control", "no-cache"), ("Pragma", "no-cache")]
    }
}
