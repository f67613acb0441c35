//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import FoundationEssentials
import HTTPWire
import LoadingModel

struct WireRequest: WireValue {
    var url: String?
    var mainDocument: String?
    var method: String?
    var fields: [String]?
    var body: WireBody?
    var timeout: Double?
    var cachePolicy: Int?
    var handlesCookies: Bool?
    var partition: String?
    var needs: WireNeeds?

    init(_ request: LoadRequest) throws {
        url = request.url?.absoluteString
        mainDocument = request.mainDocumentURL?.absoluteString
        method = request.method.unless("GET")
        fields = WireFields.texts(request.headers)
        body = try WireBody(request.body)
        timeout = request.timeout.map(Wire.duration)
        cachePolicy = Int(exactly: request.cachePolicy.rawValue)?.unless(0)
        handlesCookies = request.handlesCookies.unless(true)
        partition = request.cookiePartition
        needs = WireNeeds(request.needs)
    }

    func model() throws -> LoadRequest {
        var request = LoadRequest(url: try url.map { try Wire.url($0, "a request's URL") })
        if let mainDocument { request.mainDocumentURL = try Wire.url(mainDocument, "a main document's URL") }
        if let method { request.method = try Wire.text(method, "a method", limit: Wire.identifierLimit) }
        if let fields {
            request.headers = try WireFields.block(fields)
            try WireFields.check(request.headers)
        }
        if let body { request.body = try body.requestBody() }
        if let timeout { request.timeout = try Wire.finite(timeout, "a timeout") }
        if let cachePolicy { request.cachePolicy = Self.cachePolicy(cachePolicy) }
        if let handlesCookies { request.handlesCookies = handlesCookies }
        if let partition { request.cookiePartition = try Wire.text(partition, "a cookie partition") }
        if let needs { request.needs = needs.needs }
        return request
    }

    /// Of one that is not known, the default.
    static func cachePolicy(_ number: Int) -> LoadRequest.CachePolicy {
        UInt(exactly: number).flatMap(LoadRequest.CachePolicy.init(rawValue:)) ?? .useProtocolCachePolicy
    }
}

struct WireNeeds: Codable {
    var service: Int?
    var requiresDNSSEC: Bool?
    var prohibited: UInt8?

    /// Nil for none.
    init?(_ needs: ConnectionNeeds) {
        if needs == .none { return nil }
        service = Int(needs.service.rawValue).unless(0)
        requiresDNSSEC = needs.requiresDNSSEC.unless(false)
        prohibited = needs.prohibited.rawValue.unless(0)
    }

    var needs: ConnectionNeeds {
        var needs = ConnectionNeeds()
        needs.service = service.flatMap { UInt8(exactly: $0) }.flatMap(ConnectionNeeds.Service.init(rawValue:)) ?? .ordinary
        needs.requiresDNSSEC = requiresDNSSEC ?? false
        needs.prohibited = ProhibitedNetworks(rawValue: prohibited ?? 0)
        return needs
    }
}

/// A request's or a response's body: data, or a file.
struct WireBody: Codable {
    enum Kind: String { case data, file }

    var kind: String
    var data: Data?
    var path: String?

    /// Nil for none.
    init?(_ body: RequestBody) throws {
        switch body {
        case .none: return nil
        case .data(let data):
            try Wire.check(
                data.count <= Wire.bodyLimit, "a body of \(data.count) bytes is sent in the background from a file alone")
            self.init(data)
        case .file(let path): self.init(path: path)
        case .stream, .streamOnDemand:
            throw MessageFailure.malformed("only files and data can be sent in the background, and not a stream")
        }
    }

    /// Nil for none.
    init?(_ body: TaskOutcome.Body) {
        switch body {
        case .none: return nil
        case .collected(let data): self.init(data)
        case .file(let path): self.init(path: path)
        }
    }

    private init(_ data: Data) {
        kind = Kind.data.rawValue
        self.data = data
    }

    private init(path: String) {
        kind = Kind.file.rawValue
        self.path = path
    }

    func requestBody() throws -> RequestBody {
        switch try Wire.need(Kind(rawValue: kind), "a body's kind") {
        case .data:
            let data = try Wire.need(data, "a body's data")
            try Wire.check(data.count <= Wire.bodyLimit, "a body of \(data.count) bytes is too long")
            return .data(data)
        case .file: return .file(path: try Wire.path(try Wire.need(path, "a body's file"), "a body's file"))
        }
    }

    func outcomeBody() throws -> TaskOutcome.Body {
        switch try Wire.need(Kind(rawValue: kind), "a body's kind") {
        case .data: .collected(try Wire.need(data, "a body's data"))
        case .file: .file(path: try Wire.path(try Wire.need(path, "a download's file"), "a download's file"))
        }
    }
}

/// Fields as names and values in turn, each byte a character of ISO 8859-1: what was no UTF-8 stays what it was.
enum WireFields {
    /// Nil for none.
    static func texts(_ block: HeaderBlock) -> [String]? {
        guard !block.isEmpty else { return nil }
        var texts: [String] = []
        texts.reserveCapacity(block.count * 2)
        for line in block.lines {
            texts.append(text(block.bytes[line.name]))
            texts.append(text(block.bytes[line.value]))
        }
        return texts
    }

    static func block(_ texts: [String]?) throws -> HeaderBlock {
        guard let texts else { return HeaderBlock() }
        try Wire.check(texts.count.isMultiple(of: 2), "a field has no value")
        var bytes: [UInt8] = []
        var lines: [HeaderBlock.Line] = []
        lines.reserveCapacity(texts.count / 2)
        var (nameStart, valueStart) = (0, 0)
        for (index, text) in texts.enumerated() {
            if index.isMultiple(of: 2) { nameStart = bytes.count } else { valueStart = bytes.count }
            try append(text, to: &bytes)
            if index.isMultiple(of: 2) { continue }
            lines.append(
                HeaderBlock.Line(
                    nameStart: nameStart, nameLength: valueStart - nameStart, valueStart: valueStart,
                    valueLength: bytes.count - valueStart))
        }
        return HeaderBlock(bytes: bytes, lines: lines)
    }

    /// Whether a request may have them; those of a response were judged as they were received.
    static func check(_ block: HeaderBlock) throws {
        try Wire.check(block.count <= Wire.fieldLimit, "a request has too many fields")
        try Wire.check(
            block.lines.reduce(0) { $0 + $1.name.count + $1.value.count } <= Wire.fieldBytesLimit,
            "a request's fields are too long")
    }

    private static func text(_ bytes: ArraySlice<UInt8>) -> String {
        if bytes.allSatisfy({ $0 < 0x80 }) { return String(decoding: bytes, as: UTF8.self) }
        return String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
    }

    private static func append(_ text: String, to bytes: inout [UInt8]) throws {
        if text.utf8.allSatisfy({ $0 < 0x80 }) { return bytes.append(contentsOf: text.utf8) }
        for scalar in text.unicodeScalars {
            guard let byte = UInt8(exactly: scalar.value) else {
                throw MessageFailure.malformed("a field has a character that is no byte")
            }
            bytes.append(byte)
        }
    }
}
