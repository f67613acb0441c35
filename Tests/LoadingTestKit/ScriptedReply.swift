//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// The response of a ``ScriptedServer`` to one request.
package struct ScriptedReply: Sendable, ExpressibleByArrayLiteral {
    package var effects: [SocketEffect]

    package init(_ effects: [SocketEffect]) { self.effects = effects }
    package init(arrayLiteral effects: SocketEffect...) { self.effects = effects }

    /// Bytes exactly as given; the connection stays open.
    package static func raw(_ text: String) -> ScriptedReply { [.write(text)] }

    /// The status line and the fields, with the empty line.
    package static func head(_ status: Int, _ headers: [(String, String)] = [], reason: String = "Scripted") -> String {
        var text = "HTTP/1.1 \(status) \(reason)\r\n"
        for (name, value) in headers { text += "\(name): \(value)\r\n" }
        return text + "\r\n"
    }

    /// A response with a body and its Content-Length.
    package static func status(_ status: Int, _ headers: [(String, String)] = [], body: [UInt8] = []) -> ScriptedReply {
        [.write(Array(head(status, headers + [("Content-Length", "\(body.count)")]).utf8) + body)]
    }

    package static func status(_ status: Int, _ headers: [(String, String)] = [], body: String) -> ScriptedReply {
        .status(status, headers, body: Array(body.utf8))
    }

    package static func ok(_ body: String = "", _ headers: [(String, String)] = []) -> ScriptedReply {
        .status(200, headers, body: Array(body.utf8))
    }

    package static func ok(_ body: [UInt8], _ headers: [(String, String)] = []) -> ScriptedReply {
        .status(200, headers, body: body)
    }

    package static func json(_ text: String) -> ScriptedReply { .ok(text, [("Content-Type", "application/json")]) }

    package static func redirect(
        _ status: Int, to location: String, _ headers: [(String, String)] = [], body: String = "moved"
    )
        -> ScriptedReply
    {
        .status(status, [("Location", location)] + headers, body: body)
    }

    /// A chunked response, with a separate write for each chunk.
    package static func chunked(
        _ chunks: [String], trailers: [(String, String)] = [], _ headers: [(String, String)] = []
    ) -> ScriptedReply {
        var effects: [SocketEffect] = [.write(head(200, headers + [("Transfer-Encoding", "chunked")]))]
        for chunk in chunks { effects.append(.write(String(chunk.utf8.count, radix: 16) + "\r\n" + chunk + "\r\n")) }
        effects.append(.write("0\r\n" + trailers.map { "\($0.0): \($0.1)\r\n" }.joined() + "\r\n"))
        return ScriptedReply(effects)
    }

    /// A body in gzip (RFC 1952), as stored blocks.
    package static func gzip(_ body: [UInt8], _ headers: [(String, String)] = []) -> ScriptedReply {
        .ok(GzipBytes.stored(body), [("Content-Encoding", "gzip")] + headers)
    }

    /// `count` chunks of the same bytes, with Content-Length, written as fast as the client reads them and never held in memory.
    package static func large(chunk: [UInt8], count: Int, _ headers: [(String, String)] = []) -> ScriptedReply {
        [
            .write(head(200, headers + [("Content-Length", "\(chunk.count * count)")])),
            .repeat(chunk, count: count),
        ]
    }

    /// This reply, followed by further effects.
    package func then(_ more: SocketEffect...) -> ScriptedReply { ScriptedReply(effects + more) }
}
