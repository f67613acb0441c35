// SPDX-License-Identifier: Apache-2.0

/// A resource in memory that responds to GET, HEAD and byte ranges (RFC 9110, section 14), optionally with faults.
package struct ScriptedFile: Sendable, CustomStringConvertible {
    package var content: [UInt8]
    package var entityTag: String?
    package var lastModified: String?
    /// Whether ranges are served; otherwise every response is a 200.
    package var servesRanges = true
    package var headers: [(String, String)] = []

    package init(
        _ content: [UInt8], entityTag: String? = "\"v1\"", lastModified: String? = nil, servesRanges: Bool = true,
        headers: [(String, String)] = []
    ) {
        self.content = content
        self.entityTag = entityTag
        self.lastModified = lastModified
        self.servesRanges = servesRanges
        self.headers = headers
    }

    package var description: String {
        "\(content.count) bytes, ETag \(entityTag ?? "none"), Last-Modified \(lastModified ?? "none")"
    }

    /// Pseudorandom bytes, in which each position can be distinguished from the others.
    package static func pattern(_ count: Int, seed: UInt8 = 0) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        var state = UInt64(seed) &+ 0x9E37_79B9_7F4A_7C15
        for index in bytes.indices {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            bytes[index] = UInt8(truncatingIfNeeded: state >> 56)
        }
        return bytes
    }

    /// The response; with `cutAfter`, only that number of body bytes is sent, followed by `ending`.
    package func reply(to request: RecordedRequest, cutAfter: Int? = nil, ending: SocketEffect = .close) -> ScriptedReply {
        var fields = headers
        if let entityTag { fields.append(("ETag", entityTag)) }
        if let lastModified { fields.append(("Last-Modified", lastModified)) }
        if servesRanges { fields.append(("Accept-Ranges", "bytes")) }
        var status = 200
        var body = content[...]
        if servesRanges, let range = request.header("Range"), isCurrent(request.header("If-Range")) {
            guard let start = Self.start(of: range), start < content.count else {
                return .status(416, fields + [("Content-Range", "bytes */\(content.count)")])
            }
            status = 206
            body = content[start...]
            fields.append(("Content-Range", "bytes \(start)-\(content.count - 1)/\(content.count)"))
        }
        fields.append(("Content-Length", "\(body.count)"))
        if request.method == "HEAD" { return .bare(status, fields) }
        let head = SocketEffect.head(status, fields, [], ends: false)
        guard let cutAfter, cutAfter < body.count else { return [head, .content(Array(body)), .end(trailers: [])] }
        return [head, .content(Array(body.prefix(cutAfter))), ending]
    }

    private func isCurrent(_ validator: String?) -> Bool {
        guard let validator else { return true }
        return validator == entityTag || validator == lastModified
    }

    private static func start(of range: String) -> Int? {
        guard range.hasPrefix("bytes="), range.hasSuffix("-") else { return nil }
        return Int(range.dropFirst(6).dropLast())
    }
}
