// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import LoadingTestKit

/// A scripted SOCKS proxy with a thread per connection, so that it shares no code with the library under test.
final class SOCKSProxy: Sendable {
    enum Step: Sendable {
        /// Waits for this number of bytes, and records them.
        case take(Int)
        /// Waits for bytes up to a NUL, `count` times.
        case takeStrings(Int)
        case say([UInt8])
        /// Connects to a port of 127.0.0.1, and forwards bytes in both directions.
        case tunnel(Int)
        /// Waits until the client has closed the connection.
        case waitForClose
    }

    private struct State: Sendable {
        var received: [[UInt8]] = []
        var connections = 0
        var descriptors: Set<Int32> = []
    }

    let port: Int
    private let listener: Int32
    private let state = Watched(State())
    private let script: @Sendable (_ connection: Int) -> [Step]

    init(_ script: @escaping @Sendable (_ connection: Int) -> [Step]) throws {
        self.script = script
        (listener, port) = try LoopbackSocket.listener()
        Thread.detachNewThread { [self] in listen() }
    }

    /// The bytes received on each connection.
    var received: [[UInt8]] { state.read(\.received) }
    var connectionCount: Int { state.read(\.connections) }

    /// Waits until this number of connections have each sent this number of bytes.
    func waitForBytes(_ count: Int, connections: Int = 1) async throws {
        try await state.value { $0.received.count { $0.count >= count } >= connections ? () : nil }
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
                state.received.append([])
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
                for _ in 0..<count { guard readByte(client, number) != nil else { return } }
            case .takeStrings(let count):
                for _ in 0..<count {
                    while true {
                        guard let byte = readByte(client, number) else { return }
                        if byte == 0 { break }
                    }
                }
            case .say(let bytes): guard LoopbackSocket.send(bytes, client) else { return }
            case .tunnel(let port):
                guard let server = LoopbackSocket.connect(port) else { return }
                defer { close(server) }
                return LoopbackSocket.pump(client, server)
            case .waitForClose: while readByte(client, number) != nil {}
            }
        }
    }

    private func readByte(_ client: Int32, _ number: Int) -> UInt8? {
        var byte: UInt8 = 0
        guard recv(client, &byte, 1, 0) == 1 else { return nil }
        state.change { $0.received[number].append(byte) }
        return byte
    }
}

/// Runs a test with a ``SOCKSProxy`` that performs the script's steps on each connection.
func withSOCKSProxy(
    _ script: @escaping @Sendable (_ connection: Int) -> [SOCKSProxy.Step], test: (SOCKSProxy) async throws -> Void
) async throws {
    let proxy = try SOCKSProxy(script)
    defer { proxy.stop() }
    try await test(proxy)
}
