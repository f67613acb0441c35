//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation

/// What the program behind a ``HTTP2ScriptedServer`` says: a line of JSON.
struct HTTP2Event: Decodable {
    enum Name: String, Decodable {
        case accepted, secured, frame, request, end, blocked, reached, ending, closed, violation, error
        /// Goes on when it is told that all before it has been taken.
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
    /// Of PING and GOAWAY.
    let data: Data?
    let fields: [[String]]?
    /// How many requests were open when this one came, itself included.
    let open: Int?
    let sha256: String?
    let body: Data?
    /// Of a gate, a point of the script, a server (SNI), a mark.
    let name: String?
    /// Chosen by ALPN.
    let `protocol`: String?
    let how: String?
    let text: String?
}

/// What a ``HTTP2ScriptedServer`` tells the program behind it: a line of JSON.
struct HTTP2Order: Encodable {
    enum Name: String, Encodable {
        /// The first steps of a connection, which is read from then on.
        case begin
        case run, open, stopListening
    }

    var `do`: Name
    var connection: Int?
    var stream: Int?
    var steps: [HTTP2Step]?
    var name: String?
}
