// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The properties of a QUIC connection that an HTTP/3 server of the tests accepts.
package struct HTTP3Opening: Sendable, Encodable {
    /// A transport parameter (RFC 9000, section 18): its number, and its bytes instead of the usual ones; nil leaves it out.
    package struct Parameter: Sendable, Encodable {
        package var number: UInt64
        package var bytes: [UInt8]?

        package init(_ number: UInt64, _ bytes: [UInt8]?) {
            self.number = number
            self.bytes = bytes
        }

        package func encode(to encoder: any Encoder) throws {
            var pair = encoder.unkeyedContainer()
            try pair.encode(number)
            try pair.encode(bytes.map { Data($0) })
        }
    }

    /// The index of the certificate.
    package var identity = 0
    /// The protocols for ALPN; nil ignores the client's.
    package var protocols: [String]? = ["h3"]
    /// The protocol that the server selects although the client may not offer it.
    package var selects: String?
    /// Whether the server asks for a client certificate, and whether it closes the connection without one.
    package var asks = false
    package var insists = false
    package var parameters: [Parameter] = []
    /// Bytes behind the transport parameters.
    package var moreParameters: [UInt8] = []
    /// Datagrams that are sent before any other.
    package var before: [HTTP3Forgery] = []
    /// Whether the server ignores all datagrams, and sends none.
    package var mute = false
    /// The error of QUIC with which the server closes the connection within the handshake.
    package var closes: UInt64?
    /// The idle timeout in seconds, the number of requests at once, and the flow control windows of the connection and of a stream.
    package var idle = 30
    package var streams = 100
    package var maxData = 1 << 20
    package var maxStreamData = 1 << 20
    /// Whether the test opens the control stream and those of QPACK.
    var manual = true
    /// Whether the test learns the bytes of the client's unidirectional streams.
    var tells = true

    package init(_ change: (inout HTTP3Opening) -> Void = { _ in }) { change(&self) }

    /// The frame that opens the connection.
    var bytes: [UInt8] { RelayedFrame.bytes(of: .use, json(self)) }
}

/// A datagram that anyone on the network can send, or only the server.
package struct HTTP3Forgery: Sendable, Encodable {
    private enum Kind: String, Encodable { case raw, versions, retry, reset, replay }

    private var kind: Kind
    private var bytes: Data?
    private var versions: [UInt32]?
    private var valid: Bool?
    private var times: Int?
    private var elsewhere: Bool?

    private init(_ kind: Kind) { self.kind = kind }

    package static func raw(_ bytes: [UInt8]) -> HTTP3Forgery {
        var forgery = HTTP3Forgery(.raw)
        forgery.bytes = Data(bytes)
        return forgery
    }

    /// A Version Negotiation packet (RFC 9000, section 17.2.1).
    package static func versions(_ versions: [UInt32]) -> HTTP3Forgery {
        var forgery = HTTP3Forgery(.versions)
        forgery.versions = versions
        return forgery
    }

    /// A Retry packet (RFC 9000, section 17.2.5), whose tag is right or wrong.
    package static func retry(isValid: Bool) -> HTTP3Forgery {
        var forgery = HTTP3Forgery(.retry)
        forgery.valid = isValid
        return forgery
    }

    /// A stateless reset (RFC 9000, section 10.3), whose token is right or wrong.
    package static func reset(isValid: Bool) -> HTTP3Forgery {
        var forgery = HTTP3Forgery(.reset)
        forgery.valid = isValid
        return forgery
    }

    /// The first datagrams of the server, again.
    package static let replay = HTTP3Forgery(.replay)

    /// The same, `times` times.
    package func times(_ times: Int) -> HTTP3Forgery {
        var forgery = self
        forgery.times = times
        return forgery
    }

    /// The same, from another port.
    package var fromElsewhere: HTTP3Forgery {
        var forgery = self
        forgery.elsewhere = true
        return forgery
    }
}

/// An action that is no command of a QUIC library.
struct HTTP3Act: Encodable {
    enum Name: String, Encodable { case mute, deaf, forget, updateKey, forge }

    var `do`: Name
    var on: Bool?
    var datagram: HTTP3Forgery?

    var bytes: [UInt8] { RelayedFrame.bytes(of: .act, json(self)) }
}

/// The end of a connection.
struct HTTP3Closing: Encodable {
    var code: UInt64
    /// The type of the frame that is to blame; nil closes as the application does.
    var frame: UInt64?
    var reason = ""
    /// Whether bytes that are not delivered are lost.
    var now = false

    var bytes: [UInt8] { RelayedFrame.bytes(of: .close, json(self)) }
}

private func json(_ value: some Encodable) -> [UInt8] {
    guard let data = try? JSONEncoder().encode(value) else { preconditionFailure("\(value) cannot be encoded as JSON") }
    return Array(data)
}
