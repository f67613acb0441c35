// SPDX-License-Identifier: Apache-2.0

/// A frame between a test and the program that speaks QUIC for it (``HTTP3Python``): its length, its kind, a stream, and the content.
struct RelayedFrame {
    /// What the program reports about a connection.
    enum Event: UInt8 {
        /// The client's handshake has begun: the protocol of ALPN, and the server name.
        case secured
        /// The handshake is complete: the client's certificate in DER, or nothing.
        case confirmed
        /// The fields of a request.
        case head
        case content
        /// The request is complete: its trailers.
        case end
        /// The client reset its side of a stream, or refuses the server's.
        case reset, stopped
        /// The client has acknowledged this many bytes of a stream.
        case credit
        /// Bytes of a unidirectional stream of the client.
        case uni
        /// The connection is closed: by whom and why is unknown, but the code is.
        case closed
        /// The client violates RFC 9114, or a command cannot be carried out.
        case problem
    }

    /// What the program is to do with a connection.
    enum Command: UInt8 {
        /// The first command: the ``HTTP3Opening``.
        case use
        /// Sends bytes on a stream, or the last bytes.
        case write, finish
        case reset, stopSending
        /// Closes the connection, after the bytes of all streams are delivered unless the command says `now`.
        case close
        case act
        /// Sends the frames of a QUIC packet.
        case packet
        case datagram
    }

    var event: Event
    var stream: Int
    var content: ArraySlice<UInt8>

    /// The fields of a head or of trailers, as Latin-1, except that valid UTF-8 is decoded as such.
    var fields: [(name: String, value: String)] {
        var rest = content
        func next() -> String? {
            guard rest.count >= 4 else { return nil }
            let length = Int(Self.number(rest.prefix(4)))
            guard rest.count >= 4 + length else { return nil }
            let bytes = rest.dropFirst(4).prefix(length)
            rest = rest.dropFirst(4 + length)
            return String(decoding: bytes, as: UTF8.self)
        }
        var fields: [(name: String, value: String)] = []
        while let name = next(), let value = next() { fields.append((name, value)) }
        return fields
    }

    /// The number in a frame that contains only that.
    var number: UInt64 { Self.number(content) }

    static func bytes(of command: Command, stream: Int = 0, _ content: [UInt8] = []) -> [UInt8] {
        HTTP2Step.bytes(of: UInt32(9 + content.count)) + [command.rawValue] + HTTP2Step.bytes(of: UInt64(stream)) + content
    }

    fileprivate static func number(_ bytes: ArraySlice<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }
}

/// Finds the frames in the bytes of a socket.
struct RelayedFrameReader {
    private var buffer: [UInt8] = []

    mutating func feed(_ bytes: some Collection<UInt8>) -> [RelayedFrame] {
        buffer += bytes
        var frames: [RelayedFrame] = []
        var position = 0
        while buffer.count - position >= 13 {
            let end = position + 4 + Int(RelayedFrame.number(buffer[position..<position + 4]))
            guard buffer.count >= end else { break }
            if let event = RelayedFrame.Event(rawValue: buffer[position + 4]) {
                let stream = Int(RelayedFrame.number(buffer[position + 5..<position + 13]))
                frames.append(RelayedFrame(event: event, stream: stream, content: buffer[position + 13..<end]))
            }
            position = end
        }
        buffer.removeFirst(position)
        return frames
    }
}
