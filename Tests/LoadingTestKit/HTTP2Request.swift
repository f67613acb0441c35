// SPDX-License-Identifier: Apache-2.0

import Crypto

/// A request that an ``HTTP2ScriptedServer`` received.
package struct HTTP2Request: Sendable {
    /// The fields in order, including pseudo-header fields; for HTTP/1.1, `:method` and `:path` are taken from the request line.
    package let fields: [(name: String, value: String)]
    /// The stream identifier; 0 on an HTTP/1.1 connection.
    package let stream: Int
    /// The number of the connection at the server, counted from 0.
    package let connection: Int
    /// The number of open requests on the connection when this one arrived, including itself.
    package let openCount: Int
    /// The number of the request at the server, counted from 0.
    package let order: Int
    /// The first 64 KiB of the body; set, like the properties below, when the request is complete.
    package internal(set) var body: [UInt8] = []
    package internal(set) var bodyLength = 0
    /// SHA-256 of the body in hexadecimal digits.
    package internal(set) var bodyHash = ""
    package internal(set) var trailers: [(name: String, value: String)] = []
    package internal(set) var isComplete = false

    /// The first value of a field, or nil.
    package func header(_ name: String) -> String? { values(of: name).first }

    package func values(of name: String) -> [String] { fields.filter { $0.name == name }.map(\.value) }

    /// The value of ``bodyHash`` for a body.
    package static func hash(of body: [UInt8]) -> String {
        SHA256.hash(data: body).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    package var method: String { header(":method") ?? "" }
    package var path: String { header(":path") ?? "" }
    package var authority: String { header(":authority") ?? "" }
    package var isHTTP2: Bool { stream > 0 }
    package var bodyText: String { String(decoding: body, as: UTF8.self) }
}
