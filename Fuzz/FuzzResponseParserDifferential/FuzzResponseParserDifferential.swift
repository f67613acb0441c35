//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import HTTPWire
import NIOCore
import NIOEmbedded
import NIOHTTP1

/// Reads the input as the response to a GET or HEAD with our parser and with NIO's (llhttp).
///
/// What both accept they must read the same. What one of them refuses the other may accept only for a reason in `Allowance`.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzResponseParserDifferential(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    guard let data, count >= 1 else { return 0 }
    let bytes = Array(UnsafeRawBufferPointer(start: data + 1, count: count - 1))
    if Allowance.hidesChunked(bytes) { return 0 }
    let isHead = data[0] & 1 != 0
    let ours = Reading(ours: bytes, isHead: isHead)
    let theirs = Reading(theirs: bytes, isHead: isHead)
    if ours.isComplete && theirs.isComplete {
        precondition(ours == theirs, "ours: \(ours)\ntheirs: \(theirs)")
    } else if ours.isComplete {
        precondition(
            Allowance.forAccepting(bytes) || Allowance.takesInformational(ours, theirs),
            "only we accept: \(ours)\ntheirs: \(theirs)")
    } else if theirs.isComplete {
        precondition(Allowance.forRefusing(ours.failure), "only we refuse: \(ours)\ntheirs: \(theirs)")
    }
    return 0
}

/// Where we and llhttp, in the strict mode that NIO uses, may part.
private enum Allowance {
    /// We are more lenient: what servers do send, and what cannot change the framing.
    static func forAccepting(_ bytes: [UInt8]) -> Bool {
        for (index, byte) in bytes.enumerated() {
            let next = index + 1 < bytes.count ? bytes[index + 1] : 0
            switch byte {
            // A line that ends in LF alone, or is continued in the next one.
            case 0x0A: if index == 0 || bytes[index - 1] != 0x0D || next == 0x20 || next == 0x09 { return true }
            case 0x0D: break
            // Control characters in values and reasons.
            case 0..<0x20, 0x7F: if byte != 0x09 { return true }
            default: break
            }
        }
        let text = String(decoding: bytes.map(ASCII.lowercased), as: Unicode.ASCII.self)
        // Both framings at once: the one that wins is used, and the connection is not used again.
        if text.contains("transfer-encoding"), text.contains("content-length") { return true }
        // A minor version that does not exist yet.
        if (2...9).contains(where: { text.contains("http/1.\($0)") }) { return true }
        // Sizes may be padded, and extensions have white space in them (RFC 9112, section 7.1.1).
        if text.split(separator: "\r\n").contains(where: { ";\t ".contains($0.drop(while: \.isHexDigit).first ?? "-") }) {
            return true
        }
        // Content-Length repeated with the same number.
        if text.split(separator: "content-length", omittingEmptySubsequences: false).count > 2 || text.contains(",") {
            return true
        }
        // A length that nobody can count, of a response without content (RFC 9112, section 6.3, item 1). Up to 2^64 llhttp takes it, too.
        if bytes.split(whereSeparator: { !(0x30...0x39).contains($0) }).contains(where: { $0.count > 19 }) { return true }
        return false
    }

    /// llhttp does not see that chunked is the last coding where an empty element of the list comes after it, and reads to the close; such
    /// elements are to be ignored (RFC 9110, section 5.6.1).
    static func hidesChunked(_ bytes: [UInt8]) -> Bool {
        let text = String(decoding: bytes.map(ASCII.lowercased), as: Unicode.ASCII.self)
        return text.split(whereSeparator: \.isNewline).contains { line in
            line.hasPrefix("transfer-encoding") && line.last { $0 != " " && $0 != "\t" } == ","
        }
    }

    /// To us an informational response is a head and no more, whatever it says of framing or connection (RFC 9112, section 6.3, item 1); to
    /// NIO the connection is over with one of HTTP/1.0, or with `Connection: close`, and its length has to be a number.
    static func takesInformational(_ ours: Reading, _ theirs: Reading) -> Bool {
        if theirs.refusal == "data received after completed connection: close message", ours.heads.count > 1 { return true }
        return ours.heads.contains { head in
            head.status / 100 == 1 && head.fields.contains { $0.lowercased().hasPrefix("content-length:") }
        }
    }

    /// We are stricter, or have limits that NIO has not.
    static func forRefusing(_ failure: ResponseParser.Failure?) -> Bool {
        switch failure {
        case .unknownTransferEncoding, .chunkedIsNotLast, .transferEncodingInHTTP10, .tooManyEmptyLines: true
        // llhttp does not look into the reason.
        case .nulByte, .bareCarriageReturn: true
        default: false
        }
    }
}

/// A response as read by either parser: everything up to and with the end of the first final response.
private struct Reading: Equatable {
    struct Head: Equatable {
        var minorVersion: Int
        var status: Int
        var fields: [String]
    }

    var heads: [Head] = []
    var content: [UInt8] = []
    var trailers: [String] = []
    var isComplete = false
    var failure: ResponseParser.Failure?
    var refusal: String?

    static func == (left: Reading, right: Reading) -> Bool {
        left.heads == right.heads && left.content == right.content && left.trailers == right.trailers
    }

    init(ours bytes: [UInt8], isHead: Bool) {
        var parser = ResponseParser()
        parser.begin(isHead ? .head : .other)
        do throws(ResponseParser.Failure) {
            try bytes.span.bytes.withUnsafeBytes { buffer throws(ResponseParser.Failure) in
                var offset = 0
                while let event = try parser.next(buffer, &offset) { note(event, bytes) }
            }
            while let event = try parser.finish() { note(event, []) }
        } catch {
            failure = error
        }
    }

    private mutating func note(_ event: ResponseParser.Event, _ bytes: [UInt8]) {
        switch event {
        case .informational(let head), .head(let head, _):
            heads.append(Head(minorVersion: head.minorVersion, status: head.status, fields: Self.fields(head.headers)))
        case .body(let range): content += bytes[range]
        case .end(let trailers):
            isComplete = true
            if let trailers { self.trailers = Self.fields(trailers) }
        }
    }

    private static func fields(_ headers: HeaderBlock) -> [String] {
        headers.lines.map { line in
            let name = String(decoding: headers.bytes[line.name], as: UTF8.self)
            return "\(name): \(String(decoding: headers.bytes[line.value], as: UTF8.self))"
        }
    }

    init(theirs bytes: [UInt8], isHead: Bool) {
        let channel = EmbeddedChannel()
        do {
            let decoder = HTTPResponseDecoder(leftOverBytesStrategy: .dropBytes, informationalResponseStrategy: .forward)
            try channel.pipeline.syncOperations.addHandler(ByteToMessageHandler(decoder))
            let request = HTTPRequestHead(version: .http1_1, method: isHead ? .HEAD : .GET, uri: "/")
            try channel.writeOutbound(HTTPClientRequestPart.head(request))
            try channel.writeOutbound(HTTPClientRequestPart.end(nil))
        } catch {
            preconditionFailure("\(error)")
        }
        do {
            try channel.writeInbound(ByteBuffer(bytes: bytes))
            channel.pipeline.fireChannelInactive()
            try channel.throwIfErrorCaught()
        } catch {
            refusal = "\(error)"
        }
        while !isComplete, let part = try? channel.readInbound(as: HTTPClientResponsePart.self) { note(part) }
        _ = try? channel.finish()
    }

    private mutating func note(_ part: HTTPClientResponsePart) {
        switch part {
        case .head(let head):
            let fields = head.headers.map { Self.field($0.name, $0.value) }
            heads.append(Head(minorVersion: head.version.minor, status: Int(head.status.code), fields: fields))
        case .body(let buffer): content += buffer.readableBytesView
        case .end(let trailers):
            isComplete = true
            let framing = ["content-length", "transfer-encoding", "connection", "host", "trailer", "upgrade"]
            let permitted = trailers.map { $0.filter { !framing.contains($0.name.lowercased()) } } ?? []
            self.trailers = permitted.map { Self.field($0.name, $0.value) }
        }
    }

    /// RFC 9112, section 5.1: white space at the end of a line is not part of the value; NIO leaves it there.
    private static func field(_ name: String, _ value: String) -> String {
        var value = Substring(value)
        while let last = value.utf8.last, ASCII.isWhitespace(last) { value.removeLast() }
        return "\(name): \(value)"
    }
}
