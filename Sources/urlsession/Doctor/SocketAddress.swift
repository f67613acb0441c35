//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation
import Synchronization

/// An IP address and a port as a socket address.
struct SocketAddress: Sendable {
    private var storage: sockaddr_storage
    private let length: socklen_t

    /// The address as text, without its port.
    let text: String
    var isIPv6: Bool { Int32(storage.ss_family) == AF_INET6 }
    var family: Int32 { Int32(storage.ss_family) }

    /// Copies a socket address; nil if it is not an IP address.
    init?(_ address: UnsafePointer<sockaddr>?, _ length: socklen_t) {
        guard let address, Int(length) <= MemoryLayout<sockaddr_storage>.size,
            [AF_INET, AF_INET6].contains(Int32(address.pointee.sa_family))
        else { return nil }
        var storage = sockaddr_storage()
        withUnsafeMutableBytes(of: &storage) { $0.copyMemory(from: UnsafeRawBufferPointer(start: address, count: Int(length))) }
        var name = [CChar](repeating: 0, count: 256)
        guard getnameinfo(address, length, &name, socklen_t(name.count), nil, 0, NI_NUMERICHOST) == 0 else { return nil }
        self.storage = storage
        self.length = length
        text = String(decoding: name.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    /// Parses an IP address; nil if the text is a name.
    init?(_ text: String, port: Int) {
        var hints = addrinfo()
        hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(text, "\(port)", &hints, &list) == 0, let first = list else { return nil }
        defer { freeaddrinfo(list) }
        self.init(first.pointee.ai_addr, first.pointee.ai_addrlen)
    }

    /// Starts to connect a socket; for UDP this call sends nothing, but selects the local address.
    func connect(_ descriptor: Int32) -> Int32 {
        withUnsafePointer(to: storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { Foundation.connect(descriptor, $0, length) }
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

/// A continuation that is resumed by the first of several results.
final class OnceContinuation<Value: Sendable>: Sendable {
    private let waiting = Mutex<CheckedContinuation<Value, Never>?>(nil)

    func set(_ continuation: CheckedContinuation<Value, Never>) { waiting.withLock { $0 = continuation } }

    func resume(_ value: Value) {
        let continuation = waiting.withLock { waiting in
            defer { waiting = nil }
            return waiting
        }
        continuation?.resume(returning: value)
    }
}
