// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc

/// Sockets on 127.0.0.1, for threads that block.
package enum LoopbackSocket {
    private static func address(port: Int) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        address.sin_port = UInt16(port).bigEndian
        return address
    }

    package static func listener() throws -> (descriptor: Int32, port: Int) {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = address(port: 0)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                bind(descriptor, pointer, length) == 0 && Glibc.listen(descriptor, 64) == 0
                    && getsockname(descriptor, pointer, &length) == 0
            }
        }
        guard isBound else { throw POSIXError(.EADDRINUSE) }
        return (descriptor, Int(UInt16(bigEndian: address.sin_port)))
    }

    package static func connect(_ port: Int) -> Int32? {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = address(port: port)
        let isOpen = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
        if isOpen { return descriptor }
        close(descriptor)
        return nil
    }

    package static func send(_ bytes: [UInt8], _ descriptor: Int32) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }

    package static func pump(_ one: Int32, _ other: Int32) {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            var events = [
                pollfd(fd: one, events: Int16(POLLIN), revents: 0), pollfd(fd: other, events: Int16(POLLIN), revents: 0),
            ]
            guard poll(&events, 2, -1) > 0 else { return }
            for (event, to) in zip(events, [other, one]) where event.revents != 0 {
                let count = recv(event.fd, &buffer, buffer.count, 0)
                guard count > 0, send(Array(buffer[..<count]), to) else { return }
            }
        }
    }
}

/// A gate that blocks threads of a server until the test opens the gate.
package final class ThreadGate: Sendable {
    private let condition = NSCondition()
    private let isOpen = Watched(false)

    package init() {}

    package func wait() {
        condition.lock()
        while !isOpen.read({ $0 }) { condition.wait() }
        condition.unlock()
    }

    package func open() {
        condition.lock()
        isOpen.change { $0 = true }
        condition.broadcast()
        condition.unlock()
    }
}
