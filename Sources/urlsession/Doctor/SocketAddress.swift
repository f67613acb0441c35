// SPDX-License-Identifier: Apache-2.0

import Foundation

/// An IP address and a port as a socket address.
struct SocketAddress: Sendable {
    private let bytes: [UInt8]
    let family: Int32
    /// The address as text, without its port.
    let text: String

    /// Copies a socket address; nil if it is not an IP address.
    init?(_ address: UnsafePointer<sockaddr>, _ length: socklen_t) {
        family = Int32(address.pointee.sa_family)
        var name = [CChar](repeating: 0, count: 256)
        guard [AF_INET, AF_INET6].contains(family),
            getnameinfo(address, length, &name, socklen_t(name.count), nil, 0, NI_NUMERICHOST) == 0
        else { return nil }
        bytes = Array(UnsafeRawBufferPointer(start: address, count: Int(length)))
        text = String(decoding: name.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    /// Parses an IP address; nil if the text is a name.
    init?(_ text: String, port: Int) {
        guard let address = Self.all(of: text, port: port, flags: AI_NUMERICHOST | AI_NUMERICSERV).addresses.first else {
            return nil
        }
        self = address
    }

    /// Looks up a name, and returns its addresses or the resolver's error code.
    static func all(of host: String, port: Int? = nil, flags: Int32 = 0) -> (addresses: [SocketAddress], code: Int32) {
        var hints = addrinfo()
        hints.ai_family = AF_UNSPEC
        hints.ai_flags = flags
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        let service = port.map { "\($0)" }
        let code = getaddrinfo(host, service, &hints, &list)
        guard code == 0, let first = list else { return ([], code) }
        defer { freeaddrinfo(first) }
        let entries = sequence(first: first) { $0.pointee.ai_next }
        return (entries.compactMap { SocketAddress($0.pointee.ai_addr, $0.pointee.ai_addrlen) }, 0)
    }

    /// Connects a socket; for UDP this call sends nothing, but selects the local address.
    func connect(_ descriptor: Int32) -> Int32 {
        bytes.withUnsafeBytes { bytes in
            guard let address = bytes.baseAddress else { return -1 }
            return Foundation.connect(descriptor, address.assumingMemoryBound(to: sockaddr.self), socklen_t(bytes.count))
        }
    }

    /// The local address from which packets to this address would be sent; nil if there is no route.
    var source: String? {
        let descriptor = socket(family, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        guard connect(descriptor) == 0 else { return nil }
        var local = sockaddr_storage()
        var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutablePointer(to: &local) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                getsockname(descriptor, address, &size) == 0 ? SocketAddress(address, size)?.text : nil
            }
        }
    }
}
