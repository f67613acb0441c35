// SPDX-License-Identifier: Apache-2.0

import Foundation

/// The recorded events of an ``HTTP3ScriptedServer``; tests wait for these events.
struct HTTP3Journal: Sendable {
    struct Connection: Sendable {
        /// The protocol selected by ALPN, and the server name that the client sent (SNI).
        var `protocol`: String?
        var serverName: String?
        var isConfirmed = false
        /// The client's certificate in DER.
        var certificate: [UInt8] = []
        /// What the client sent on its unidirectional streams, up to 64 KiB each.
        var uni: [Int: [UInt8]] = [:]
        var end: HTTP3End?
        var isClosed = false
    }

    struct StreamID: Hashable {
        var connection: Int
        var stream: Int
    }

    var connections: [Connection] = []
    var requests: [HTTP3Request] = []
    /// The codes with which the client reset its side of a stream, and with which it refused the server's.
    var resets: [StreamID: UInt64] = [:]
    var stops: [StreamID: UInt64] = [:]
    /// The number of bytes that the client has acknowledged.
    var delivered: [StreamID: Int] = [:]
    /// The number of bytes that scripts have sent.
    var sent: [StreamID: Int] = [:]
    var reached: [String: Int] = [:]
    var openGates: Set<String> = []
    /// The client's violations of RFC 9114, and errors in scripts.
    var errors: [String] = []

    /// Records an event; if the event is a new request, returns the request, because it needs a response.
    mutating func take(_ frame: RelayedFrame, on connection: Int) -> HTTP3Request? {
        let id = StreamID(connection: connection, stream: frame.stream)
        let order = requests.lastIndex { $0.connection == connection && $0.stream == frame.stream }
        switch frame.event {
        case .secured:
            let facts = try? JSONDecoder().decode([String: String?].self, from: Data(frame.content))
            connections[connection].protocol = facts?["protocol"] ?? nil
            connections[connection].serverName = facts?["name"] ?? nil
        case .confirmed:
            connections[connection].isConfirmed = true
            connections[connection].certificate = Array(frame.content)
        case .head:
            requests.append(
                HTTP3Request(fields: frame.fields, stream: frame.stream, connection: connection, order: requests.count))
            return requests.last
        case .content:
            guard let order else { break }
            requests[order].bodyLength += frame.content.count
            requests[order].body += frame.content.prefix(65_536 - requests[order].body.count)
        case .end:
            guard let order else { break }
            requests[order].trailers = frame.fields
            requests[order].isComplete = true
        case .reset: resets[id] = frame.number
        case .stopped: stops[id] = frame.number
        case .credit: delivered[id, default: 0] += Int(frame.number)
        case .uni:
            let known = connections[connection].uni[frame.stream, default: []]
            connections[connection].uni[frame.stream] = known + frame.content.prefix(65_536 - known.count)
        case .closed:
            connections[connection].end = try? JSONDecoder().decode(HTTP3End.self, from: Data(frame.content))
        case .problem: errors.append("connection \(connection): \(String(decoding: frame.content, as: UTF8.self))")
        }
        return nil
    }
}

/// How a connection of an ``HTTP3ScriptedServer`` ended.
package struct HTTP3End: Sendable, Decodable {
    /// The error code of the side that closed the connection.
    package let code: UInt64
    /// The type of the QUIC frame that is to blame; nil if the application closed the connection.
    package let frame: UInt64?
    package let reason: String

    package var errorCode: HTTP3Code? { frame == nil ? HTTP3Code(rawValue: code) : nil }
}

/// A request that an ``HTTP3ScriptedServer`` received.
package struct HTTP3Request: Sendable {
    /// The fields in order, including pseudo-header fields.
    package let fields: [(name: String, value: String)]
    package let stream: Int
    /// The number of the connection at the server, counted from 0.
    package let connection: Int
    /// The number of the request at the server, counted from 0.
    package let order: Int
    /// The first 64 KiB of the body.
    package internal(set) var body: [UInt8] = []
    package internal(set) var bodyLength = 0
    package internal(set) var trailers: [(name: String, value: String)] = []
    package internal(set) var isComplete = false

    init(fields: [(name: String, value: String)], stream: Int, connection: Int, order: Int) {
        self.fields = fields
        self.stream = stream
        self.connection = connection
        self.order = order
    }

    /// The first value of a field, or nil.
    package func header(_ name: String) -> String? { values(of: name).first }

    package func values(of name: String) -> [String] { fields.filter { $0.name == name }.map(\.value) }

    package var method: String { header(":method") ?? "" }
    package var path: String { header(":path") ?? "" }
    package var authority: String { header(":authority") ?? "" }
    package var bodyText: String { String(decoding: body, as: UTF8.self) }
}
