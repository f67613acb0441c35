// SPDX-License-Identifier: Apache-2.0

import HTTPWire
import NIOCore
import NIOHPACK

/// Compares field blocks in both directions with NIO's coders.
///
/// The first byte chooses between two kinds of input. One is blocks of a server, each after a byte with its length, for both
/// decoders. The other is request heads with one field per line, which NIO's decoder must read unchanged.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzHPACK(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    guard let data, count >= 1 else { return 0 }
    let input = Array(UnsafeRawBufferPointer(start: data + 1, count: count - 1))
    if data[0] & 1 == 0 { decode(input[...]) } else { encode(input) }
    return 0
}

// MARK: Decoding

private func decode(_ input: ArraySlice<UInt8>) {
    var rest = input
    var reader = HTTP2FrameReader()
    var theirs = HPACKDecoder(
        allocator: ByteBufferAllocator(), maxDynamicTableSize: HPACKDecoder.maxDynamicTableSize, maxHeaderListSize: 1 << 24)
    _ = next([0, 0, 0, 4, 0, 0, 0, 0, 0], &reader)
    while let length = rest.popFirst() {
        let block = Array(rest.prefix(Int(length)))
        rest = rest.dropFirst(Int(length))
        var buffer = ByteBuffer(bytes: block)
        let fields = Result { try theirs.decodeHeaders(from: &buffer).map { ($0.name, $0.value) } }
        switch (next([0, 0, UInt8(block.count), 1, 4, 0, 0, 0, 1] + block, &reader), fields) {
        case (.success(let section), .success(let fields)):
            // NIO repairs invalid UTF-8, and counts the repaired size, so the tables differ afterwards.
            guard !fields.contains(where: { ($0.0 + $0.1).unicodeScalars.contains("\u{FFFD}") }) else { return }
            compare(section, fields)
        case (.failure, .failure): return
        case (.failure(let failure), .success):
            // NIO accepts encodings of any length for integers that fit into 64 bits.
            precondition(failure.message == "an integer in a field block is too long", "only we reject: \(failure) of \(block)")
            return
        case (.success, .failure(let error)):
            // An empty name is a connection error for NIO, and a stream error for our decoder.
            precondition(error is NIOHPACKErrors.EmptyLiteralHeaderFieldName, "only we accept: \(error) of \(block)")
            return
        }
    }
}

private func next(_ frame: [UInt8], _ reader: inout HTTP2FrameReader) -> Result<FieldSection?, HTTP2Failure> {
    do throws(HTTP2Failure) {
        let section = try frame.span.bytes.withUnsafeBytes { bytes throws(HTTP2Failure) -> FieldSection? in
            var offset = 0
            if case .headers(_, let section, _) = try reader.next(bytes, &offset) { return section }
            return nil
        }
        return .success(section)
    } catch {
        precondition(error.code == .compressionError, "\(error)")
        return .failure(error)
    }
}

private func compare(_ section: FieldSection?, _ theirs: [(String, String)]) {
    guard let section else { preconditionFailure("no field section") }
    var ours = section.headers.lines.map { line in
        (
            String(decoding: section.headers.bytes[line.name], as: UTF8.self),
            String(decoding: section.headers.bytes[line.value], as: UTF8.self)
        )
    }
    if let status = section.status { ours.insert((":status", String(status + 1_000).suffix(3).description), at: 0) }
    let size = theirs.reduce(0) { $0 + $1.0.utf8.count + $1.1.utf8.count + 32 }
    precondition(section.listBytes == size, "\(section.listBytes) is not the size of \(theirs)")
    let isPrefix = ours.count <= theirs.count && zip(ours, theirs).allSatisfy { $0 == $1 }
    precondition(isPrefix, "ours: \(ours)\ntheirs: \(theirs)")
    guard section.fault == nil else {
        // 101 is a fault, but its fields are kept.
        precondition(ours.count < theirs.count || section.fault == .switchingProtocols, "no fault in \(theirs)")
        return
    }
    precondition(ours.count == theirs.count, "ours: \(ours)\ntheirs: \(theirs)")
}

// MARK: Encoding

private func encode(_ input: [UInt8]) {
    var encoder = HTTP2RequestEncoder()
    var theirs = HPACKDecoder(
        allocator: ByteBufferAllocator(), maxDynamicTableSize: HPACKDecoder.maxDynamicTableSize, maxHeaderListSize: 1 << 24)
    var method = "GET"
    var target = "/"
    var headers = HeaderBlock([("Host", "a.test")])
    for line in input.split(separator: 0x0A, omittingEmptySubsequences: false) {
        let text = String(decoding: line, as: UTF8.self)
        switch line.first {
        case UInt8(ascii: "!"): encoder.setTableLimit(Int(text.dropFirst()) ?? 0)
        case UInt8(ascii: "/"), UInt8(ascii: "*"): target = text
        case UInt8(ascii: "="): method = String(text.dropFirst())
        case nil:
            check(RequestHead(method: method, target: target, headers: headers), &encoder, &theirs)
            headers = HeaderBlock([("Host", "a.test")])
        default:
            let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            headers.append(String(parts[0]), parts.count > 1 ? String(parts[1]) : "")
        }
    }
    check(RequestHead(method: method, target: target, headers: headers), &encoder, &theirs)
}

private func check(_ head: RequestHead, _ encoder: inout HTTP2RequestEncoder, _ decoder: inout HPACKDecoder) {
    let guardBytes: [UInt8] = [0xA5, 0x5A, 0xA5, 0x5A]
    let capacity = HTTP2RequestEncoder.maximumLength(of: head)
    var bytes = [UInt8](repeating: 0, count: capacity) + guardBytes
    let written = bytes.withUnsafeMutableBytes { bytes in
        Result { () throws(InvalidRequest) in
            try encoder.encode(
                head, scheme: "https", priority: "u=3, i", into: UnsafeMutableRawBufferPointer(rebasing: bytes[..<capacity]))
        }
    }
    precondition(Array(bytes[capacity...]) == guardBytes, "wrote beyond the buffer")
    guard case .success(let count) = written else { return }
    var buffer = ByteBuffer(bytes: bytes[..<count])
    let fields: [(String, String)]
    do {
        fields = try decoder.decodeHeaders(from: &buffer).map { ($0.name, $0.value) }
    } catch {
        preconditionFailure("\(error) of \(bytes[..<count])")
    }
    let pseudo = fields.prefix { $0.0.hasPrefix(":") }
    let isConnect = head.method == "CONNECT"
    precondition(
        pseudo.map(\.0) == (isConnect ? [":method", ":authority"] : [":method", ":scheme", ":path", ":authority"]), "\(fields)")
    precondition(pseudo.first?.1 == head.method, "\(fields)")
    precondition(isConnect || pseudo[2].1 == head.target, "\(fields)")
    compare(fields.dropFirst(pseudo.count), head.headers)
}

/// Checks that the fields are in the order of the request, and that split cookies can be joined.
private func compare(_ fields: ArraySlice<(String, String)>, _ headers: HeaderBlock) {
    let left = [
        "host", "connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade", "http2-settings",
    ]
    var rest = fields
    for field in headers.fields {
        let name = String(decoding: field.name.utf8.map(ASCII.lowercased), as: UTF8.self)
        let value = String(decoding: ASCII.trimmed(Array(field.value.utf8)[...]), as: UTF8.self)
        guard !left.contains(name) else { continue }
        let isTrailers = String(decoding: value.utf8.map(ASCII.lowercased), as: UTF8.self) == "trailers"
        if name == "te" ? !isTrailers : headers.hasToken(name, in: .connection) { continue }
        var found = ""
        repeat {
            guard let next = rest.popFirst(), next.0 == name else { preconditionFailure("\(field) is not in \(fields)") }
            found += (found.isEmpty ? "" : "; ") + next.1
            precondition(ASCII.trimmed(Array(next.1.utf8)[...]).count == next.1.utf8.count, "white space around \(next)")
        } while name == "cookie" && found != value && found.utf8.count < value.utf8.count
        precondition(found == value, "\(found) is not \(value)")
    }
    // The request's own priority replaces the priority that the encoder was given.
    let isOurs = rest.count == 1 && rest.first?.0 == "priority" && rest.first?.1 == "u=3, i"
    precondition(headers.contains("priority") ? rest.isEmpty : isOurs, "unexpected fields: \(rest)")
}
