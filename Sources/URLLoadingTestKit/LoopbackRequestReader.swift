// SPDX-License-Identifier: Apache-2.0

import Foundation
import NIOCore

/// Parses HTTP/1.1 requests (RFC 9112) from the bytes of a connection.
///
/// Suitable only for a server whose clients are all tests.
struct LoopbackRequestReader {
    struct Malformed: Error {}

    /// The maximum size of a request: more than any test sends.
    private static let maximumSize = 256 << 20

    private var bytes = ByteBuffer()

    mutating func feed(_ more: ByteBuffer) {
        var more = more
        bytes.writeBuffer(&more)
    }

    /// Returns the next request; nil if it is incomplete.
    ///
    /// - Throws: An error if the bytes are not a request.
    mutating func next() throws -> ScriptedLoopbackServer.Request? {
        let view = bytes.readableBytesView
        guard view.count <= Self.maximumSize else { throw Malformed() }
        guard let end = view.firstRange(of: Array("\r\n\r\n".utf8)) else { return nil }
        let lines = String(decoding: view[..<end.lowerBound], as: UTF8.self).split(separator: "\r\n")
        let words = (lines.first ?? "").split(separator: " ")
        guard words.count == 3 else { throw Malformed() }
        let fields = lines.dropFirst().map { line in
            let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            return (name: String(parts[0]), value: parts.count > 1 ? parts[1].trimmingCharacters(in: .whitespaces) : "")
        }
        var request = ScriptedLoopbackServer.Request(
            method: String(words[0]), target: String(words[1]), fields: fields, body: Data())
        var rest = view[end.upperBound...]
        if request.value(of: "Transfer-Encoding")?.lowercased().contains("chunked") == true {
            guard let body = try Self.chunks(&rest) else { return nil }
            request.body = body
        } else {
            let length = request.value(of: "Content-Length").map { Int($0) ?? -1 } ?? 0
            guard 0...Self.maximumSize ~= length else { throw Malformed() }
            guard rest.count >= length else { return nil }
            request.body = Data(rest.prefix(length))
            rest = rest.dropFirst(length)
        }
        bytes.moveReaderIndex(forwardBy: view.count - rest.count)
        return request
    }

    /// Decodes a chunked body; nil if it is incomplete.
    private static func chunks(_ rest: inout ByteBufferView) throws -> Data? {
        let lineEnd = Array("\r\n".utf8)
        var body = Data()
        while true {
            guard let end = rest.firstRange(of: lineEnd) else { return nil }
            let line = String(decoding: rest[..<end.lowerBound].prefix { $0 != UInt8(ascii: ";") }, as: UTF8.self)
            guard let size = Int(line.trimmingCharacters(in: .whitespaces), radix: 16), 0...maximumSize ~= size else {
                throw Malformed()
            }
            rest = rest[end.upperBound...]
            if size == 0 {
                // Skip the trailer fields, up to the final empty line.
                while let end = rest.firstRange(of: lineEnd) {
                    let isLast = end.lowerBound == rest.startIndex
                    rest = rest[end.upperBound...]
                    if isLast { return body }
                }
                return nil
            }
            guard rest.count >= size + 2 else { return nil }
            body += rest.prefix(size)
            rest = rest.dropFirst(size + 2)
        }
    }
}
