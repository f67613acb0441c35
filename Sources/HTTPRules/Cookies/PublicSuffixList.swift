//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// Tells where the public part of a name ends, below which names belong to different owners: no cookie may be set for `co.uk` or
/// `github.io` (RFC 6265bis, section 5.7, step 9), and `a.example.co.uk` is of the same site as `b.example.co.uk`.
///
/// Hosts are in lower case and in A-label form, as ``RequestTarget`` has them. A dot at the end is ignored, and kept in what
/// comes out. The list's private section counts, because browsers' cookies go by it, too. A top-level domain that is not listed
/// is a suffix (the default rule, `*`). Addresses, and hosts with an empty label, are neither a suffix nor below one.
package enum PublicSuffixList {
    /// The version that the published list gives itself, as `2026-10-22_08-36-41_UTC`.
    package static var version: String { PublicSuffixTable.version.description }

    /// Whether a host is a public suffix by the list's rules.
    ///
    /// The name above a wildcard is none (`kobe.jp`, for `*.kobe.jp`), as the published algorithm and browsers have it. Who must
    /// not reach across owners compares with ``registrableDomain(of:)`` of the host that asks: it is longer than `kobe.jp`.
    package static func isPublicSuffix(_ host: String) -> Bool {
        HostName.withBytes(of: host) { suffixStart($0) == 0 }
    }

    /// The public suffix of a host and one label more: what one owner has registered.
    ///
    /// Nil for addresses and for public suffixes.
    package static func registrableDomain(of host: String) -> String? {
        guard let start = registrableStart(of: host) else { return nil }
        return start == 0 ? host : String(host.utf8.dropFirst(start))
    }

    /// At which byte of a host its registrable domain begins, for those who compare without making a string.
    package static func registrableStart(of host: String) -> Int? {
        HostName.withBytes(of: host) { bytes -> Int? in
            guard let suffix = suffixStart(bytes), suffix > 0 else { return nil }
            return lastDot(in: bytes, before: suffix - 1).map { $0 + 1 } ?? 0
        }
    }

    private static func suffixStart(_ host: UnsafeBufferPointer<UInt8>) -> Int? {
        guard let count = HostName.nameLength(host), !HostName.isAddress(host) else { return nil }
        let name = UnsafeBufferPointer(rebasing: host[..<count])
        return PublicSuffixTable.table.start(in: name) ?? lastDot(in: name, before: count).map { $0 + 1 } ?? 0
    }

    private static func lastDot(in host: UnsafeBufferPointer<UInt8>, before end: Int) -> Int? {
        var index = end
        while index > 0 {
            index -= 1
            if host[index] == UInt8(ascii: ".") { return index }
        }
        return nil
    }
}
