// SPDX-License-Identifier: Apache-2.0

import HTTPWire

/// A parser's events for some bytes, in a form that does not show how they were split.
struct Transcript: Equatable, CustomStringConvertible {
    var parts: [String] = []
    private var content: [UInt8] = []
    var failure: ResponseParser.Failure?

    /// Reads `bytes` split at the given places, then reports the end of the connection, unless parsing failed or `closing` is
    /// false.
    init(
        _ bytes: [UInt8],
        _ kind: ResponseParser.RequestKind = .other,
        cuts: [Int] = [],
        limits: ResponseParser.Limits = ResponseParser.Limits(),
        closing: Bool = true
    ) {
        var parser = ResponseParser(limits: limits)
        parser.begin(kind)
        var start = 0
        var left = 0
        do throws(ResponseParser.Failure) {
            for cut in cuts + [bytes.count] {
                // A separate copy, so that the address sanitizer detects reads beyond a piece.
                left += try take(Array(bytes[start..<cut]), &parser)
                start = cut
            }
            if closing {
                while let event = try parser.finish() { note(event, []) }
            }
        } catch {
            failure = error
        }
        flush()
        if let failure {
            parts.append("failed \(failure)")
        } else {
            parts.append(parser.isIdle ? (parser.mayReuseConnection ? "reusable" : "spent") : "waiting")
            parts.append("\(parser.headerBytesReceived)+\(parser.bodyBytesReceived)+\(left)")
        }
    }

    private mutating func take(
        _ piece: [UInt8],
        _ parser: inout ResponseParser
    ) throws(ResponseParser.Failure) -> Int {
        try piece.span.bytes.withUnsafeBytes { bytes throws(ResponseParser.Failure) in
            var offset = 0
            while let event = try parser.next(bytes, &offset) { note(event, piece) }
            if !parser.isIdle, offset != bytes.count { parts.append("stuck at \(offset)") }
            return bytes.count - offset
        }
    }

    private mutating func note(_ event: ResponseParser.Event, _ piece: [UInt8]) {
        if case .body(let range) = event {
            if range.isEmpty { parts.append("empty body event") }
            content += piece[range]
            return
        }
        flush()
        switch event {
        case .informational(let head): parts.append("informational \(Self.text(head))")
        case .head(let head, let framing): parts.append("\(Self.text(head)) \(framing)")
        case .body: break
        case .end(nil): parts.append("end")
        case .end(let trailers?): parts.append("end \(Self.text(trailers))")
        }
    }

    private mutating func flush() {
        guard !content.isEmpty else { return }
        parts.append("body \(String(decoding: content, as: UTF8.self))")
        content = []
    }

    private static func text(_ head: ResponseHead) -> String {
        "1.\(head.minorVersion) \(head.status) '\(head.reason)' \(text(head.headers))"
    }

    private static func text(_ headers: HeaderBlock) -> String {
        "[" + headers.fields.map { "\($0.name)=\($0.value)" }.joined(separator: "|") + "]"
    }

    var description: String { parts.joined(separator: " / ") }

    /// The transcript without the counts at the end.
    var outcome: String {
        failure == nil ? parts.dropLast().joined(separator: " / ") : description
    }

    // MARK: Cuts

    /// Reads the bytes whole, byte by byte, and split at every place; returns the first transcript and those that differ from it.
    static func everyWay(
        _ bytes: [UInt8],
        _ kind: ResponseParser.RequestKind = .other,
        limits: ResponseParser.Limits = ResponseParser.Limits()
    ) -> (whole: Transcript, differing: [(cuts: String, transcript: Transcript)]) {
        let whole = Transcript(bytes, kind, limits: limits)
        var differing: [(cuts: String, transcript: Transcript)] = []
        let byByte = Transcript(bytes, kind, cuts: Array(bytes.indices), limits: limits)
        if byByte != whole { differing.append(("byte by byte", byByte)) }
        for cut in bytes.indices {
            let split = Transcript(bytes, kind, cuts: [cut], limits: limits)
            if split != whole { differing.append(("cut at \(cut)", split)) }
        }
        return (whole, differing)
    }
}
