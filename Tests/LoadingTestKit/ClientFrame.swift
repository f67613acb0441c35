// SPDX-License-Identifier: Apache-2.0

import Crypto
import Foundation

/// A WebSocket frame that a client sent, with its masking key (RFC 6455, section 5.2).
package struct ClientFrame: Sendable, Equatable {
    package var first: UInt8
    package var key: [UInt8]?
    /// The length in the second byte, without the mask bit.
    package var shortLength: UInt8
    package var payload: [UInt8]

    package var opcode: UInt8 { first & 0x0F }

    /// All complete frames in the bytes; an incomplete frame at the end is ignored.
    package static func all(_ bytes: [UInt8]) -> [ClientFrame] {
        var rest = bytes
        return taken(from: &rest)
    }

    /// Removes the complete frames from the beginning of the bytes.
    static func taken(from bytes: inout [UInt8]) -> [ClientFrame] {
        var (frames, rest) = ([ClientFrame](), bytes[...])
        while let (frame, length) = one(rest) {
            frames.append(frame)
            rest = rest.dropFirst(length)
        }
        bytes = Array(rest)
        return frames
    }

    private static func one(_ bytes: ArraySlice<UInt8>) -> (ClientFrame, Int)? {
        let bytes = Array(bytes)
        guard bytes.count >= 2 else { return nil }
        let short = bytes[1] & 0x7F
        var start = 2
        var length = Int(short)
        if short >= 126 {
            let width = short == 126 ? 2 : 8
            guard bytes.count >= 2 + width else { return nil }
            length = bytes[2..<(2 + width)].reduce(0) { $0 << 8 | Int($1) }
            start += width
        }
        var key: [UInt8]?
        if bytes[1] & 0x80 != 0 {
            guard bytes.count >= start + 4 else { return nil }
            key = Array(bytes[start..<(start + 4)])
            start += 4
        }
        guard bytes.count >= start + length else { return nil }
        var payload = Array(bytes[start..<(start + length)])
        if let key { for index in payload.indices { payload[index] ^= key[index & 3] } }
        return (ClientFrame(first: bytes[0], key: key, shortLength: short, payload: payload), start + length)
    }
}

extension RecordedRequest {
    /// The accept value for the request's key (RFC 6455, section 4.2.2).
    package var acceptValue: String {
        let text = (header("Sec-WebSocket-Key") ?? "") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        return Data(Insecure.SHA1.hash(data: Data(text.utf8))).base64EncodedString()
    }
}

extension ScriptedReply {
    /// A 101 response that accepts the handshake, with further fields, followed by frames.
    package static func webSocket(
        _ request: RecordedRequest, _ fields: [(String, String)] = [], then frames: [UInt8] = []
    ) -> ScriptedReply {
        let all =
            [("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Accept", request.acceptValue)] + fields
        return [.write(Array(head(101, all).utf8) + frames)]
    }
}
