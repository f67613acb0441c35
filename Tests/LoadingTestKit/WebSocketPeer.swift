// SPDX-License-Identifier: Apache-2.0

import Crypto
package import Foundation
import Glibc

/// A cleartext WebSocket server with full control over every byte: its script runs on a thread for each connection, with blocking
/// reads.
package final class WebSocketPeer: Sendable {
    package struct Failure: Error, CustomStringConvertible {
        package var description: String

        package init(description: String) { self.description = description }
    }

    package struct Frame: Sendable, Hashable {
        package var isFinal = true
        package var isCompressed = false
        package var opcode: UInt8
        package var wasMasked = true
        package var payload: [UInt8]

        package var text: String { String(decoding: payload, as: UTF8.self) }
        /// The code of a close frame.
        package var code: Int? { payload.count < 2 ? nil : Int(payload[0]) << 8 | Int(payload[1]) }
        /// The reason of a close frame.
        package var reason: String { String(decoding: payload.dropFirst(2), as: UTF8.self) }
    }

    /// A connection; used only by its thread.
    package final class Connection {
        private let descriptor: Int32
        package let number: Int
        /// The head of the request, as received.
        package private(set) var head = ""
        private var buffer: [UInt8] = []

        fileprivate init(_ descriptor: Int32, number: Int) {
            self.descriptor = descriptor
            self.number = number
        }

        package var path: String { head.split(separator: " ").dropFirst().first.map(String.init) ?? "" }

        package func field(_ name: String) -> String? {
            head.split(separator: "\r\n").dropFirst().lazy
                .first { $0.lowercased().hasPrefix(name.lowercased() + ":") }
                .map { $0.dropFirst(name.count + 1).trimmingCharacters(in: .whitespaces) }
        }

        /// The accept value for the client's key.
        package var acceptValue: String {
            WebSocketPeer.acceptValue(for: field("Sec-WebSocket-Key") ?? "")
        }

        fileprivate func readHead() throws {
            while true {
                if let end = buffer.firstRange(of: Array("\r\n\r\n".utf8)) {
                    head = String(decoding: buffer[..<end.lowerBound], as: UTF8.self)
                    buffer.removeFirst(end.upperBound)
                    return
                }
                guard try fill() else { throw Failure(description: "the connection ended before the end of the head") }
            }
        }

        /// Responds with 101 and further fields, each with its line end.
        package func accept(_ more: String = "", then bytes: [UInt8] = []) throws {
            let head =
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                + "Sec-WebSocket-Accept: \(acceptValue)\r\n\(more)\r\n"
            try write(Array(head.utf8) + bytes)
        }

        package func write(_ text: String) throws { try write(Array(text.utf8)) }

        package func write(_ bytes: [UInt8]) throws {
            var sent = 0
            while sent < bytes.count {
                let count = bytes[sent...].withUnsafeBytes {
                    Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
                }
                guard count > 0 else { throw Failure(description: "writing failed: \(errno)") }
                sent += count
            }
        }

        package func send(_ opcode: UInt8, _ payload: [UInt8], isFinal: Bool = true, isCompressed: Bool = false) throws {
            try write(WebSocketPeer.frame(opcode, payload, isFinal: isFinal, isCompressed: isCompressed))
        }

        package func sendText(_ text: String) throws { try send(1, Array(text.utf8)) }

        package func sendClose(_ code: Int?, _ reason: String = "") throws {
            try send(8, code.map { [UInt8($0 >> 8), UInt8($0 & 255)] + Array(reason.utf8) } ?? [])
        }

        /// Reads the next frame; nil at the end of the connection.
        package func readFrame() throws -> Frame? {
            guard let first = try read(2) else { return nil }
            var length = Int(first[1] & 0x7F)
            if length >= 126 {
                guard let more = try read(length == 126 ? 2 : 8) else { return nil }
                length = more.reduce(0) { $0 << 8 | Int($1) }
            }
            let wasMasked = first[1] & 0x80 != 0
            guard let key = try read(wasMasked ? 4 : 0), var payload = try read(length) else { return nil }
            if wasMasked { for index in payload.indices { payload[index] ^= key[index & 3] } }
            return Frame(
                isFinal: first[0] & 0x80 != 0, isCompressed: first[0] & 0x40 != 0, opcode: first[0] & 0x0F, wasMasked: wasMasked,
                payload: payload)
        }

        /// Reads the next data or close frame, skipping pings and pongs.
        package func readData() throws -> Frame? {
            while let frame = try readFrame() { if frame.opcode < 9 { return frame } }
            return nil
        }

        /// Echoes messages and the close frame, and answers pings with pongs.
        package func echo() throws {
            while let frame = try readFrame() {
                switch frame.opcode {
                case 9: try send(10, frame.payload)
                case 10: break
                case 8:
                    try send(8, frame.payload)
                    return
                default: try send(frame.opcode, frame.payload, isFinal: frame.isFinal)
                }
            }
        }

        /// Reads until the connection ends; returns the number of bytes.
        @discardableResult
        package func drain() throws -> Int {
            var count = buffer.count
            buffer = []
            while try fill() {
                count += buffer.count
                buffer = []
            }
            return count
        }

        /// Ends the connection with a TCP reset.
        package func reset() {
            var option = linger(l_onoff: 1, l_linger: 0)
            setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
        }

        private func read(_ count: Int) throws -> [UInt8]? {
            while buffer.count < count { guard try fill() else { return nil } }
            defer { buffer.removeFirst(count) }
            return Array(buffer.prefix(count))
        }

        private func fill() throws -> Bool {
            var piece = [UInt8](repeating: 0, count: 65_536)
            let count = piece.withUnsafeMutableBytes { recv(descriptor, $0.baseAddress, $0.count, 0) }
            guard count > 0 else { return false }
            buffer += piece[..<count]
            return true
        }
    }

    /// The accept value for a key (RFC 6455, section 4.2.2).
    package static func acceptValue(for key: String) -> String {
        Data(Insecure.SHA1.hash(data: Data((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8))).base64EncodedString()
    }

    package let port: Int
    private let listener: Int32
    private let ended: Watched<[Result<Void, any Error>]>

    /// - Parameter script: The script for a connection whose head has arrived; the connection is closed when the script ends.
    /// - Throws: An error if the server cannot listen.
    package init(_ script: @escaping @Sendable (Connection) throws -> Void) throws {
        let socket = try ServerProcess.listeningSocket()
        let listener = socket.descriptor
        self.listener = listener
        port = socket.port
        let ended = Watched<[Result<Void, any Error>]>([])
        self.ended = ended
        Thread.detachNewThread {
            var number = 0
            while true {
                let descriptor = accept(listener, nil, nil)
                guard descriptor >= 0 else { return }
                _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
                let order = number
                number += 1
                Thread.detachNewThread {
                    let connection = Connection(descriptor, number: order)
                    let result = Result {
                        try connection.readHead()
                        try script(connection)
                    }
                    close(descriptor)
                    ended.change { $0.append(result) }
                }
            }
        }
    }

    package func url(_ path: String = "/") -> URL {
        let text = "ws://127.0.0.1:\(port)\(path)"
        guard let url = URL(string: text) else { preconditionFailure("'\(text)' is not a URL") }
        return url
    }

    /// Waits until `count` connections have ended; throws if one of their scripts failed.
    package func waitForEnds(_ count: Int = 1) async throws {
        let results = try await ended.value { $0.count >= count ? $0 : nil }
        for result in results { try result.get() }
    }

    /// Stops listening.
    package func stop() {
        shutdown(listener, Int32(SHUT_RDWR))
        close(listener)
    }

    /// An unmasked frame, as a server sends it.
    package static func frame(
        _ opcode: UInt8, _ payload: [UInt8], isFinal: Bool = true, isCompressed: Bool = false
    ) -> [UInt8] {
        var bytes = [opcode | (isFinal ? 0x80 : 0) | (isCompressed ? 0x40 : 0)]
        switch payload.count {
        case ..<126: bytes.append(UInt8(payload.count))
        case ..<65_536: bytes += [126, UInt8(payload.count >> 8), UInt8(payload.count & 255)]
        default: bytes += [127] + (0..<8).map { UInt8(truncatingIfNeeded: payload.count >> (56 - 8 * $0)) }
        }
        return bytes + payload
    }
}
