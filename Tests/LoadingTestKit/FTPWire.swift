// SPDX-License-Identifier: Apache-2.0

import Glibc
import NIOCore
import NIOEmbedded
import NIOSSL
import NIOTLS

/// A TCP connection of a scripted FTP server, with optional TLS; used by one thread.
package final class FTPWire {
    package let descriptor: Int32
    /// Whether each byte is sent separately.
    private let isSplit: Bool
    private var buffer: [UInt8] = []
    /// The TLS layer between the socket and the script.
    private var secure: EmbeddedChannel?

    package init(_ descriptor: Int32, isSplit: Bool = false) {
        self.descriptor = descriptor
        self.isSplit = isSplit
        var on: Int32 = 1
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
    }

    package var isSecure: Bool { secure != nil }

    package func write(_ text: String) throws { try write(Array(text.utf8)) }

    package func write(_ bytes: [UInt8]) throws {
        if let secure {
            secure.writeAndFlush(ByteBuffer(bytes: bytes), promise: nil)
            return try sendSecured()
        }
        let pieces = isSplit ? bytes.map { [$0] } : [bytes]
        for piece in pieces {
            guard LoopbackSocket.send(piece, descriptor) else { throw ScriptedFTP.Failure.ended }
            if isSplit { sched_yield() }
        }
    }

    /// Sends bytes until all are sent, or until the socket has accepted nothing for a while.
    ///
    /// - Parameters:
    ///   - bytes: Bytes to send in cleartext.
    ///   - milliseconds: The time without progress after which to stop.
    /// - Returns: The number of bytes that the socket accepted.
    /// - Throws: ``ScriptedFTP/Failure`` if the connection ends.
    package func writeUntilStalled(_ bytes: [UInt8], milliseconds: Int32 = 700) throws -> Int {
        var count = 0
        while count < bytes.count {
            var event = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
            guard poll(&event, 1, milliseconds) > 0 else { return count }
            let sent = bytes[count...].withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL) | Int32(0x40))
            }
            guard sent > 0 || errno == EAGAIN else { throw ScriptedFTP.Failure.ended }
            count += max(0, sent)
        }
        return count
    }

    /// The next line without its CRLF; nil at the end of the connection.
    package func line() -> [UInt8]? {
        while true {
            if let end = buffer.firstRange(of: [13, 10]) {
                defer { buffer.removeFirst(end.upperBound) }
                return Array(buffer[..<end.lowerBound])
            }
            guard fill() else { return nil }
        }
    }

    /// All bytes until the client closes its sending side.
    package func rest() -> [UInt8] {
        while fill() {}
        defer { buffer = [] }
        return buffer
    }

    /// All buffered bytes: at least `count`, or fewer if the connection ends first.
    package func take(_ count: Int) -> [UInt8] {
        while buffer.count < count, fill() {}
        defer { buffer = [] }
        return buffer
    }

    package func reset() {
        var option = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    }

    private func fill() -> Bool {
        if let secure, !secure.isActive { return false }
        guard let piece = receive() else { return false }
        guard let secure else {
            buffer += piece
            return true
        }
        do {
            try secure.writeInbound(ByteBuffer(bytes: piece))
            try sendSecured()
            while let part = try secure.readInbound(as: ByteBuffer.self) { buffer += part.readableBytesView }
        } catch {
            return false
        }
        return true
    }

    private func receive() -> [UInt8]? {
        var piece = [UInt8](repeating: 0, count: 65_536)
        let count = recv(descriptor, &piece, piece.count, 0)
        return count > 0 ? Array(piece[..<count]) : nil
    }

    // MARK: TLS

    /// Performs the server's side of a TLS handshake.
    func startTLS(_ context: NIOSSLContext) throws {
        let (channel, end) = (EmbeddedChannel(), HandshakeEnd())
        try channel.pipeline.syncOperations.addHandlers([NIOSSLServerHandler(context: context), end])
        channel.connect(to: try SocketAddress(ipAddress: "127.0.0.1", port: 1), promise: nil)
        secure = channel
        while !end.isReached { guard fill() else { throw ScriptedFTP.Failure.ended } }
    }

    /// Sends close_notify, if TLS is active.
    package func endTLS() {
        guard let secure, secure.isActive else { return }
        secure.close(promise: nil)
        try? sendSecured()
    }

    /// Ends TLS without close_notify.
    package func cutTLS() { secure = nil }

    private func sendSecured() throws {
        while let part = try secure?.readOutbound(as: ByteBuffer.self) {
            guard LoopbackSocket.send(Array(part.readableBytesView), descriptor) else { throw ScriptedFTP.Failure.ended }
        }
    }

    private final class HandshakeEnd: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer

        private(set) var isReached = false

        func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
            if case .handshakeCompleted? = event as? TLSUserEvent { isReached = true }
            context.fireUserInboundEventTriggered(event)
        }
    }
}
