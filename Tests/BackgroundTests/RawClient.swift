// SPDX-License-Identifier: Apache-2.0

import BackgroundProtocol
import Foundation
import LoadingTestKit

#if canImport(Glibc)
import Glibc
#endif

/// A program that sends arbitrary messages to the daemon.
final class RawClient: Sendable {
    private struct State {
        var messages: [DaemonMessage] = []
        /// The first bytes of all received messages.
        var firstBytes: Set<UInt8> = []
        var isOver = false
    }

    private let descriptor: CInt
    private let state = Watched(State())

    /// Connects to the daemon; `reads` is false for a client that does not read its messages.
    init(_ place: BackgroundPlace, socket name: String = "urlsessiond.socket", reads: Bool = true) throws {
        descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let path = Array((place.home.path + "/run/urlloading/\(name)").utf8)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path) }
        let result = withUnsafePointer(to: address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard result == 0 else { throw PlaceFailure("connect: errno \(errno)") }
        guard reads else { return }
        Thread.detachNewThread { [descriptor, state] in
            var reader = FrameReader(limit: FrameReader.programLimit)
            var buffer = [UInt8](repeating: 0, count: 65_536)
            while case let count = recv(descriptor, &buffer, buffer.count, 0), count > 0 {
                reader.append(buffer.prefix(count))
                while let payload = try? reader.next(), let message = try? MessageCoding.decodeDaemonMessage(payload) {
                    state.change { state in
                        if let first = payload.first { state.firstBytes.insert(first) }
                        state.messages.append(message)
                    }
                }
            }
            state.change { $0.isOver = true }
        }
    }

    deinit { close(descriptor) }

    /// - Returns: Whether the system accepted all bytes.
    @discardableResult
    func send(_ bytes: some Collection<UInt8>) -> Bool {
        var rest = Array(bytes)[...]
        while !rest.isEmpty {
            let sent = rest.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard sent > 0 else { return false }
            rest = rest.dropFirst(sent)
        }
        return true
    }

    @discardableResult
    func say(_ message: ClientMessage) throws -> Bool { send(FrameReader.frame(try MessageCoding.encode(message))) }

    /// Sends a message of version 1.
    func say(text: String) { send(FrameReader.frame(Array(text.utf8))) }

    /// The first bytes of the received messages.
    var firstBytes: Set<UInt8> { state.read(\.firstBytes) }

    func hello(_ role: ClientMessage.Role = .session) throws { try say(.hello(version: MessageCoding.version, role: role)) }

    /// Sends a hello, and attaches a new session.
    func attach(_ identifier: String) throws {
        try hello()
        let attachment = ClientMessage.Attachment(
            identifier: identifier, settings: BackgroundSettings(), takesEvents: true, wasLaunched: false)
        try say(.attach(attachment))
    }

    /// Waits for a message.
    @discardableResult
    func waitForMessage<Found: Sendable>(_ pick: @escaping @Sendable (DaemonMessage) -> Found?) async throws -> Found {
        try await state.value { $0.messages.lazy.compactMap(pick).first }
    }

    /// The results of `pick` for all messages received so far, without nil.
    func all<Found: Sendable>(_ pick: @escaping @Sendable (DaemonMessage) -> Found?) -> [Found] {
        state.read { $0.messages.compactMap(pick) }
    }

    /// Waits until the daemon has ended the connection, and returns the reason.
    func refusal() async throws -> String {
        let messages = try await state.value { $0.isOver ? $0.messages : nil }
        for case .refused(let kind, let reason) in messages { return "\(kind): \(reason)" }
        return "closed"
    }

    /// Whether the daemon has ended the connection.
    var isOver: Bool { state.read(\.isOver) }

    /// Shuts the connection down, as if the process of the client had exited.
    func end() { shutdown(descriptor, Int32(SHUT_RDWR)) }
}
