// SPDX-License-Identifier: Apache-2.0

import NIOCore

/// Reads the cipher suite from the server's first message, which is cleartext in every version of TLS (RFC 8446, section 4.1.3),
/// and detects servers that do not speak TLS at all.
///
/// NIOSSL reports neither the cipher suite nor such servers. This handler stays in front of the TLS handler during the handshake,
/// and records which handshake each event belongs to (``ClientCertificateRequests``).
final class ServerHelloReader: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    /// The IANA number of the cipher suite, once it is known.
    private(set) var cipherSuite: UInt16?
    /// Whether the server's first byte cannot start a TLS record.
    private(set) var isNotTLS = false
    private(set) var hasSeenBytes = false
    private var start: [UInt8] = []
    private var knowsAll = false
    private weak var handshake: TLSHandshake?

    init(of handshake: TLSHandshake) { self.handshake = handshake }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if !knowsAll {
            start += unwrapInboundIn(data).readableBytesView.prefix(128 - start.count)
            hasSeenBytes = true
            knowsAll = read()
        }
        guard let handshake, !handshake.isOver else {
            context.fireChannelRead(data)
            context.pipeline.syncOperations.removeHandler(context: context, promise: nil)
            return
        }
        ClientCertificateRequests.during(handshake, on: context.eventLoop) { context.fireChannelRead(data) }
    }

    /// Reads the buffered bytes; returns true when there is nothing more to learn.
    private func read() -> Bool {
        guard let type = start.first else { return false }
        // The record types are alert (21) and handshake (22). A record's header has 5 bytes; a handshake message's header has 4.
        guard type == 22 else {
            isNotTLS = type != 21
            return true
        }
        guard start.count > 43 else { return false }
        // ServerHello has message type 2. It contains version (2 bytes), random (32), session ID with its length, and cipher suite
        // (2).
        guard start[5] == 2 else { return true }
        let suite = 44 + Int(start[43])
        guard start.count >= suite + 2 else { return start.count >= 128 }
        cipherSuite = UInt16(start[suite]) << 8 | UInt16(start[suite + 1])
        return true
    }
}
