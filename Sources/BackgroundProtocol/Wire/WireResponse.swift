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

struct WireResponse: WireValue {
    struct Local: Codable {
        var mimeType: String?
        var textEncoding: String?
    }

    var url: String
    var http: WireResponseHead?
    var local: Local?
    var expectedLength: Int64?

    init(_ response: LoadResponse) throws {
        url = response.url.absoluteString
        switch response.kind {
        case .http(let head): http = WireResponseHead(head)
        case .local(let mimeType, let textEncoding): local = Local(mimeType: mimeType, textEncoding: textEncoding)
        case .application: throw MessageFailure.malformed("an app's own response cannot be carried")
        }
        expectedLength = response.expectedLength.unless(-1)
    }

    func model() throws -> LoadResponse {
        let kind: LoadResponse.Kind
        if let http {
            kind = .http(try http.head())
        } else {
            let local = try Wire.need(local, "a response's kind")
            kind = .local(mimeType: local.mimeType, textEncoding: local.textEncoding)
        }
        return LoadResponse(url: try Wire.url(url, "a response's URL"), kind: kind, expectedLength: max(-1, expectedLength ?? -1))
    }
}

struct WireResponseHead: Codable {
    var majorVersion: Int?
    var minorVersion: Int?
    var status: Int
    var reason: String?
    var fields: [String]?

    init(_ head: ResponseHead) {
        majorVersion = head.majorVersion.unless(1)
        minorVersion = head.minorVersion.unless(1)
        status = head.status
        reason = head.reason.unless("")
        fields = WireFields.texts(head.headers)
    }

    func head() throws -> ResponseHead {
        let (majorVersion, minorVersion) = (majorVersion ?? 1, minorVersion ?? 1)
        try Wire.check(1...9 ~= majorVersion && 0...9 ~= minorVersion, "a response's version is not known")
        try Wire.check(0...999 ~= status, "a status has more than three digits")
        return ResponseHead(
            majorVersion: majorVersion, minorVersion: minorVersion, status: status, reason: reason ?? "",
            headers: try WireFields.block(fields))
    }
}

struct WireRequestHead: Codable {
    var method: String
    var target: String
    var fields: [String]?
    var majorVersion: Int?

    init(_ head: RequestHead) {
        method = head.method
        target = head.target
        fields = WireFields.texts(head.headers)
        majorVersion = head.majorVersion.unless(1)
    }

    func head() throws -> RequestHead {
        try Wire.check(1...9 ~= majorVersion ?? 1, "a request's version is not known")
        var head = RequestHead(method: method, target: target, headers: try WireFields.block(fields))
        head.majorVersion = majorVersion ?? 1
        return head
    }
}
