//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// The names that are asked over TLS before any of their hosts has said so: those of the HSTS preload list
/// (https://hstspreload.org) that are top-level domains (`.dev`, `.app`, `.page`, `.new`, `.zip`) or other public suffixes
/// (`framer.website`), together with everything below them.
///
/// The list's other names, some 160,000 of one owner each, are not in it: their hosts send the field themselves, and the first
/// visit that preloading would protect does not outweigh megabytes in every program. Apple's systems carry the domains as well.
package enum HSTSPreloadList {
    /// Of the PyPI package `hstspreload`, which follows Chromium's list.
    package static var version: String { HSTSPreloadTable.version.description }

    /// Whether a host is one of the names or below one; addresses never are.
    package static func contains(_ host: String) -> Bool {
        HostName.normalized(host).map(containsName) ?? false
    }

    /// The same, of a name as ``HostName/normalized(_:)`` makes it.
    static func containsName(_ name: String) -> Bool {
        HostName.withBytes(of: name) { HSTSPreloadTable.table.start(in: $0) != nil }
    }
}
