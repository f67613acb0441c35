// SPDX-License-Identifier: Apache-2.0

import HTTPWire

/// Parses the input as a response: as a whole, byte by byte, and cut at input-dependent positions.
///
/// The events and the failure must be the same, and the invariants of `Reading` must hold.
///
/// The first byte chooses the request and the limits, and the second byte how the rest is cut.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzResponseParser(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    guard let data, count >= 2 else { return 0 }
    let input = UnsafeRawBufferPointer(start: data, count: count)
    let kind: ResponseParser.RequestKind = [.other, .other, .head, .connect][Int(input[0] & 3)]
    var limits = ResponseParser.Limits()
    if input[0] & 4 != 0 {
        limits.headerBytes = 64
        limits.headerLines = 4
        limits.chunkExtensionBytes = 8
        limits.trailerBytes = 16
    }
    let bytes = Array(input[2...])
    let whole = Reading(bytes, kind, limits, step: { bytes.count })
    let byByte = Reading(bytes, kind, limits, step: { 1 })
    var state = UInt32(input[1]) &* 2_654_435_761 | 1
    let pieces = Reading(bytes, kind, limits) {
        state = state &* 1_664_525 &+ 1_013_904_223
        return Int(state >> 24) % 24 + 1
    }
    precondition(whole == byByte, "byte by byte: \(byByte)\nwhole: \(whole)")
    precondition(whole == pieces, "in pieces: \(pieces)\nwhole: \(whole)")
    return 0
}

/// The parser's events, independent of how the bytes were cut.
private struct Reading: Equatable {
    enum Part: Equatable {
        case informational(ResponseHead)
        case head(ResponseHead, ResponseParser.Framing)
        case end(HeaderBlock?)
    }

    var parts: [Part] = []
    var content: [UInt8] = []
    var failure: ResponseParser.Failure?
    var isReusable = false
    var leftOver = 0
    private var announced: Int64?

    init(
        _ bytes: [UInt8],
        _ kind: ResponseParser.RequestKind,
        _ limits: ResponseParser.Limits,
        step: () -> Int
    ) {
        var parser = ResponseParser(limits: limits)
        parser.begin(kind)
        var start = 0
        do throws(ResponseParser.Failure) {
            while start < bytes.count {
                let end = min(bytes.count, start + step())
                try take(Array(bytes[start..<end]), &parser)
                start = end
            }
            if let event = try parser.finish() { note(event, [], 0) }
            precondition(parser.isIdle, "complete, but not idle")
            precondition(parser.bodyBytesReceived == Int64(content.count), "content was not counted")
            precondition(announced == nil || announced == parser.bodyBytesReceived, "the length differs from the announced one")
            precondition(parts.count { if case .end = $0 { true } else { false } } == 1, "not exactly one end")
            isReusable = parser.mayReuseConnection
        } catch {
            failure = error
            precondition(!parser.mayReuseConnection && !parser.isIdle, "reusable after a failure")
            do throws(ResponseParser.Failure) {
                _ = try parser.finish()
                preconditionFailure("the failure was forgotten")
            } catch {
                precondition(error == failure, "a different failure")
            }
        }
    }

    private mutating func take(_ piece: [UInt8], _ parser: inout ResponseParser) throws(ResponseParser.Failure) {
        try piece.span.bytes.withUnsafeBytes { bytes throws(ResponseParser.Failure) in
            var offset = 0
            while true {
                let before = offset
                guard let event = try parser.next(bytes, &offset) else { break }
                precondition(before <= offset && offset <= bytes.count, "the offset is out of bounds")
                note(event, piece, before)
            }
            precondition(offset == bytes.count || parser.isIdle, "bytes were left over")
            leftOver += bytes.count - offset
        }
    }

    private mutating func note(_ event: ResponseParser.Event, _ piece: [UInt8], _ offset: Int) {
        switch event {
        case .informational(let head):
            precondition(head.status / 100 == 1, "not informational")
            check(head.headers)
            parts.append(.informational(head))
        case .head(let head, let framing):
            precondition((0...999).contains(head.status) && head.status / 100 != 1, "not final")
            check(head.headers)
            if case .length(let length) = framing { announced = length }
            parts.append(.head(head, framing))
        case .body(let range):
            precondition(!range.isEmpty && range.lowerBound >= offset && range.upperBound <= piece.count, "content out of bounds")
            content += piece[range]
        case .end(let trailers):
            if let trailers { check(trailers) }
            parts.append(.end(trailers))
        }
    }

    private func check(_ headers: HeaderBlock) {
        for line in headers.lines {
            precondition(line.name.upperBound <= headers.bytes.count, "name out of bounds")
            precondition(line.value.upperBound <= headers.bytes.count, "value out of bounds")
            precondition(!line.name.isEmpty && headers.bytes[line.name].allSatisfy(ASCII.isTokenCharacter), "not a token")
            precondition(headers.bytes[line.value].allSatisfy { $0 != 0 && $0 != 10 && $0 != 13 }, "not a field value")
        }
    }
}
