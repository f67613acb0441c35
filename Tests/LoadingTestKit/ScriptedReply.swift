// SPDX-License-Identifier: Apache-2.0

/// The response of a ``ScriptedServer`` to one request, over every ``ScriptedVersion`` unless it contains bytes of HTTP/1.1.
package struct ScriptedReply: Sendable, ExpressibleByArrayLiteral {
    package var effects: [SocketEffect]

    package init(_ effects: [SocketEffect]) { self.effects = effects }
    package init(arrayLiteral effects: SocketEffect...) { self.effects = effects }

    /// Bytes of HTTP/1.1 exactly as given; the connection stays open.
    package static func raw(_ text: String) -> ScriptedReply { [.write(text)] }

    /// The status line and the fields, with the empty line.
    package static func head(_ status: Int, _ headers: [(String, String)] = [], reason: String = "Scripted") -> String {
        var text = "HTTP/1.1 \(status) \(reason)\r\n"
        for (name, value) in headers { text += "\(name): \(value)\r\n" }
        return text + "\r\n"
    }

    /// A response with a body and its Content-Length.
    package static func status(_ status: Int, _ headers: [(String, String)] = [], body: [UInt8] = []) -> ScriptedReply {
        [.head(status, headers + [("Content-Length", "\(body.count)")], body, ends: true)]
    }

    /// A response that consists of its head.
    package static func bare(_ status: Int, _ headers: [(String, String)] = []) -> ScriptedReply {
        [.head(status, headers, [], ends: true)]
    }

    /// The beginning of a response, with a part of its content.
    package static func begun(_ status: Int, _ headers: [(String, String)], _ content: String = "") -> ScriptedReply {
        [.head(status, headers, content)]
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

    /// A response of unknown length, with a separate write for each piece; over HTTP/1.1, it is chunked.
    package static func chunked(
        _ chunks: [String], trailers: [(String, String)] = [], _ headers: [(String, String)] = []
    ) -> ScriptedReply {
        let head = SocketEffect.head(200, headers + [("Transfer-Encoding", "chunked")], [], ends: false)
        return ScriptedReply([head] + chunks.map { SocketEffect.content($0) } + [.end(trailers: trailers)])
    }

    /// A response whose bytes arrive one at a time.
    package static func slow(_ body: String) -> ScriptedReply {
        let bytes = body.utf8.map { SocketEffect.content([$0]) }
        return ScriptedReply([.head(200, [("Content-Length", "\(bytes.count)")])] + bytes + [.end(trailers: [])])
    }

    /// A body in gzip (RFC 1952), as stored blocks.
    package static func gzip(_ body: [UInt8], _ headers: [(String, String)] = []) -> ScriptedReply {
        .ok(GzipBytes.stored(body), [("Content-Encoding", "gzip")] + headers)
    }

    /// `count` pieces of the same bytes, with Content-Length, written as fast as the client reads them and never held in memory.
    package static func large(chunk: [UInt8], count: Int, _ headers: [(String, String)] = []) -> ScriptedReply {
        [
            .head(200, headers + [("Content-Length", "\(chunk.count * count)")], [], ends: false),
            .content(chunk, times: count), .end(trailers: []),
        ]
    }

    /// This reply, followed by further effects.
    package func then(_ more: SocketEffect...) -> ScriptedReply { ScriptedReply(effects + more) }

    package func then(_ next: ScriptedReply) -> ScriptedReply { ScriptedReply(effects + next.effects) }

    /// This reply, preceded by other effects.
    package func after(_ first: SocketEffect...) -> ScriptedReply { ScriptedReply(first + effects) }

    /// This reply with further fields in its first head.
    package func adding(_ more: (String, String)...) -> ScriptedReply {
        guard case .head(let status, let fields, let content, let ends)? = effects.first else { return self }
        return ScriptedReply([.head(status, more + fields, content, ends: ends)] + effects.dropFirst())
    }

    // MARK: HTTP/1.1

    static func isChunked(_ fields: [(String, String)]) -> Bool {
        fields.contains { $0.0.lowercased() == "transfer-encoding" && $0.1.hasSuffix("chunked") }
    }

    static func framed(_ content: [UInt8], isChunked: Bool) -> [UInt8] {
        isChunked ? Array("\(String(content.count, radix: 16))\r\n".utf8) + content + Array("\r\n".utf8) : content
    }

    static func lastChunk(_ trailers: [(String, String)]) -> [UInt8] {
        Array(("0\r\n" + trailers.map { "\($0.0): \($0.1)\r\n" }.joined() + "\r\n").utf8)
    }
}
