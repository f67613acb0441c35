// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc

/// A TCP server whose script runs on a thread for each connection, with blocking reads.
package final class StreamPeer: Sendable {
    package struct Failure: Error, CustomStringConvertible {
        package var description: String

        package init(description: String) { self.description = description }
    }

    /// A connection; used only by its thread.
    package final class Connection {
        private let descriptor: Int32
        package let number: Int
        private var buffer: [UInt8] = []
        /// Whether the client has ended the connection with a TCP reset.
        package private(set) var wasReset = false

        fileprivate init(_ descriptor: Int32, number: Int) {
            self.descriptor = descriptor
            self.number = number
        }

        package func write(_ text: String) throws { try write(Array(text.utf8)) }

        package func write(_ bytes: [UInt8]) throws {
            guard LoopbackSocket.send(bytes, descriptor) else { throw Failure(description: "writing failed: errno \(errno)") }
        }

        /// Reads exactly `count` bytes.
        package func read(_ count: Int) throws -> [UInt8] {
            while buffer.count < count {
                guard fill() else { throw Failure(description: "the connection ended after \(buffer.count) of \(count) bytes") }
            }
            defer { buffer.removeFirst(count) }
            return Array(buffer.prefix(count))
        }

        /// Reads a line, without its CRLF.
        package func line() throws -> String {
            while true {
                if let end = buffer.firstRange(of: [13, 10]) {
                    defer { buffer.removeFirst(end.upperBound) }
                    return String(decoding: buffer[..<end.lowerBound], as: UTF8.self)
                }
                guard fill() else { throw Failure(description: "the connection ended within a line") }
            }
        }

        /// Reads all bytes until the client closes its sending side.
        package func rest() -> [UInt8] {
            while fill() {}
            defer { buffer = [] }
            return buffer
        }

        /// Reads until the client closes its sending side; returns the number of bytes.
        @discardableResult
        package func drain() -> Int {
            var count = buffer.count
            buffer = []
            while fill() {
                count += buffer.count
                buffer = []
            }
            return count
        }

        /// Echoes all received bytes until the client closes its sending side.
        package func echo() throws {
            while true {
                if !buffer.isEmpty { try write(buffer) }
                buffer = []
                guard fill() else { return }
            }
        }

        /// Sends pieces on another thread, which then closes the sending side; meanwhile reads all bytes until the client closes
        /// its sending side.
        package func exchange(_ pieces: [[UInt8]]) -> [UInt8] {
            let isSent = ThreadGate()
            Thread.detachNewThread { [descriptor] in
                for piece in pieces { guard LoopbackSocket.send(piece, descriptor) else { break } }
                shutdown(descriptor, Int32(SHUT_WR))
                isSent.open()
            }
            defer { isSent.wait() }
            return rest()
        }

        /// Closes the server's sending side.
        package func shutdownOutput() { shutdown(descriptor, Int32(SHUT_WR)) }

        /// Makes the connection end with a TCP reset.
        package func reset() {
            var option = linger(l_onoff: 1, l_linger: 0)
            setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
        }

        /// Limits the socket's receive buffer.
        package func limitReceiveBuffer() {
            var size: Int32 = 262_144
            setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
        }

        /// Relays bytes between the client and another port.
        package func relay(to port: Int) throws {
            guard let server = LoopbackSocket.connect(port) else { throw Failure(description: "cannot connect to port \(port)") }
            defer { close(server) }
            LoopbackSocket.pump(descriptor, server)
        }

        private func fill() -> Bool {
            var piece = [UInt8](repeating: 0, count: 65_536)
            let count = recv(descriptor, &piece, piece.count, 0)
            if count < 0, errno == ECONNRESET { wasReset = true }
            guard count > 0 else { return false }
            buffer += piece[..<count]
            return true
        }
    }

    private struct State: Sendable {
        var connections = 0
        var descriptors: Set<Int32> = []
        var ends: [Result<Void, any Error>] = []
    }

    package let port: Int
    private let listener: Int32
    private let state = Watched(State())

    /// - Parameter script: The script for a connection, which is closed when the script ends.
    /// - Throws: An error if the server cannot listen.
    package init(_ script: @escaping @Sendable (Connection) throws -> Void) throws {
        (listener, port) = try LoopbackSocket.listener()
        Thread.detachNewThread { [listener, state] in
            while true {
                let descriptor = Glibc.accept(listener, nil, nil)
                guard descriptor >= 0 else { break }
                _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
                let number = state.change { state in
                    state.connections += 1
                    state.descriptors.insert(descriptor)
                    return state.connections - 1
                }
                Thread.detachNewThread {
                    let result = Result { try script(Connection(descriptor, number: number)) }
                    state.change { state in
                        state.descriptors.remove(descriptor)
                        close(descriptor)
                        state.ends.append(result)
                    }
                }
            }
            close(listener)
        }
    }

    package var connectionCount: Int { state.read(\.connections) }

    package func waitForConnections(_ count: Int) async throws { try await state.value { $0.connections >= count ? () : nil } }

    /// Waits until `count` connections have ended; throws if one of their scripts failed.
    package func waitForEnds(_ count: Int = 1) async throws {
        let results = try await state.value { $0.ends.count >= count ? $0.ends : nil }
        for result in results { try result.get() }
    }

    /// Stops listening, and ends all connections.
    package func stop() {
        shutdown(listener, Int32(SHUT_RDWR))
        state.read { for descriptor in $0.descriptors { shutdown(descriptor, Int32(SHUT_RDWR)) } }
    }
}

/// A script that echoes until the client closes its sending side.
package let streamEcho: @Sendable (StreamPeer.Connection) throws -> Void = { try $0.echo() }
