// SPDX-License-Identifier: Apache-2.0

/// Finds the public suffix of a host name.
///
/// Names below a public suffix belong to different owners: cookies must not be set for `co.uk` or `github.io` (RFC 6265bis, section
/// 5.7, step 9), and `a.example.co.uk` is same-site with `b.example.co.uk`.
///
/// Hosts are in lowercase and in A-label form, as in ``RequestTarget``. A trailing dot does not affect a lookup and is kept in
/// results. The list's private section is included, because browsers apply it to cookies as well. A top-level domain that is not
/// listed is a public suffix (the default rule, `*`). Addresses and hosts with an empty label have no public suffix.
package enum PublicSuffixList {
    /// The version of the published list, such as `2026-10-22_08-36-41_UTC`.
    package static var version: String { PublicSuffixTable.version.description }

    /// Whether a host is a public suffix according to the list.
    ///
    /// The parent of a wildcard is not a public suffix (`kobe.jp`, for `*.kobe.jp`), as in the published algorithm and in browsers.
    /// To prevent access across owners, compare a domain with the ``registrableDomain(of:)`` of the requesting host. For a host below
    /// `kobe.jp`, the registrable domain is longer than `kobe.jp`.
    package static func isPublicSuffix(_ host: String) -> Bool {
        HostName.withBytes(of: host) { suffixStart($0) == 0 }
    }

    /// Returns the public suffix of a host plus one label: the part that its owner registered.
    ///
    /// Returns nil for addresses and for public suffixes.
    package static func registrableDomain(of host: String) -> String? {
        guard let start = registrableStart(of: host) else { return nil }
        return start == 0 ? host : String(host.utf8.dropFirst(start))
    }

    /// Returns the byte offset at which the registrable domain starts in a host, for comparisons without creating a string.
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
