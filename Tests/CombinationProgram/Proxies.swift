// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import LoadingTestKit

/// A proxy that opens tunnels with CONNECT or SOCKS 5.
///
/// It uses a thread for each connection, and shares no code with the library.
final class TestProxy: Sendable {
    enum Kind: Sendable { case connect, asking, socks }

    static let user = "passer", password = "by"
    static let authorization = "Basic " + Data("\(user):\(password)".utf8).base64EncodedString()

    let port: Int
    private let kind: Kind
    private let listener: Int32
    /// Ports that connections are redirected to, by the requested port.
    private let detours: [Int: Int]
    /// The port of a proxy that handles requests other than CONNECT.
    private let forward: Int?

    init(_ kind: Kind, detours: [Int: Int] = [:], forward: Int? = nil) throws {
        self.kind = kind
        self.detours = detours
        self.forward = forward
        (listener, port) = try Sockets.listener()
        Thread.detachNewThread { [self] in
            while true {
                let client = accept(listener, nil, nil)
                guard client >= 0 else { return }
                Thread.detachNewThread { [self] in
                    serve(client)
                    close(client)
                }
            }
        }
    }

    private func serve(_ client: Int32) {
        guard let target = kind == .socks ? socksTarget(client) : connectTarget(client) else { return }
        guard let server = Sockets.connect(detours[target] ?? target) else { return }
        defer { close(server) }
        let done: [UInt8] = kind == .socks ? [5, 0, 0, 1, 0, 0, 0, 0, 0, 0] : Array("HTTP/1.1 200 Connected\r\n\r\n".utf8)
        guard Sockets.send(done, client) else { return }
        Sockets.pump(client, server)
    }

    private func socksTarget(_ client: Int32) -> Int? {
        guard let start = take(2, client), take(Int(start[1]), client) != nil, Sockets.send([5, 0], client),
            let head = take(4, client)
        else { return nil }
        let length: Int
        switch head[3] {
        case 1: length = 4
        case 4: length = 16
        default: length = take(1, client).map { Int($0[0]) } ?? 0
        }
        guard take(length, client) != nil, let port = take(2, client) else { return nil }
        return Int(port[0]) << 8 | Int(port[1])
    }

    private func connectTarget(_ client: Int32) -> Int? {
        while true {
            var bytes: [UInt8] = []
            while !bytes.suffix(4).elementsEqual([13, 10, 13, 10]) {
                guard let byte = take(1, client) else { return nil }
                bytes += byte
            }
            if let forward, !bytes.starts(with: Array("CONNECT ".utf8)) {
                guard let server = Sockets.connect(forward) else { return nil }
                defer { close(server) }
                if Sockets.send(bytes, server) { Sockets.pump(client, server) }
                return nil
            }
            let lines = String(decoding: bytes, as: UTF8.self).components(separatedBy: "\r\n")
            // Fields for the origin must not be in a CONNECT.
            let isLeaking = lines.contains { line in
                ["authorization:", "cookie:"].contains { line.lowercased().hasPrefix($0) }
            }
            if isLeaking { _ = Sockets.send(Array("HTTP/1.1 400 Leak\r\nContent-Length: 0\r\n\r\n".utf8), client) }
            if kind == .asking, !lines.contains("Proxy-Authorization: \(Self.authorization)") {
                let answer = "HTTP/1.1 407 Who\r\nProxy-Authenticate: Basic realm=\"gate\"\r\nContent-Length: 0\r\n\r\n"
                guard Sockets.send(Array(answer.utf8), client) else { return nil }
                continue
            }
            return lines[0].split(separator: " ").dropFirst().first?.split(separator: ":").last.flatMap { Int($0) }
        }
    }

    private func take(_ count: Int, _ client: Int32) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: count)
        var filled = 0
        while filled < count {
            let got = bytes.withUnsafeMutableBytes { buffer in
                recv(client, buffer.baseAddress?.advanced(by: filled), count - filled, 0)
            }
            guard got > 0 else { return nil }
            filled += got
        }
        return bytes
    }
}

/// Blocking sockets on 127.0.0.1.
enum Sockets {
    private static func address(port: Int) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        address.sin_port = UInt16(port).bigEndian
        return address
    }

    static func listener() throws -> (descriptor: Int32, port: Int) {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = address(port: 0)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                bind(descriptor, pointer, length) == 0 && listen(descriptor, 64) == 0
                    && getsockname(descriptor, pointer, &length) == 0
            }
        }
        guard isBound else { throw POSIXError(.EADDRINUSE) }
        return (descriptor, Int(UInt16(bigEndian: address.sin_port)))
    }

    static func connect(_ port: Int) -> Int32? {
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

    static func send(_ bytes: [UInt8], _ descriptor: Int32) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }

    /// Copies bytes in both directions until either side closes; a reset of one side resets the other.
    static func pump(_ one: Int32, _ other: Int32) {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            var events = [
                pollfd(fd: one, events: Int16(POLLIN), revents: 0), pollfd(fd: other, events: Int16(POLLIN), revents: 0),
            ]
            guard poll(&events, 2, -1) > 0 else { return }
            for (event, to) in zip(events, [other, one]) where event.revents != 0 {
                let count = recv(event.fd, &buffer, buffer.count, 0)
                if count < 0 {
                    var option = linger(l_onoff: 1, l_linger: 0)
                    setsockopt(to, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
                }
                guard count > 0, send(Array(buffer[..<count]), to) else { return }
            }
        }
    }
}
