// SPDX-License-Identifier: Apache-2.0

import HTTPWire
import NIOCore
import NIOEmbedded
import NIOHTTP1

/// Parses the input as the response to a GET or HEAD with our parser and with NIO's (llhttp).
///
/// If both accept it, the results must be equal. If only one rejects it, there must be a reason in `Allowance`.
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
        precondition(Allowance.forRefusing(ours.failure), "only we reject: \(ours)\ntheirs: \(theirs)")
    }
    return 0
}

/// The permitted differences between our parser and llhttp, in the strict mode that NIO uses.
private enum Allowance {
    /// Whether our parser may accept input that llhttp rejects: servers send such input, or it cannot change the framing.
    static func forAccepting(_ bytes: [UInt8]) -> Bool {
        for (index, byte) in bytes.enumerated() {
            let next = index + 1 < bytes.count ? bytes[index + 1] : 0
            switch byte {
            // A line ends with LF without CR, or is folded.
            case 0x0A: if index == 0 || bytes[index - 1] != 0x0D || next == 0x20 || next == 0x09 { return true }
            case 0x0D: break
            // Values and reasons may contain control characters.
            case 0..<0x20, 0x7F: if byte != 0x09 { return true }
            default: break
            }
        }
        let text = String(decoding: bytes.map(ASCII.lowercased), as: Unicode.ASCII.self)
        // With both kinds of framing, Transfer-Encoding takes precedence, and the connection is not reused.
        if text.contains("transfer-encoding"), text.contains("content-length") { return true }
        // Our parser accepts minor versions that do not exist.
        if (2...9).contains(where: { text.contains("http/1.\($0)") }) { return true }
        // Chunk sizes may be padded, and extensions may contain white space (RFC 9112, section 7.1.1).
        if text.split(separator: "\r\n").contains(where: { ";\t ".contains($0.drop(while: \.isHexDigit).first ?? "-") }) {
            return true
        }
        // Content-Length may be repeated with the same value.
        if text.split(separator: "content-length", omittingEmptySubsequences: false).count > 2 || text.contains(",") {
            return true
        }
        // In a response without content, a length that overflows is ignored (RFC 9112, section 6.3, item 1). llhttp also accepts
        // lengths up to 2^64.
        if bytes.split(whereSeparator: { !(0x30...0x39).contains($0) }).contains(where: { $0.count > 19 }) { return true }
        return false
    }

    /// If an empty list element follows `chunked`, llhttp does not recognize `chunked` as the last coding, and reads until the
    /// connection closes.
    ///
    /// Empty elements must be ignored (RFC 9110, section 5.6.1).
    static func hidesChunked(_ bytes: [UInt8]) -> Bool {
        let text = String(decoding: bytes.map(ASCII.lowercased), as: Unicode.ASCII.self)
        return text.split(whereSeparator: \.isNewline).contains { line in
            line.hasPrefix("transfer-encoding") && line.last { $0 != " " && $0 != "\t" } == ","
        }
    }

    /// Whether the results differ because our parser ignores the framing and connection fields of informational responses (RFC
    /// 9112, section 6.3, item 1).
    ///
    /// For NIO, the connection ends after an informational response of HTTP/1.0 or with `Connection: close`, and a length in it
    /// has to be a number.
    static func takesInformational(_ ours: Reading, _ theirs: Reading) -> Bool {
        if theirs.refusal == "data received after completed connection: close message", ours.heads.count > 1 { return true }
        return ours.heads.contains { head in
            head.status / 100 == 1 && head.fields.contains { $0.lowercased().hasPrefix("content-length:") }
        }
    }

    /// Whether our parser may reject input that llhttp accepts: our parser is stricter, or has limits that NIO does not have.
    static func forRefusing(_ failure: ResponseParser.Failure?) -> Bool {
        switch failure {
        case .unknownTransferEncoding, .chunkedIsNotLast, .transferEncodingInHTTP10, .tooManyEmptyLines: true
        // llhttp does not check the reason phrase.
        case .nulByte, .bareCarriageReturn: true
        default: false
        }
    }
}

/// The result of either parser, up to and including the end of the first final response.
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

    /// Trailing white space is not part of the value (RFC 9112, section 5.1), but NIO keeps it.
    private static func field(_ name: String, _ value: String) -> String {
        var value = Substring(value)
        while let last = value.utf8.last, ASCII.isWhitespace(last) { value.removeLast() }
        return "\(name): \(value)"
    }
}
