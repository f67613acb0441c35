//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
import NIOCore

/// Tells literal addresses from names, in the forms that the host of a URL has.
package enum HostName {
    /// An IPv6 literal without its brackets, and with its zone as the system writes it (RFC 6874); anything else as it is.
    package static func unbracketed(_ host: String) -> String {
        var bare = host[...]
        if bare.first == "[", bare.last == "]" { bare = bare.dropFirst().dropLast() }
        guard bare.contains(":"), let zone = bare.firstIndex(of: "%") else { return String(bare) }
        let name = bare[zone...].dropFirst()
        return bare[..<zone] + "%" + (name.hasPrefix("25") && name.count > 2 ? name.dropFirst(2) : name)
    }

    package static func isAddress(_ host: String) -> Bool {
        let bare = unbracketed(host)
        guard !bare.utf8.contains(0) else { return false }
        let address = bare.contains(":") ? String(bare.prefix { $0 != "%" }) : bare
        return (try? SocketAddress(ipAddress: address, port: 0)) != nil
    }
}
