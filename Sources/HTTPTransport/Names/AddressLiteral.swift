// SPDX-License-Identifier: Apache-2.0

import HTTPRules
package import LoadingModel
package import NIOCore

/// Distinguishes literal addresses from names, in the forms that the host of a URL can have.
package enum AddressLiteral {
    /// Whether a host is a literal address in full notation, which needs no resolver.
    package static func isAddress(_ host: String) -> Bool {
        let bare = HostName.unbracketed(host)
        guard !bare.utf8.contains(0) else { return false }
        let address = bare.contains(":") ? String(bare.prefix { $0 != "%" }) : bare
        return (try? SocketAddress(ipAddress: address, port: 0)) != nil
    }

    /// Whether a host is a loopback address, or a name for one, such as `localhost`.
    static func isLoopback(_ host: String) -> Bool {
        if host.hasPrefix("127.") { return isAddress(host) }
        let bare = HostName.unbracketed(host)
        if bare == "::1" || bare.hasPrefix("::ffff:127.") { return true }
        let name = bare.hasSuffix(".") ? String(bare.dropLast()) : bare
        return name == "localhost" || name.hasSuffix(".localhost")
    }
}

extension AddressKind {
    package init(_ address: SocketAddress) {
        switch address {
        // The address follows the port in a `sockaddr_in`, and the port and the flow information in a `sockaddr_in6`.
        case .v4(let address): self.init(withUnsafeBytes(of: address.address) { Array($0[4..<8]) })
        case .v6(let address): self.init(withUnsafeBytes(of: address.address) { Array($0[8..<24]) })
        case .unixDomainSocket: self = .other
        }
    }

    /// Returns the kind of the address that a host names without a lookup; nil for other names.
    ///
    /// An address in a notation that resolvers read differently (`127.1`) is of the kind ``other``.
    package static func named(_ host: String) -> AddressKind? {
        if AddressLiteral.isLoopback(host.lowercased()) { return .loopback }
        let bare = String(HostName.unbracketed(host).prefix { $0 != "%" })
        if let address = try? SocketAddress(ipAddress: bare, port: 0) { return AddressKind(address) }
        return HostName.isAddress(bare) ? .other : nil
    }
}

extension SocketAddress {
    /// The IP address; an IPv6 address with a scope gets the interface's number as its zone ("fe80::1%2").
    var zonedAddress: String? {
        guard case .v6(let address) = self else { return ipAddress }
        // This is sin6_scope_id, the last field of a `sockaddr_in6`, after the 16 bytes of the address.
        let scope = withUnsafeBytes(of: address.address) { $0.loadUnaligned(fromByteOffset: 24, as: UInt32.self) }
        return scope == 0 ? ipAddress : ipAddress.map { "\($0)%\(scope)" }
    }
}
