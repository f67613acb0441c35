// SPDX-License-Identifier: Apache-2.0

/// The names that require TLS before any of their hosts has sent a policy.
///
/// These are the top-level domains (`.dev`, `.app`, `.page`, `.new`, `.zip`, …) and the other public suffixes (`framer.website`, …)
/// of the HSTS preload list (https://hstspreload.org), including everything below them.
///
/// The other names of the list, some 160,000 with one owner each, are not included: their hosts send the field themselves, and
/// protecting the first visit does not justify megabytes in every program. Apple's systems include these other names as well.
package enum HSTSPreloadList {
    /// The version of the PyPI package `hstspreload`, which follows Chromium's list.
    package static var version: String { HSTSPreloadTable.version.description }

    /// Whether a host is one of the names or below one of them; always false for addresses.
    package static func contains(_ host: String) -> Bool {
        HostName.normalized(host).map(containsName) ?? false
    }

    /// Like ``contains(_:)``, for a name from ``HostName/normalized(_:)``.
    static func containsName(_ name: String) -> Bool {
        HostName.withBytes(of: name) { HSTSPreloadTable.table.start(in: $0) != nil }
    }
}
