// SPDX-License-Identifier: Apache-2.0

import Foundation

/// An event of the program behind an ``HTTP2ScriptedServer``: a line of JSON.
struct HTTP2Event: Decodable {
    enum Name: String, Decodable {
        case accepted, secured, frame, request, end, blocked, reached, ending, closed, violation, error
        /// The script continues when the ``HTTP2ScriptedServer`` confirms that it has processed all earlier events.
        case mark
    }

    let event: Name
    let connection: Int?
    let stream: Int?
    let type: UInt8?
    let flags: UInt8?
    let length: Int?
    let code: UInt32?
    let last: Int?
    let increment: Int?
    let settings: [[UInt32]]?
    /// The data of PING, or the debug data of GOAWAY.
    let data: Data?
    let fields: [[String]]?
    /// The number of open requests when this one arrived, including itself.
    let open: Int?
    let sha256: String?
    let body: Data?
    /// The name of a gate, a point of the script, a server (SNI), or a mark.
    let name: String?
    /// The protocol selected by ALPN.
    let `protocol`: String?
    let how: String?
    let text: String?
}

/// A command from an ``HTTP2ScriptedServer`` to the program behind it: a line of JSON.
struct HTTP2Command: Encodable {
    enum Name: String, Encodable {
        /// Runs the first steps of a connection, and starts reading.
        case begin
        case run, open, stopListening
    }

    var `do`: Name
    var connection: Int?
    var stream: Int?
    var steps: [HTTP2Step]?
    var name: String?
}
