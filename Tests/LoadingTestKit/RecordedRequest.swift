// SPDX-License-Identifier: Apache-2.0

/// A request that a ``ScriptedServer`` received, with its fields in order and unmodified.
package struct RecordedRequest: Sendable {
    static let maximumBodySize = 64 << 20
    package var method = ""
    package var target = ""
    package var version = ""
    package var headers: [(name: String, value: String)] = []
    /// The bytes of the request line and the field lines; over other versions than HTTP/1.1, written as for HTTP/1.1.
    package var rawHead: [UInt8] = []
    /// The body without its transfer coding; up to 64 MiB are kept.
    package var body: [UInt8] = []
    /// The length of the whole body, including bytes that are not kept.
    package var bodyLength = 0
    /// The sizes of the chunks, if the body is chunked.
    package var chunks: [Int] = []
    package var trailers: [(name: String, value: String)] = []
    /// The number of the connection at the server, counted from 0.
    package var connection = 0
    /// The number of the request on its connection, counted from 0.
    package var number = 0
    /// The number of the request at the server, counted from 0.
    package var order = 0
    /// Whether the request was complete before the connection ended.
    package var isComplete = false
    /// Whether the client reset the stream of the request.
    var isReset = false

    package init() {}

    /// A request as HTTP/1.1 would write it: with `Host`, and one `Cookie` field (RFC 9113, sections 8.3.1 and 8.2.3).
    init(fields: [(name: String, value: String)], version: String, connection: Int, number: Int) {
        (self.version, self.connection, self.number) = (version, connection, number)
        var cookies: [String] = []
        for (name, value) in fields {
            switch name {
            case ":method": method = value
            case ":path": target = value
            case ":authority": headers.insert(("Host", value), at: 0)
            case "cookie": cookies.append(value)
            default: if !name.hasPrefix(":") { headers.append((name, value)) }
            }
        }
        if !cookies.isEmpty { headers.append(("Cookie", cookies.joined(separator: "; "))) }
        let lines = headers.map { "\($0.name): \($0.value)\r\n" }.joined()
        rawHead = Array("\(method) \(target) \(version)\r\n\(lines)\r\n".utf8)
    }

    mutating func takeBody(_ bytes: ArraySlice<UInt8>) {
        bodyLength += bytes.count
        if body.count < Self.maximumBodySize { body.append(contentsOf: bytes) }
    }

    /// The first value of a field, or nil.
    package func header(_ name: String) -> String? { values(of: name).first }

    package func values(of name: String) -> [String] {
        headers.filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
    }

    package var bodyText: String { String(decoding: body, as: UTF8.self) }
    package var headText: String { String(decoding: rawHead, as: UTF8.self) }

    /// The values of a field's lines, as bytes.
    package func octets(of name: String) -> [[UInt8]] {
        rawHead.split(separator: 0x0A).compactMap { line in
            let start = Array((name.lowercased() + ": ").utf8)
            guard String(decoding: line.prefix(start.count), as: UTF8.self).lowercased().utf8.elementsEqual(start) else {
                return nil
            }
            return Array(line.dropFirst(start.count).filter { $0 != 0x0D })
        }
    }
    /// The target without its query.
    package var path: String { String(target.prefix { $0 != "?" }) }

    package var isChunked: Bool {
        values(of: "Transfer-Encoding").contains { $0.lowercased().contains("chunked") }
    }
}
