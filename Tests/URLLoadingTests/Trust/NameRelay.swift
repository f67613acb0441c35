// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit

/// A proxy that connects every tunnel to one loopback port: a server there can have any name, without a host name lookup.
final class NameRelay: Sendable {
    struct Unusable: Error {}

    let port: Int
    private let target: Int
    private let listener: Int32
    private let asked = Watched<[String]>([])

    /// The tunnels requested: host and port.
    var authorities: [String] { asked.read { $0 } }

    /// A proxy dictionary for a configuration.
    var dictionary: [AnyHashable: Any] {
        ["HTTPSEnable": 1, "HTTPSProxy": "127.0.0.1", "HTTPSPort": port]
    }

    init(to target: Int) throws {
        self.target = target
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = Self.loopback(0)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { [listener] pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                bind(listener, pointer, length) == 0 && listen(listener, 64) == 0 && getsockname(listener, pointer, &length) == 0
            }
        }
        guard isBound else { throw Unusable() }
        port = Int(UInt16(bigEndian: address.sin_port))
        let (listener, target, asked) = (listener, target, asked)
        Thread.detachNewThread {
            while true {
                let client = accept(listener, nil, nil)
                guard client >= 0 else { break }
                Thread.detachNewThread { Self.serve(client, target, asked) }
            }
            close(listener)
        }
    }

    deinit { shutdown(listener, Int32(SHUT_RDWR)) }

    private static func loopback(_ port: Int) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        address.sin_port = UInt16(port).bigEndian
        return address
    }

    private static func serve(_ client: Int32, _ target: Int, _ asked: Watched<[String]>) {
        defer { close(client) }
        var head: [UInt8] = []
        while !head.suffix(4).elementsEqual([13, 10, 13, 10]) {
            var byte: UInt8 = 0
            guard recv(client, &byte, 1, 0) == 1, head.count < 65_536 else { return }
            head.append(byte)
        }
        let words = String(decoding: head, as: UTF8.self).split(separator: " ")
        guard words.count > 1, words[0] == "CONNECT" else { return }
        let authority = String(words[1])
        asked.change { $0.append(authority) }
        let server = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        defer { close(server) }
        var address = loopback(target)
        let isConnected = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                connect(server, pointer, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
        guard isConnected, write(Array("HTTP/1.1 200 Connected\r\n\r\n".utf8)[...], to: client) else { return }
        let back = DispatchGroup()
        back.enter()
        Thread.detachNewThread {
            pump(server, client)
            back.leave()
        }
        pump(client, server)
        back.wait()
    }

    private static func pump(_ source: Int32, _ sink: Int32) {
        var buffer = [UInt8](repeating: 0, count: 16_384)
        while true {
            let count = recv(source, &buffer, buffer.count, 0)
            guard count > 0, write(buffer[..<count], to: sink) else { break }
        }
        shutdown(sink, Int32(SHUT_WR))
        shutdown(source, Int32(SHUT_RD))
    }

    private static func write(_ bytes: ArraySlice<UInt8>, to descriptor: Int32) -> Bool {
        var rest = bytes
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }
}
