//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation
import Glibc
import LoadingTestKit

/// A SOCKS proxy that says what a test has it say, with a thread for each connection, so that it shares nothing with what it tests.
final class SOCKSProxy: Sendable {
    enum Step: Sendable {
        /// Waits for so many bytes and records them.
        case take(Int)
        /// Waits for bytes up to a NUL, `count` times.
        case takeStrings(Int)
        case say([UInt8])
        /// Connects to a port of 127.0.0.1 and hands bytes to and fro.
        case tunnel(Int)
        /// Waits until the client has closed.
        case waitForClose
    }

    private struct State: Sendable {
        var heard: [[UInt8]] = []
        var connections = 0
        var descriptors: Set<Int32> = []
    }

    let port: Int
    private let listener: Int32
    private let state = Watched(State())
    private let script: @Sendable (_ connection: Int) -> [Step]

    init(_ script: @escaping @Sendable (_ connection: Int) -> [Step]) throws {
        self.script = script
        (listener, port) = try Loopback.listener()
        Thread.detachNewThread { [self] in listen() }
    }

    /// What each connection said.
    var heard: [[UInt8]] { state.read(\.heard) }
    var connectionCount: Int { state.read(\.connections) }

    /// Waits until so many connections have said so much.
    func waitForBytes(_ count: Int, connections: Int = 1) async throws {
        try await state.value { $0.heard.count { $0.count >= count } >= connections ? () : nil }
    }

    /// Waits until no accepted connection is open.
    func waitForAllClosed() async throws { try await state.value { $0.descriptors.isEmpty ? () : nil } }

    func stop() {
        shutdown(listener, Int32(SHUT_RDWR))
        for descriptor in state.read(\.descriptors) { shutdown(descriptor, Int32(SHUT_RDWR)) }
    }

    private func listen() {
        while true {
            let descriptor = Glibc.accept(listener, nil, nil)
            guard descriptor >= 0 else { break }
            let number = state.change { state in
                state.connections += 1
                state.descriptors.insert(descriptor)
                state.heard.append([])
                return state.connections - 1
            }
            Thread.detachNewThread { [self] in
                serve(descriptor, number)
                close(descriptor)
                state.change { _ = $0.descriptors.remove(descriptor) }
            }
        }
        close(listener)
    }

    private func serve(_ client: Int32, _ number: Int) {
        for step in script(number) {
            switch step {
            case .take(let count):
                for _ in 0..<count { guard hear(client, number) != nil else { return } }
            case .takeStrings(let count):
                for _ in 0..<count {
                    while true {
                        guard let byte = hear(client, number) else { return }
                        if byte == 0 { break }
                    }
                }
            case .say(let bytes): guard Loopback.send(bytes, client) else { return }
            case .tunnel(let port):
                guard let server = Loopback.connect(port) else { return }
                defer { close(server) }
                return Loopback.pump(client, server)
            case .waitForClose: while hear(client, number) != nil {}
            }
        }
    }

    private func hear(_ client: Int32, _ number: Int) -> UInt8? {
        var byte: UInt8 = 0
        guard recv(client, &byte, 1, 0) == 1 else { return nil }
        state.change { $0.heard[number].append(byte) }
        return byte
    }
}

/// Sockets on 127.0.0.1, for threads that block.
enum Loopback {
    static func address(port: Int) -> sockaddr_in {
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
                bind(descriptor, pointer, length) == 0 && Glibc.listen(descriptor, 64) == 0
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

    static func pump(_ one: Int32, _ other: Int32) {
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

/// Runs a test with such a proxy.
func withSOCKSProxy(
    _ script: @escaping @Sendable (_ connection: Int) -> [SOCKSProxy.Step], test: (SOCKSProxy) async throws -> Void
) async throws {
    let proxy = try SOCKSProxy(script)
    defer { proxy.stop() }
    try await test(proxy)
}
